"""Paths of the lake: local paths, or URIs of other file systems such as `s3a://bucket/lake`.

While a test of the project runs, the files of some are elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath
from urllib.parse import unquote

from lakewright.plan.resource import Resource, canonical_scheme

_STORES = {"s3": "s3", "abfs": "azure", "gs": "gcs"}
"""The kinds of object stores, by canonical scheme."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file, or object of a store.

    Attributes:
        name: Its path below the folder that was listed, or in its bucket, with `/` between levels.
        size: In bytes.
        modified: In nanoseconds (local) or milliseconds since 1970; 0 where nobody asks.
        tag: What a store calls this content; another content has another tag. Empty if there is none.
    """

    name: str
    size: int
    modified: int = 0
    tag: str = ""


def local_path(path: str) -> Path | None:
    """Return the path on this machine, or None if it is a URI of another system.

    Example:
        >>> local_path("file:///lake/a%20b"), local_path("s3a://bucket/x")
        (PosixPath('/lake/a b'), None)
    """
    if path.startswith("file:"):
        return Path(unquote("/" + path.removeprefix("file:").lstrip("/")))
    return None if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path) else Path(path)


def join(base: str, *names: str) -> str:
    """Return a path below `base`.

    Example:
        >>> join("s3a://bucket/lake/", "x", "y=1")
        's3a://bucket/lake/x/y=1'
    """
    return "/".join([base.rstrip("/") or "", *(name.strip("/") for name in names)])


def parent(path: str) -> tuple[str, str]:
    """Return the folder that contains a path, and the last part of the path.

    Example:
        >>> parent("/lake/x/")
        ('/lake', 'x')
    """
    folder, _, name = path.rstrip("/").rpartition("/")
    return folder or "/", name


def is_stored(location: str) -> bool:
    """Return whether a location is in an object store that is reached without Spark.

    Example:
        >>> is_stored("s3a://lake/silver"), is_stored("hdfs://lake/silver"), is_stored("/lake/silver")
        (True, False, False)
    """
    return store_of(location) is not None


def store_of(location: str) -> str | None:
    """Return the kind of object store that a location is in; None if it is in none.

    Example:
        >>> store_of("abfss://lake@acme.dfs.core.windows.net/silver"), store_of("/lake/silver")
        ('azure', None)
    """
    scheme, separator, _ = location.partition("://")
    return _STORES.get(canonical_scheme(scheme)) if separator else None


def split_url(location: str) -> tuple[str, str, str]:
    """Return scheme, bucket and key of a location in an object store; the key has no slash at its ends.

    Example:
        >>> split_url("s3a://lake/silver/orders/")
        ('s3a', 'lake', 'silver/orders')
        >>> split_url("abfss://lake@acme.dfs.core.windows.net/silver")
        ('abfss', 'lake@acme.dfs.core.windows.net', 'silver')
    """
    scheme, _, rest = location.partition("://")
    bucket, _, key = rest.partition("/")
    return scheme.lower(), bucket, "/".join(part for part in key.split("/") if part)


@dataclass(frozen=True, slots=True)
class Redirects:
    """The locations that are redirected, and the folder that they are redirected to.

    Attributes:
        folder: The folder that receives all that is written, each location under its own path.
        roots: Redirected locations; a location that contains one of them, or lies in one, is redirected too.
    """

    folder: Path
    roots: frozenset[Resource]

    @classmethod
    def of(cls, folder: Path, places: Iterable[str]) -> Redirects:
        """Return redirects of these locations, which are local paths or URIs."""
        return cls(folder, frozenset(Resource.file(_plain(place)) for place in places))

    def __call__(self, place: str) -> str:
        """Return a local path in the folder for a redirected location; others are returned unchanged.

        Example:
            >>> redirects = Redirects.of(Path("/tmp/t"), ["/lake/gold", "s3a://bucket/x"])
            >>> redirects("/lake/gold/prices"), redirects("/lake/raw"), redirects("s3a://bucket/x/y")
            ('/tmp/t/lake/gold/prices', '/lake/raw', '/tmp/t/s3a/bucket/x/y')
        """
        wanted = Resource.file(_plain(place))
        is_redirected = any(root.intersects(wanted) for root in self.roots)
        return self.inside(place) if is_redirected else place

    def inside(self, place: str) -> str:
        """Return the path of a location in the folder."""
        scheme, _, rest = place.rpartition("://")
        path = normpath(f"/{scheme}/{rest.lstrip('/')}") if scheme else normpath(f"/{place.lstrip('/')}")
        return f"{self.folder}{path.rstrip('/')}"


def _plain(place: str) -> str:
    return place if "://" in place else normpath(place)

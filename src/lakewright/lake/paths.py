"""Paths of the lake: local paths, or URIs of other file systems such as `s3a://bucket/lake`."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

__all__ = ["is_s3", "join", "local_path", "parent", "split_url"]

_S3 = re.compile(r"s3[an]?://", re.IGNORECASE)


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


def is_s3(location: str) -> bool:
    """Return whether a location is in S3.

    Example:
        >>> is_s3("s3a://lake/silver"), is_s3("/lake/silver")
        (True, False)
    """
    return _S3.match(location) is not None


def split_url(location: str) -> tuple[str, str]:
    """Return the bucket and the key of a location in S3; the key has no slash at its ends.

    Example:
        >>> split_url("s3a://lake/silver/orders/")
        ('lake', 'silver/orders')
    """
    bucket, _, key = _S3.sub("", location, count=1).partition("/")
    return bucket, "/".join(part for part in key.split("/") if part)

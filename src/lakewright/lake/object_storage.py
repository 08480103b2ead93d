"""The object stores of a project, and their objects.

Spark reaches them through Hadoop's file systems, the `deltalake` and `obstore` packages without a JVM.
All take their settings from the project's `storage:` section, and from the environment. What differs between
kinds of stores, a kind declares (`store_kind`).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lakewright.errors import LakewrightError, SpecError, StorageUnavailable
from lakewright.lake.azure import Azure
from lakewright.lake.google import Google
from lakewright.lake.paths import FileEntry, is_stored, split_url, store_of
from lakewright.lake.s3 import S3
from lakewright.lake.storage_errors import store_fault
from lakewright.lake.store_kind import StoreKind
from lakewright.spark.releases import RELEASES, installed_release, installed_version, store_jars
from lakewright.spec.models.storage import StorageSettings
from lakewright.threads import shared_property

if TYPE_CHECKING:
    from deltalake import DeltaTable as DeltaFile
    from obstore import ObjectMeta

    from lakewright.lake.store_kind import ObjectStore


KINDS: tuple[type[S3] | type[Azure] | type[Google], ...] = (S3, Azure, Google)
"""The kinds of object stores."""


@dataclass(frozen=True)
class ObjectStorage:
    """The object stores of a project.

    Attributes:
        settings: The project's `storage:` section.
        environ: The environment variables of the process.
        conf: The user's `spark.*` keys. Those of Hadoop's file systems apply to what runs without Spark too,
            where the section is silent.
        used: The names of the kinds that the project declares, or has its lake in.
    """

    settings: StorageSettings = field(default_factory=StorageSettings)
    environ: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    used: frozenset[str] = frozenset()

    def at(self, location: str) -> tuple[Bucket, str]:
        """Return the bucket of a location in an object store, and the key; nothing is asked of the store yet.

        Raises:
            NotInstalled: The package `obstore` is missing.
        """
        kind, (_, name, key) = self.kind(location), split_url(location)
        with self._lock:
            if (kind.name, name) not in self._buckets:
                self._buckets[kind.name, name] = Bucket(
                    f"{kind.schemes[0]}://{name}", kind.store(name), kind.endpoint_url
                )
            return self._buckets[kind.name, name], key

    def kind(self, location: str) -> StoreKind:
        """Return the store of a location that is in one."""
        return self._kinds[str(store_of(location))]

    def options(self, location: str) -> dict[str, str]:
        """Return the settings for the `deltalake` package; none for a location that is in no object store."""
        return self.kind(location).given_options(split_url(location)[1]) if is_stored(location) else {}

    def spark_conf(self) -> dict[str, str]:
        """Return the settings of a Spark session; those that the user gave are left out."""
        return {
            key: text
            for name, kind in self._kinds.items()
            if name in self.used
            for key, text in kind.spark_conf().items()
        }

    @shared_property
    def tables(self) -> StoredTables:
        """The tables that were opened last."""
        return StoredTables()

    @cached_property
    def _kinds(self) -> Mapping[str, StoreKind]:
        declared: Mapping[str, Any] = self.settings.declared
        return {
            kind.name: kind(
                self.environ,
                self.conf,
                **({"settings": declared[kind.name]} if kind.name in declared else {}),
            )
            for kind in KINDS
        }

    @shared_property
    def _lock(self) -> Any:
        return Lock()

    @shared_property
    def _buckets(self) -> dict[tuple[str, str], Bucket]:
        return {}


class Bucket:
    """The objects of a bucket; keys have no slash at their ends.

    Each method raises `StorageUnavailable` if the store can't be reached or refuses the request. The client
    repeats requests that fail for a moment.
    """

    def __init__(self, url: str, store: ObjectStore, endpoint_url: str) -> None:
        self.url = url
        self._store = store
        self._at = f" at {endpoint_url}" if endpoint_url else ""

    def under(self, key: str, *, after: str = "") -> Iterator[FileEntry]:
        """Yield the objects below a folder, by name; only those `after` a key.

        They come from one flat listing of pages.
        """
        prefix = f"{key}/" if key else ""
        with self._request(key, "listed"):
            for page in self._store.list(prefix or None, offset=after or None):
                yield from (_object(meta) for meta in page if meta["path"].startswith(prefix))

    def is_folder_mark(self, found: FileEntry) -> bool:
        """Return whether a listed object is the empty one with which Hadoop and others mark a folder.

        Its real key ends with a slash, which listings leave out; in Azure, an attribute of it says so.
        """
        return found.size == 0 and self.find(found.name) is None

    def find(self, key: str) -> FileEntry | None:
        """Return an object, or None if there is none."""
        with self._request(key, "read", may_lack=True):
            found = _object(self._store.head(key))
            is_mark = found.size == 0 and _FOLDER_MARK in self._store.get(key).attributes
            return None if is_mark else found
        return None

    def read(self, key: str) -> bytes | None:
        """Return the content of an object, or None if there is none."""
        with self._request(key, "read", may_lack=True):
            return bytes(self._store.get(key).bytes())
        return None

    def read_range(self, key: str, start: int, size: int) -> bytes:
        """Return bytes of an object that is not empty, by the position of the first one and their number."""
        with self._request(key, "read"):
            return bytes(self._store.get_range(key, start=start, length=size))

    def put(self, key: str, content: bytes) -> None:
        """Write an object, in place of one that exists."""
        with self._request(key, "written"):
            self._store.put(key, content)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        """Write an object unless it exists; return whether it was written, as far as the store says."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._request(key, "written"), suppress(AlreadyExistsError, PreconditionError):
            self._store.put(key, content, mode="create")
            return True
        return False

    def copy(self, source: str, target: str) -> None:
        """Copy an object inside the store, in place of one that exists."""
        with self._request(source, f"copied to {target}"):
            self._store.copy(source, target)

    def remove(self, keys: list[str]) -> None:
        """Remove objects; those that don't exist are left out."""
        for start in range(0, len(keys), _REMOVED_AT_ONCE):
            some = keys[start : start + _REMOVED_AT_ONCE]
            with self._request(some[0], "removed", may_lack=True):
                self._store.delete(some)
                continue
            # Google refuses to remove what does not exist, and leaves the rest.
            for key in some if len(some) > 1 else ():
                self.remove([key])

    @contextmanager
    def _request(self, key: str, what: str, *, may_lack: bool = False) -> Iterator[None]:
        """Raise the error for a request that fails, unless the object is missing and may be."""
        try:
            yield
        except Exception as error:
            if not (may_lack and isinstance(error, FileNotFoundError)):
                raise self.fault(error, key, what) from error

    def fault(self, error: Exception, key: str, what: str) -> LakewrightError:
        """Return the error for a request that failed: what can't be done with the object or folder."""
        if isinstance(error, LakewrightError):
            return error
        found = store_fault(str(error))
        place = f"{self.url}/{key}".rstrip("/") + self._at
        return StorageUnavailable(f"{place} can't be {what}: {found.reason}", remedy=found.remedy)


_FOLDER_MARK = "hdi_isfolder"
"""The attribute of objects that mark a folder, in Azure."""

_REMOVED_AT_ONCE = 1000
"""S3 removes at most this many objects by one request."""


def _object(meta: ObjectMeta) -> FileEntry:
    modified = int(meta["last_modified"].timestamp() * 1000)
    return FileEntry(meta["path"], meta["size"], modified, (meta["e_tag"] or "").strip('"'))


MOST_TABLES = 64
"""Tables that are kept; the names and statistics of a table's files take a kilobyte a file."""

_COMMIT = re.compile(r"\d{20}\.json")


@dataclass(frozen=True, slots=True)
class _Kept:
    """A table that was opened, and the object of its newest commit at that time."""

    table: DeltaFile
    commit: FileEntry


class StoredTables:
    """The tables of an object store that were opened last. Several threads may use it.

    Those who get a table must not change it, for example by loading another version: others get the same one.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = Lock()

    def open(self, bucket: Bucket, key: str, load: Callable[[], DeltaFile]) -> DeltaFile:
        """Return the table at a key as it is now.

        A table that was kept is returned if its newest commit is the same object still, and none follows. So
        a table that was removed and made again is another one, even if it has the same version.

        Args:
            bucket: The bucket of the table.
            key: The table's folder.
            load: Opens the table.
        """
        place = f"{bucket.url}/{key}"
        with self._lock:
            kept = self._kept.get(place)
        listed = None if kept is None else _commits_from(bucket, kept.commit)
        if kept is not None and listed is not None and len(listed) == 1:
            return kept.table
        with self._lock:
            self._kept.pop(place, None)
        table = load()
        wanted = f"{key}/_delta_log/{table.version():020}.json"
        # The listing that showed the change has shown this commit too, unless one came in between.
        commit = next((each for each in listed or () if each.name == wanted), None) or bucket.find(wanted)
        if commit is not None and commit.tag:
            with self._lock:
                self._kept[place] = _Kept(table, commit)
                while len(self._kept) > MOST_TABLES:
                    self._kept.popitem(last=False)
        return table


def _commits_from(bucket: Bucket, commit: FileEntry) -> list[FileEntry] | None:
    """Return the objects of a commit and of those that follow it; None if it is not the same object still."""
    folder, _, _ = commit.name.rpartition("/")
    # `00….crc` and `00….checkpoint.parquet` come before `00….json`.
    found = bucket.under(folder, after=commit.name.removesuffix("son"))
    commits = [each for each in found if _COMMIT.fullmatch(each.name.rpartition("/")[2])]
    # Listings give the time of an object to the millisecond, answers about one object to the second.
    is_same = commits and replace(commits[0], modified=commit.modified) == commit
    return commits if is_same else None


_FOLDER = ".lakewright"
"""Folder in the lake for the object that is written twice."""


def check_stores(storage: ObjectStorage, location: str, state_folder: Path) -> None:
    """Raise an error if Spark can't use a store of the project, or two writers could create the same object.

    It is asked by creating an object twice, which the second time must be refused. The answer is kept in the
    project's state folder, so that a store is asked once.

    Args:
        storage: The project's object stores.
        location: The lake's location, which may be in none of them.
        state_folder: Where what is known of the project is kept.

    Raises:
        SpecError: The store creates the object twice, or the Spark that is installed would.
        StorageUnavailable: The store can't be reached, or refuses to write.
    """
    _check_offered(storage)
    if not is_stored(location) or storage.settings.single_driver:
        return
    kind = storage.kind(location)
    if kind.log_store.endswith("SingleDriverLogStore"):
        raise SpecError.of(
            f"the lake is at {location}, where two drivers of Spark {installed_version()} would replace each "
            "other's commits",
            remedy="Install Spark 4.1 or newer, or, if no other driver writes to the lake, declare "
            "`storage: {single_driver: true}`.",
        )
    name = split_url(location)[1]
    known = state_folder / "conditional_writes" / f"{kind.endpoint_url or kind.name}/{name}".replace("/", "_")
    if known.exists():
        return
    try_writes(storage, location)
    known.parent.mkdir(parents=True, exist_ok=True)
    known.touch()


def _check_offered(storage: ObjectStorage) -> None:
    release = installed_release()
    for kind in KINDS:
        if kind.name in storage.used and not store_jars(release, kind.name):
            oldest = next(each for each in RELEASES if store_jars(each, kind.name))
            raise SpecError.of(
                f"{kind.title} needs a newer Spark than {installed_version()}",
                remedy=f"Install Spark {oldest.spark} or newer, as in `pip install 'lakewright[spark]'`.",
            )


def try_writes(storage: ObjectStorage, location: str) -> None:
    """Raise an error if no object can be created and removed at a location, or if it can be created twice.

    Raises:
        SpecError: The store creates the object twice, and the project doesn't declare a single driver.
        StorageUnavailable: The store can't be reached, or refuses to write or to remove.
    """
    bucket, key = storage.at(location)
    probe = f"{key}/{_FOLDER}/probe-{uuid4()}".lstrip("/")
    bucket.put_if_absent(probe, b"first")
    try:
        is_refused = not bucket.put_if_absent(probe, b"second")
    finally:
        bucket.remove([probe])
    if not is_refused and not storage.settings.single_driver:
        raise SpecError.of(
            f"the store of {bucket.url} ignores `If-None-Match`: two drivers would lose each other's commits",
            remedy="Use a version of the store with conditional writes, or declare "
            "`storage: {single_driver: true}` if only one process at a time ever writes to the lake.",
        )

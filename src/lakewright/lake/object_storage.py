"""Object stores with the interface of S3: their settings for Spark and for Python, and their objects.

Spark reaches them through Hadoop's file system `s3a`, the `deltalake` and `obstore` packages without a JVM.
All take their settings from the project's `storage:` section, and from the environment.
"""

from __future__ import annotations

import configparser
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lakewright.errors import LakewrightError, NotInstalled, SpecError, StorageUnavailable
from lakewright.lake.paths import FileEntry, split_url
from lakewright.lake.storage_errors import store_fault
from lakewright.spark.releases import installed_release, installed_version
from lakewright.spec.models.storage import Credentials, S3Storage, StorageSettings

if TYPE_CHECKING:
    from deltalake import DeltaTable as DeltaFile
    from obstore import ObjectMeta
    from obstore.store import S3Store

__all__ = ["LOG_STORE", "Bucket", "ObjectStorage", "check_conditional_writes", "try_writes"]


_SINGLE_DRIVER = "io.delta.storage.S3SingleDriverLogStore"
"""Delta's log on S3 for one driver, which a Hadoop without conditional writes needs."""

LOG_STORE = "io.lakewright.storage.PutIfAbsentLogStore"
"""Delta's log on S3, in which two drivers can't replace each other's commits; see `java/`."""

_PREFIX = "spark.hadoop.fs.s3a."

_READING = {
    # A slice reads the table's log and the same few files several times. By default what was read is
    # forgotten after a second. Another content of the object has another tag, by which it is kept.
    "cache.timeout": "60000",
    # By default 2 GiB, more than many a heap.
    "max.memory.limit": str(128 * 1024 * 1024),
    # Spark infers the schema of Parquet without the object's tag. By default the tag that is known then is a
    # day old, and a slice that was replaced since can't be read.
    "metadatastore.ttl": "1000",
}
"""How Hadoop 3.5 reads objects: by Amazon's analytics accelerator, whose cache has these settings."""


@dataclass(frozen=True)
class ObjectStorage:
    """The object stores of a project.

    Attributes:
        settings: The project's `storage:` section.
        environ: The environment variables of the process.
        conf: The user's `spark.*` keys. Those of `spark.hadoop.fs.s3a` apply to what runs without Spark too,
            where the section is silent.
        is_used: Whether the project declares one, or has its lake there.
    """

    settings: StorageSettings = field(default_factory=StorageSettings)
    environ: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    is_used: bool = False

    @property
    def s3(self) -> S3Storage:
        """The settings of S3; the defaults if the project declares none."""
        return self.settings.s3 or S3Storage()

    @property
    def endpoint_url(self) -> str:
        """The URL of the store; empty for Amazon's own."""
        declared = self.s3.endpoint_url or self._user("endpoint")
        given = (
            declared or self.environ.get("AWS_ENDPOINT_URL_S3") or self.environ.get("AWS_ENDPOINT_URL", "")
        )
        if given and "://" not in given:
            scheme = "http" if self._user("connection.ssl.enabled") == "false" else "https"
            return f"{scheme}://{given}"
        return given

    @property
    def region(self) -> str:
        """The region."""
        declared = self.s3.region or self._user("endpoint.region")
        known = declared or self.environ.get("AWS_REGION") or self.environ.get("AWS_DEFAULT_REGION")
        return known or "us-east-1"

    @property
    def is_path_style(self) -> bool:
        """Whether the bucket is a part of the URL's path."""
        if self.s3.path_style is not None:
            return self.s3.path_style
        given = self._user("path.style.access")
        return given.lower() == "true" if given else bool(self.endpoint_url)

    @cached_property
    def keys(self) -> Mapping[str, str]:
        """The credentials that are known; none if they come from the machine's role.

        Raises:
            SpecError: The profile that is declared has no keys.
        """
        s3 = self.s3
        found: tuple[str, ...]
        if s3.credentials is Credentials.STATIC:
            found = (s3.access_key, s3.secret_key, s3.session_token)
        elif s3.credentials is Credentials.PROFILE:
            found = _profile_keys(s3.profile, self.environ)
        elif self._user("access.key"):
            found = tuple(self._user(key) for key in ("access.key", "secret.key", "session.token"))
        else:
            names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
            found = tuple(self.environ.get(name, "") for name in names)
        named = zip(("access_key", "secret_key", "session_token"), found, strict=True)
        return {name: text for name, text in named if text}

    def spark_conf(self) -> dict[str, str]:
        """Return the settings of a Spark session; those that the user gave are left out."""
        keys, store = self.keys, _log_store()
        ours = {
            f"{_PREFIX}endpoint": self.endpoint_url,
            f"{_PREFIX}endpoint.region": self.region,
            f"{_PREFIX}path.style.access": str(self.is_path_style).lower(),
            f"{_PREFIX}access.key": keys.get("access_key", ""),
            f"{_PREFIX}secret.key": keys.get("secret_key", ""),
            f"{_PREFIX}session.token": keys.get("session_token", ""),
            # Names of new files are unique: asking whether they exist costs two requests a file.
            f"{_PREFIX}performance.flags": "create,mkdir",
            **{f"{_PREFIX}analytics.accelerator.physicalio.{key}": text for key, text in _READING.items()},
            # One place has one name: `s3://` is `s3a://`.
            "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
            "spark.delta.logStore.s3.impl": store,
            "spark.delta.logStore.s3a.impl": store,
        }
        return {key: text for key, text in ours.items() if text and key not in self.conf}

    def options(self) -> dict[str, str]:
        """Return the settings for the `deltalake` package."""
        keys = self.keys
        options = {
            "aws_region": self.region,
            "aws_endpoint_url": self.endpoint_url,
            "aws_allow_http": "true" if self.endpoint_url.startswith("http://") else "",
            "aws_virtual_hosted_style_request": str(not self.is_path_style).lower(),
            "aws_access_key_id": keys.get("access_key", ""),
            "aws_secret_access_key": keys.get("secret_key", ""),
            "aws_session_token": keys.get("session_token", ""),
            # Writers that are first win; there is no lock that a dead one leaves behind.
            "aws_conditional_put": "etag",
        }
        return {key: text for key, text in options.items() if text}

    def bucket(self, name: str) -> Bucket:
        """Return a bucket; nothing is asked of the store yet.

        Raises:
            NotInstalled: The package `obstore` is missing.
        """
        with self._lock:
            if name not in self._buckets:
                self._buckets[name] = Bucket(name, self._store(name), self.endpoint_url)
            return self._buckets[name]

    @cached_property
    def tables(self) -> StoredTables:
        """The tables that were opened last."""
        return StoredTables()

    @cached_property
    def _lock(self) -> Any:
        return Lock()

    @cached_property
    def _buckets(self) -> dict[str, Bucket]:
        return {}

    def _store(self, name: str) -> S3Store:
        try:
            from obstore.store import S3Store
        except ImportError as error:
            raise NotInstalled(
                f"s3://{name} can't be read without Spark: the package obstore is missing",
                remedy="Run `pip install 'lakewright[s3]'`.",
            ) from error
        options: Any = self.options()
        allow_http = options.pop("aws_allow_http", "") == "true"
        return S3Store(name, config=options, client_options={"allow_http": allow_http, "timeout": "60s"})

    def _user(self, key: str) -> str:
        return self.conf.get(f"{_PREFIX}{key}", "")


def _profile_keys(profile: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of a profile in AWS's credentials file.

    Raises:
        SpecError: There is no such profile, or it has no keys, as one of single sign-on.
    """
    home = Path(environ.get("HOME") or Path.home())
    file = Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws" / "credentials").expanduser()
    found = configparser.RawConfigParser()
    found.read(file, "utf-8")
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    keys = tuple(found.get(profile, name, fallback="") for name in names)
    if not (keys[0] and keys[1]):
        raise SpecError.of(
            f"storage: s3: the profile {profile!r} has no keys in {file}",
            remedy="Add aws_access_key_id and aws_secret_access_key there, or put temporary keys into the "
            "environment (`aws configure export-credentials --format env`), with `credentials: environment`.",
        )
    return keys


class Bucket:
    """The objects of a bucket; keys have no slash at their ends.

    Each method raises `StorageUnavailable` if the store can't be reached or refuses the request. The client
    repeats requests that fail for a moment.
    """

    def __init__(self, name: str, store: S3Store, endpoint_url: str) -> None:
        self.name = name
        self._store = store
        self._where = f"s3://{name}"
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

        Its real key ends with a slash, which listings leave out.
        """
        return found.size == 0 and self.find(found.name) is None

    def find(self, key: str) -> FileEntry | None:
        """Return an object, or None if there is none."""
        with self._request(key, "read", may_lack=True):
            return _object(self._store.head(key))
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
            with self._request(keys[start], "removed", may_lack=True):
                self._store.delete(keys[start : start + _REMOVED_AT_ONCE])

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
        place = f"{self._where}/{key}".rstrip("/") + self._at
        return StorageUnavailable(f"{place} can't be {what}: {found.reason}", remedy=found.remedy)


_REMOVED_AT_ONCE = 1000
"""S3 removes at most this many objects by one request."""


def _object(meta: ObjectMeta) -> FileEntry:
    modified = int(meta["last_modified"].timestamp() * 1000)
    return FileEntry(meta["path"], meta["size"], modified, meta["e_tag"] or "")


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
        place = f"{bucket.name}/{key}"
        with self._lock:
            kept = self._kept.get(place)
        listed = None if kept is None else _commits_from(bucket, kept.commit)
        if kept is not None and listed is not None and len(listed) == 1:
            return kept.table
        with self._lock:
            self._kept.pop(place, None)
        table = load()
        wanted = f"{key}/_delta_log/{table.version():020}.json"
        # The listing that told of the change has told of this commit too, unless one came in between.
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
    # Listings tell the time of an object to the millisecond, answers about one object to the second.
    same = commits and (commits[0].name, commits[0].size, commits[0].tag) == (
        commit.name,
        commit.size,
        commit.tag,
    )
    return commits if same else None


_FOLDER = ".lakewright"
"""Folder in the lake for the object that is written twice."""


def _log_store() -> str:
    try:
        is_conditional = installed_release().has_conditional_writes
    except LakewrightError:  # the start of Spark says so
        return LOG_STORE
    return LOG_STORE if is_conditional else _SINGLE_DRIVER


def check_conditional_writes(storage: ObjectStorage, location: str, state_folder: Path) -> None:
    """Raise an error if the store lets two writers create the same object.

    It is asked by creating an object twice, which the second time must be refused. The answer is kept in the
    project's state folder, so that a store is asked once.

    Args:
        storage: The project's object stores.
        location: The lake's location.
        state_folder: Where what is known of the project is kept.

    Raises:
        SpecError: The store creates the object twice, or the Spark that is installed would.
        StorageUnavailable: The store can't be reached, or refuses to write.
    """
    if storage.settings.single_driver:
        return
    if not installed_release().has_conditional_writes:
        raise SpecError.of(
            f"the lake is at {location}, where two drivers of Spark {installed_version()} would replace each "
            "other's commits",
            remedy="Install Spark 4.1 or newer, or, if no other driver writes to the lake, declare "
            "`storage: {single_driver: true}`.",
        )
    name, _ = split_url(location)
    known = state_folder / "conditional_writes" / f"{storage.endpoint_url or 'aws'}/{name}".replace("/", "_")
    if known.exists():
        return
    try_writes(storage, location)
    known.parent.mkdir(parents=True, exist_ok=True)
    known.touch()


def try_writes(storage: ObjectStorage, location: str) -> None:
    """Raise an error if no object can be created and removed at a location, or if it can be created twice.

    Raises:
        SpecError: The store creates the object twice, and the project doesn't declare a single driver.
        StorageUnavailable: The store can't be reached, or refuses to write or to remove.
    """
    name, key = split_url(location)
    bucket = storage.bucket(name)
    probe = f"{key}/{_FOLDER}/probe-{uuid4()}".lstrip("/")
    bucket.put_if_absent(probe, b"first")
    try:
        is_refused = not bucket.put_if_absent(probe, b"second")
    finally:
        bucket.remove([probe])
    if not is_refused and not storage.settings.single_driver:
        raise SpecError.of(
            f"the store of s3://{name} ignores `If-None-Match`: two drivers would lose each other's commits",
            remedy="Use a version of the store with conditional writes, or declare "
            "`storage: {single_driver: true}` if only one process at a time ever writes to the lake.",
        )

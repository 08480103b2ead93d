"""Discovery of slices in bronze, on this machine, in object stores, or where only Hadoop reaches.

Slices have names, an order, item ids and fingerprints.

Source: `processing-manifest.md`, "Item"; rules of entities, "Slices".
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from lakewright.errors import (
    LakewrightError,
    NotInstalled,
    SliceError,
    SliceUnsettled,
    SpecError,
    StorageUnavailable,
)
from lakewright.lake.files import HadoopFiles, file_system, is_hidden, is_visible
from lakewright.lake.paths import FileEntry, is_stored, join, local_path
from lakewright.manifest.ledger import DiscoveredSlice
from lakewright.manifest.payload import MAY_SKIP
from lakewright.manifest.record import Application
from lakewright.plan.resource import canonical_scheme
from lakewright.spark.jvm import is_jvm_failure
from lakewright.spec.expressions.values import parse_length
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.lake.object_storage import Bucket, ObjectStorage
    from lakewright.manifest.item import Item


SUCCESS = "_SUCCESS"
TEMPORARY = "_temporary"

UNFINISHED = ("._copying_", ".tmp", ".part", ".partial", ".filepart", ".crdownload")
"""Endings that Hadoop's `put`, SFTP clients and browsers give to a file while they write it."""

BRONZE_UNREADABLE = "bronze_unreadable"
"""The alert that a bronze folder, or a slice in it, can't be read."""

_LET_READ = "Let the user who runs Lakewright read it, then run again."


@dataclass(frozen=True)
class Slice:
    """A file, or a folder of files, in an entity's bronze folder.

    Attributes:
        name: Name of the file or folder.
        path: A local path or a URI.
        files: The files of the slice; their names are relative to it.
        marks: Hidden names in the folder, such as `_SUCCESS`.
        is_folder: Whether the slice is a folder.
        place: What identifies it, if that is not its path: see `SliceFolder.place`.
    """

    name: str
    path: str
    files: tuple[FileEntry, ...]
    marks: frozenset[str] = frozenset()
    is_folder: bool = False
    place: str | None = None

    @property
    def item_id(self) -> str:
        """The id of its item."""
        return item_id(self.place or self.path)

    @property
    def is_being_written(self) -> bool:
        """Whether a mark, or the ending of a name, says that a program still writes it."""
        if TEMPORARY in self.marks or self.name.lower().endswith(UNFINISHED):
            return True
        return any(file.name.lower().endswith(UNFINISHED) for file in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of its files."""
        return tuple(join(self.path, file.name) for file in self.files) if self.is_folder else (self.path,)

    @property
    def size(self) -> int:
        """Total bytes of its files."""
        return sum(file.size for file in self.files)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """Identifies its content without reading it: size, latest change, number of files, digest."""
        lines = (f"{file.name}\0{file.size}\0{file.modified}" for file in self.files)
        digest = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
        return {
            "size": self.size,
            "modified": max((file.modified for file in self.files), default=0),
            "files": len(self.files),
            "digest": digest[:32],
        }


def unreadable_folder(folder: str, why: str, remedy: str = _LET_READ) -> StorageUnavailable:
    """Return the error for a bronze folder that can't be read."""
    return StorageUnavailable(
        f"the bronze folder {folder} can't be read: {why}",
        remedy=remedy,
        details={"alerts": [BRONZE_UNREADABLE]},
    )


def list_local(folder: Path, unreadable: dict[str, str]) -> tuple[bool, list[Slice]]:
    """Return whether a folder exists, and its slices; add those that can't be read to `unreadable`."""
    try:
        entries = [entry for entry in os.scandir(folder) if is_visible(entry.name)]
    except FileNotFoundError as error:
        if folder.is_symlink():
            raise unreadable_folder(str(folder), "it is a link to a place that does not exist") from error
        return False, []
    except OSError as error:
        if isinstance(error, NotADirectoryError):
            remedy = "Move the file away, and bring the folder back if it was moved."
            raise unreadable_folder(str(folder), "a file stands there", remedy) from error
        raise unreadable_folder(str(folder), error.strerror or str(error)) from error
    slices = []
    for entry in entries:
        try:
            slices.append(local_slice(entry))
        except FileNotFoundError as error:
            if why := _dangling(Path(error.filename or entry.path)):
                unreadable[entry.name] = why
            # Otherwise it was removed while the folder was listed.
        except OSError as error:
            unreadable[entry.name] = f"{error.filename or entry.path}: {error.strerror or error}"
    return True, slices


def _dangling(path: Path) -> str | None:
    """Return that a path is a link to nothing, or None if it is not."""
    is_dangling = path.is_symlink() and not path.exists()
    return f"{path} is a link to {path.readlink()}, which does not exist" if is_dangling else None


def local_slice(place: Path | os.DirEntry[str]) -> Slice:
    """Return a file or folder of this machine as a slice.

    Raises:
        OSError: It can't be read, or is not there.
    """
    name, path, status = place.name, os.fspath(place), place.stat()
    if not stat.S_ISDIR(status.st_mode):
        return Slice(name, path, (FileEntry(name, status.st_size, status.st_mtime_ns),))
    marks = frozenset(entry.name for entry in os.scandir(path) if not is_visible(entry.name))
    files = tuple(sorted(_local_files(Path(path)), key=lambda file: file.name))
    return Slice(name, path, files, marks, is_folder=True)


def _local_files(root: Path) -> Iterator[FileEntry]:
    for folder, folders, names in os.walk(root, onerror=_raise, followlinks=True):
        folders[:] = [name for name in folders if not is_hidden(name)]
        for name in names:
            if is_visible(name):
                file = Path(folder, name)
                status = file.stat()
                yield FileEntry(file.relative_to(root).as_posix(), status.st_size, status.st_mtime_ns)


def _raise(error: OSError) -> None:
    # By default, `os.walk` leaves out folders that it can't read.
    raise error


def list_hadoop(bronze: str, lake: Lake) -> tuple[bool, list[Slice]]:
    """Return whether a folder exists in any file system that Hadoop supports, and its slices."""
    try:
        files = HadoopFiles(lake)
        exists = files.exists(bronze)
        return exists, list(_hadoop_slices(bronze, files, lake)) if exists else []
    except NotInstalled:
        raise
    except Exception as error:
        if is_jvm_failure(error):
            raise
        java = getattr(error, "java_exception", None)
        why = str(error) if java is None else str(java.toString())
        raise unreadable_folder(bronze, why.partition("\n")[0]) from error


def _hadoop_slices(bronze: str, files: HadoopFiles, lake: Lake) -> Iterator[Slice]:
    system, root = file_system(lake.spark, bronze)
    for status in system.listStatus(root):
        place = status.getPath()
        name = str(place.getName())
        if not is_visible(name):
            continue
        path = f"{bronze.rstrip('/')}/{name}"
        if not status.isDirectory():
            file = FileEntry(name, int(status.getLen()), int(status.getModificationTime()))
            yield Slice(name, path, (file,))
            continue
        inside = (str(each.getPath().getName()) for each in system.listStatus(place))
        marks = frozenset(each for each in inside if not is_visible(each))
        yield Slice(name, path, tuple(files.listed(path)), marks, is_folder=True)


def list_objects(bronze: str, storage: ObjectStorage, name: str | None = None) -> tuple[bool, list[Slice]]:
    """Return whether a bronze folder exists in an object store, and its slices, or only the one with a name.

    It is one flat listing, whatever the depth of the folder.

    Raises:
        StorageUnavailable: The store can't be reached, or refuses to list the folder.
    """
    objects, key = storage.at(bronze)
    found = list(objects.under(key if name is None else f"{key}/{name}".lstrip("/")))
    if name is not None and (single := objects.find(f"{key}/{name}".lstrip("/"))) is not None:
        found.append(single)
    below = [(each.name.removeprefix(f"{key}/" if key else ""), each) for each in found]
    by_slice = groupby(sorted(below, key=lambda pair: pair[0]), key=lambda pair: pair[0].partition("/")[0])
    slices = (_stored(bronze, first, list(pairs), objects) for first, pairs in by_slice if is_visible(first))
    return bool(found), list(slices)


def _stored(bronze: str, name: str, found: list[tuple[str, FileEntry]], bucket: Bucket) -> Slice:
    path = join(bronze, name)
    inside = [(key.removeprefix(f"{name}/"), stored) for key, stored in found if key != name]
    if not inside and not bucket.is_folder_mark(found[0][1]):
        only = found[0][1]
        return Slice(name, path, (FileEntry(name, only.size, only.modified),))
    firsts = (key.partition("/")[0] for key, _ in inside)
    marks = frozenset(first for first in firsts if not is_visible(first))
    files = tuple(
        FileEntry(key, each.size, each.modified)
        for key, each in inside
        if is_visible(key) and not bucket.is_folder_mark(each)
    )
    return Slice(name, path, files, marks, is_folder=True)


_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Listing:
    """What a bronze folder holds.

    Attributes:
        slices: The complete slices, in natural order of their names.
        unreadable: Names that can't be read, each with the reason.
        incomplete: Names of slices that are still being written.
        unsettled: Those of them that only changed a moment ago: see `without_unsettled`.
        exists: Whether there is such a folder.
    """

    slices: tuple[Slice, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    incomplete: tuple[str, ...] = ()
    exists: bool = True
    unsettled: frozenset[str] = frozenset()


def list_slices(bronze: SliceFolder, lake: Lake) -> tuple[Slice, ...]:
    """Return the slices in a bronze folder, in natural order of their names; none if there is no folder.

    Names that start with `_` or `.` are not slices, nor is a folder that is empty or still being written.

    Raises:
        StorageUnavailable: The folder can't be read.
    """
    return list_bronze(bronze, lake).slices


def list_bronze(bronze: SliceFolder, lake: Lake) -> Listing:
    """Return the slices in a bronze folder, and what else stands there instead of a slice.

    Raises:
        StorageUnavailable: The folder can't be read.
    """
    unreadable: dict[str, str] = {}
    exists, slices = _list_folder(bronze.folder, lake, unreadable)
    found = sorted(_chosen(slices, bronze), key=lambda slice_: natural_key(slice_.name))
    is_marked = any(SUCCESS in slice_.marks for slice_ in found)
    complete = [s for s in found if s.files and not s.is_being_written and (not is_marked or _is_marked(s))]
    # An empty folder is not a slice, and not one that is being written either.
    names = {s.name for s in complete}
    incomplete = tuple(s.name for s in found if s.files and s.name not in names)
    return Listing(tuple(complete), dict(sorted(unreadable.items())), incomplete, exists)


def _list_folder(folder: str, lake: Lake, unreadable: dict[str, str]) -> tuple[bool, list[Slice]]:
    path = local_path(folder)
    if is_stored(folder):
        return list_objects(folder, lake.storage)
    return list_hadoop(folder, lake) if path is None else list_local(path, unreadable)


def _chosen(entries: Iterable[Slice], bronze: SliceFolder) -> Iterator[Slice]:
    """Yield the slices among the files and folders of a bronze folder."""
    if bronze.is_shared:
        yield from _by_files(entries, bronze)
        return
    for entry in entries:
        if bronze.has_entry(entry.name):
            files = tuple(file for file in entry.files if not entry.is_folder or bronze.has_file(file.name))
            yield entry if len(files) == len(entry.files) else replace(entry, files=files)


def _by_files(entries: Iterable[Slice], bronze: SliceFolder) -> Iterator[Slice]:
    """Yield the slices that the paths of files choose."""
    by_slice: dict[tuple[str, str], list[FileEntry]] = {}
    for entry in entries:
        for file in entry.files:
            path = f"{entry.name}/{file.name}" if entry.is_folder else entry.name
            if (found := bronze.slice_of(path)) is not None:
                inside = path.removeprefix(f"{found[1]}/")
                by_slice.setdefault(found, []).append(replace(file, name=inside))
    for (name, folder), files in by_slice.items():
        path, place = join(bronze.folder, *filter(None, (folder,))), bronze.place(name)
        if len(files) == 1:
            path = join(path, files[0].name)
        ordered = tuple(sorted(files, key=lambda file: file.name))
        yield Slice(name, path, ordered, is_folder=len(files) > 1, place=place)


def find_slice(bronze: SliceFolder, name: str, lake: Lake) -> Slice | None:
    """Return one slice in its present state, or None if it does not exist or is not complete.

    Raises:
        StorageUnavailable: It can't be read.
    """
    path = local_path(bronze.folder)
    if bronze.is_shared:
        return next((slice_ for slice_ in list_slices(bronze, lake) if slice_.name == name), None)
    if is_stored(bronze.folder):
        _, there = list_objects(bronze.folder, lake.storage, name)
        found = [each for each in there if each.name == name]
    elif path is None:
        return next((slice_ for slice_ in list_slices(bronze, lake) if slice_.name == name), None)
    else:
        try:
            found = [local_slice(path / name)]
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        except OSError as error:
            raise StorageUnavailable(
                f"the slice {name} can't be read: {error.filename or path / name}: {error.strerror or error}",
                details={"alerts": [BRONZE_UNREADABLE]},
            ) from error
    return next((s for s in _chosen(found, bronze) if s.files and not s.is_being_written), None)


def discovered(slices: Iterable[Slice], application: Application, entity: str) -> Iterator[DiscoveredSlice]:
    """Yield slices in the form in which the manifest records them."""
    for slice_ in slices:
        yield DiscoveredSlice(slice_.item_id, application, entity, slice_.name, slice_.fingerprint)


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that orders names as people do: numbers in them by value.

    Example:
        >>> sorted(["s10", "s9b", "s9", "s09"], key=natural_key)
        ['s09', 's9', 's9b', 's10']
    """
    parts = _DIGITS.split(name)
    key = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]
    return (*key, (-1, 0, name))


def item_id(path: str) -> str:
    """Return the item id of a slice's path: a URI without a trailing slash.

    Example:
        >>> item_id("/lake/a b%20"), item_id("s3a://lake/x/")
        ('file:///lake/a%20b%2520', 's3://lake/x')
    """
    local = local_path(path)
    if local is not None:
        return "file://" + quote(os.fsencode(os.path.normpath(local.absolute())), safe=_SAFE)
    return canonical_id(path)


def canonical_id(uri: str) -> str:
    """Return a URI in canonical form: `s3a` becomes `s3`, `file:/x` becomes `file:///x`.

    Example:
        >>> canonical_id("file:/lake/a%20b/"), canonical_id("S3A://lake//x")
        ('file:///lake/a%20b', 's3://lake/x')
    """
    scheme, _, rest = uri.partition(":")
    scheme = canonical_scheme(scheme)
    if scheme == "file":
        path = "/" + rest.lstrip("/").rstrip("/")
        return "file://" + quote(
            unquote(path, errors="surrogateescape").encode("utf-8", "surrogateescape"), safe=_SAFE
        )
    host, _, path = rest.lstrip("/").partition("/")
    parts = [part for part in path.split("/") if part]
    return "/".join([f"{scheme}://{host}", *parts])


_SAFE = "/!$&'()*+,;=:@~"


def _is_marked(slice_: Slice) -> bool:
    """Return whether a slice is complete if others have the mark `_SUCCESS`; a file always is."""
    return not slice_.is_folder or SUCCESS in slice_.marks


def slice_name(item: Item) -> str:
    """Return the name of an item's slice, or the end of the item's id if it was recorded without a name."""
    noted = None if item.new is None else item.new.note.get("slice")
    return str(noted) if noted else slice_of_id(item.item_id)


def slice_of_id(item_id: str) -> str:
    """Return the name of a slice whose item has this id.

    Example:
        >>> slice_of_id("file:///lake/orders/a%20b"), slice_of_id("s3://lake/orders/a%20b")
        ('a b', 'a%20b')
    """
    last = item_id.rstrip("/").rpartition("/")[2]
    return unquote(last, errors="surrogateescape") if item_id.startswith("file:") else last


def called_name(entity: str, slice_: Item | str) -> str:
    """Return what commands call a slice of an entity, by its item or its name: `ENTITY/SLICE`."""
    return f"{entity}/{slice_ if isinstance(slice_, str) else slice_name(slice_)}"


SECOND_LOOKS = (0.5, 1.0, 2.0)
"""Seconds to wait before each further look at a slice of which a store lists other files than before."""


def find_unchanged_slice(
    lake: Lake, bronze: SliceFolder, item: Item, *, sleep: Callable[[float], None] = time.sleep
) -> Slice:
    """Return an item's slice if it is unchanged since it was recorded.

    Where the slice is not on a disk, a listing may have shown a part of it. It is then listed again, and no
    operator has to resolve it.

    Raises:
        SliceError: The slice is gone, has changed on a disk, or has 0 bytes.
        SliceUnsettled: A store lists other files than were recorded; `details` has the `found` fingerprint.
        StorageUnavailable: The bronze folder is gone from this machine: it may not be mounted.
    """
    name = slice_name(item)
    found = find_slice(bronze, name, lake)
    is_stored = local_path(bronze.folder) is None
    for seconds in SECOND_LOOKS if is_stored else ():
        if found is not None and not _is_other(item, found):
            break
        sleep(seconds)
        found = find_slice(bronze, name, lake)
    return check_unchanged(item, found, bronze)


def check_unchanged(item: Item, found: Slice | None, bronze: SliceFolder) -> Slice:
    """Return the slice of an item as it was found in bronze; see `find_unchanged_slice` for the errors."""
    folder = local_path(bronze.folder)
    name, is_stored = slice_name(item), folder is None
    if found is None and folder is not None and not folder.exists():
        raise StorageUnavailable(
            f"the slice {name} can't be read: there is no folder {bronze.folder}",
            remedy="Mount it, or correct bronze_path.",
            details={"alerts": [BRONZE_UNREADABLE]},
        )
    if found is None:
        raise SliceError(
            f"the slice {name} is gone from {bronze}",
            remedy="Bring it back.",
            details={MAY_SKIP: True},
        )
    if _is_other(item, found):
        raise _changed_error(item, found, is_stored=is_stored)
    check_not_empty(found)
    return found


def _is_other(item: Item, found: Slice) -> bool:
    return item.fingerprint is not None and dict(item.fingerprint) != found.fingerprint


def _changed_error(item: Item, found: Slice, *, is_stored: bool) -> LakewrightError:
    recorded = dict(item.fingerprint or {})
    details = {"recorded": recorded, "found": found.fingerprint}
    if not is_stored:
        return SliceError(
            f"the slice {found.name} has changed since it was discovered",
            remedy="Make sure that its present content is right.",
            details=details,
        )
    then = counted(int(recorded.get("files") or 0), "file")
    return SliceUnsettled(
        f"the store lists {counted(len(found.files), 'file')} of {found.size} bytes for the slice "
        f"{found.name}; "
        f"when it was discovered, it listed {then} of {recorded.get('size', 0)} bytes",
        details=details,
    )


def check_not_empty(slice_: Slice) -> None:
    """Raise `SliceError` if a slice has 0 bytes."""
    if slice_.size == 0:
        raise SliceError(
            f"the slice {slice_.name} has 0 bytes",
            remedy="Deliver it again.",
            details={"path": slice_.path, MAY_SKIP: True},
        )


SETTLE = "lakewright.bronze.settle"
"""The configuration that says how long a slice must stay unchanged to count as complete."""

_LEAST_NANOSECONDS = 10**16
"""Times of files above this are in nanoseconds, others in milliseconds; as the former, it is April 1970."""


def settle_of(config: Mapping[str, str]) -> timedelta:
    """Return how long a slice must stay unchanged to count as complete; by default it need not.

    Raises:
        SpecError: The configured text is not a length of time.
    """
    try:
        return parse_length(config.get(SETTLE, "0s"))
    except ValueError as error:
        raise SpecError.of(f"configuration {SETTLE}: {error}", remedy="Write 2s, 1m or PT10S.") from None


def without_unsettled(listing: Listing, settle: timedelta, now: datetime) -> Listing:
    """Return a listing in which slices that are still being written are not complete."""
    if not settle:
        return listing
    young = frozenset(each.name for each in listing.slices if _is_unsettled(each, settle, now))
    if not young:
        return listing
    return replace(
        listing,
        slices=tuple(each for each in listing.slices if each.name not in young),
        incomplete=(*listing.incomplete, *sorted(young, key=natural_key)),
        unsettled=young,
    )


def _is_unsettled(slice_: Slice, settle: timedelta, now: datetime) -> bool:
    if SUCCESS in slice_.marks:
        return False
    # The time of a file that lies further ahead is that of another clock, and never gets old.
    return abs(now.timestamp() - _changed(slice_)) < settle.total_seconds()


def seconds_to_settle(listing: Listing, settle: timedelta, now: datetime) -> float | None:
    """Return in how many seconds the next slice counts as complete; None if all that stand there do."""
    young = [each for each in listing.slices if _is_unsettled(each, settle, now)]
    return min((_changed(each) + settle.total_seconds() - now.timestamp() for each in young), default=None)


def _changed(slice_: Slice) -> float:
    return modified_seconds(max((file.modified for file in slice_.files), default=0))


def modified_seconds(modified: int) -> float:
    """Return the time of a file, which listings have in nanoseconds or milliseconds, in seconds since 1970.

    Example:
        >>> modified_seconds(1_700_000_000_500_000_000), modified_seconds(1_700_000_000_500)
        (1700000000.5, 1700000000.5)
    """
    return modified / (1e9 if modified >= _LEAST_NANOSECONDS else 1e3)

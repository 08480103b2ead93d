"""Discovery of slices in bronze, on this machine, in object stores, or where only Hadoop reaches.

Slices have names, an order, item ids and fingerprints.

Source: `processing-manifest.md`, "Item"; rules of entities, "Slices".
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from lakewright.errors import (
    LakewrightError,
    SliceError,
    SliceUnsettled,
    SpecError,
    StorageUnavailable,
)
from lakewright.lake.files import FolderEntry, files_at
from lakewright.lake.paths import FileEntry, join, local_path
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
        is_whole: Whether these are all files in the folder; a pattern may leave out others.
    """

    name: str
    path: str
    files: tuple[FileEntry, ...]
    marks: frozenset[str] = frozenset()
    is_folder: bool = False
    place: str | None = None
    is_whole: bool = True

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


def _entries(folder: str, lake: Lake) -> list[FolderEntry] | None:
    """Return what a bronze folder holds; None if there is no folder.

    Raises:
        StorageUnavailable: The folder can't be read.
    """
    try:
        return list(files_at(folder, lake).entries(folder))
    except FileNotFoundError as error:
        if why := _dangling(folder):
            raise unreadable_folder(folder, why) from error
        return None
    except NotADirectoryError as error:
        remedy = "Move the file away, and bring the folder back if it was moved."
        raise unreadable_folder(folder, "a file stands there", remedy) from error
    except Exception as error:
        if isinstance(error, LakewrightError) or is_jvm_failure(error):
            raise
        raise unreadable_folder(folder, _why(error)) from error


def _why(error: Exception) -> str:
    """Return what an error of this machine, or of Java, says."""
    java = getattr(error, "java_exception", None)
    text = getattr(error, "strerror", None) or str(error if java is None else java.toString())
    return str(text).partition("\n")[0]


def _why_unreadable(error: OSError, place: str) -> str | None:
    """Return why something in a folder can't be read; None if it was removed meanwhile."""
    path = str(error.filename or place)
    if isinstance(error, FileNotFoundError):
        return _dangling(path)
    return f"{path}: {error.strerror or error}"


def _dangling(place: str) -> str | None:
    """Return that a path of this machine is a link to nothing, or None if it is not."""
    path = local_path(place)
    if path is None or not path.is_symlink() or path.exists():
        return None
    return f"{path} is a link to {path.readlink()}, which does not exist"


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
    entries = _entries(bronze.folder, lake)
    unreadable = {
        each.name: why
        for each in entries or ()
        if each.error is not None and (why := _why_unreadable(each.error, join(bronze.folder, each.name)))
    }
    found = sorted(_slices(entries or (), bronze), key=lambda slice_: natural_key(slice_.name))
    is_marked = any(SUCCESS in slice_.marks for slice_ in found)
    complete = [s for s in found if s.files and not s.is_being_written and (not is_marked or _is_marked(s))]
    # An empty folder is not a slice, and not one that is being written either.
    names = {s.name for s in complete}
    incomplete = tuple(s.name for s in found if s.files and s.name not in names)
    return Listing(tuple(complete), dict(sorted(unreadable.items())), incomplete, entries is not None)


def _slices(entries: Iterable[FolderEntry], bronze: SliceFolder) -> Iterator[Slice]:
    """Yield the slices among the files and folders of a bronze folder."""
    readable = (each for each in entries if each.error is None)
    if bronze.is_shared:
        yield from _by_files(readable, bronze)
        return
    root = str(local_path(bronze.folder) or bronze.folder)
    for each in readable:
        if bronze.has_entry(each.name):
            files = tuple(f for f in each.files if not each.is_folder or bronze.has_file(f.name))
            is_whole = len(files) == len(each.files)
            path = join(root, each.name)
            yield Slice(each.name, path, files, each.marks, each.is_folder, is_whole=is_whole)


def _by_files(entries: Iterable[FolderEntry], bronze: SliceFolder) -> Iterator[Slice]:
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
        yield Slice(name, path, ordered, is_folder=len(files) > 1, place=place, is_whole=False)


def find_slice(bronze: SliceFolder, name: str, lake: Lake) -> Slice | None:
    """Return one slice in its present state, or None if it does not exist or is not complete.

    Raises:
        StorageUnavailable: It can't be read.
    """
    if bronze.is_shared:
        return next((slice_ for slice_ in list_slices(bronze, lake) if slice_.name == name), None)
    place = join(bronze.folder, name)
    try:
        entry = files_at(place, lake).entry(place)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # no name has a null character
        return None
    except Exception as error:
        if isinstance(error, LakewrightError) or is_jvm_failure(error):
            raise
        path = getattr(error, "filename", None) or place
        raise StorageUnavailable(
            f"the slice {name} can't be read: {path}: {_why(error)}",
            details={"alerts": [BRONZE_UNREADABLE]},
        ) from error
    return next((s for s in _slices([entry], bronze) if s.files and not s.is_being_written), None)


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
            subject=name,
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
            subject=found.name,
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
            subject=slice_.name,
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

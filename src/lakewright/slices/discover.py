"""Discovery of slices in bronze: their names, order, item ids and fingerprints.

Source: `processing-manifest.md`, "Item"; rules of entities, "Slices".
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from lakewright.errors import NotInstalled, SliceError, StorageUnavailable
from lakewright.lake.file_systems import file_system
from lakewright.lake.paths import join, local_path
from lakewright.manifest.discovery import DiscoveredSlice
from lakewright.manifest.record import Application
from lakewright.spark.jvm import is_jvm_failure

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.item import Item

__all__ = [
    "BRONZE_UNREADABLE",
    "Listing",
    "Slice",
    "canonical_id",
    "check_not_empty",
    "discovered",
    "find_slice",
    "find_unchanged_slice",
    "item_id",
    "list_bronze",
    "list_slices",
    "natural_key",
    "slice_name",
]

SUCCESS = "_SUCCESS"
TEMPORARY = "_temporary"

BRONZE_UNREADABLE = "bronze_unreadable"
"""The alert that a bronze folder, or a slice in it, can't be read."""

_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class File:
    """One file of a slice; `modified` is in nanoseconds if the file system has them, else in milliseconds."""

    name: str
    size: int
    modified: int


@dataclass(frozen=True, slots=True)
class Slice:
    """A file, or a folder of files, in an entity's bronze folder.

    Attributes:
        name: Name of the file or folder.
        path: A local path or a URI.
        files: The files of the slice; their names are relative to it.
        marks: Hidden names in the folder, such as `_SUCCESS`.
        is_folder: Whether the slice is a folder.
    """

    name: str
    path: str
    files: tuple[File, ...]
    marks: frozenset[str] = frozenset()
    is_folder: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of its files."""
        return tuple(join(self.path, file.name) for file in self.files) if self.is_folder else (self.path,)

    @property
    def size(self) -> int:
        """Total bytes of its files."""
        return sum(file.size for file in self.files)

    @property
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


@dataclass(frozen=True, slots=True)
class Listing:
    """What a bronze folder holds.

    Attributes:
        slices: The complete slices, in natural order of their names.
        unreadable: Names that can't be read, each with the reason.
        incomplete: Names of folders that are still being written.
        exists: Whether there is such a folder.
    """

    slices: tuple[Slice, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    incomplete: tuple[str, ...] = ()
    exists: bool = True


def list_slices(bronze: str, lake: Lake) -> tuple[Slice, ...]:
    """Return the slices in a bronze folder, in natural order of their names; none if there is no folder.

    Names that start with `_` or `.` are not slices, nor is a folder that is empty or still being written.

    Raises:
        StorageUnavailable: The folder can't be read.
    """
    return list_bronze(bronze, lake).slices


def list_bronze(bronze: str, lake: Lake) -> Listing:
    """Return the slices in a bronze folder, and what else stands there instead of a slice.

    Raises:
        StorageUnavailable: The folder can't be read.
    """
    path = local_path(bronze)
    unreadable: dict[str, str] = {}
    if path is None:
        exists, slices = _list_hadoop(bronze, lake)
    else:
        exists, slices = _list_local(path, unreadable)
    found = sorted(slices, key=lambda slice_: natural_key(slice_.name))
    is_marked = any(SUCCESS in slice_.marks for slice_ in found)
    complete = [s for s in found if s.files and TEMPORARY not in s.marks and (not is_marked or _is_marked(s))]
    # An empty folder is not a slice, and not one that is being written either.
    incomplete = tuple(s.name for s in found if s.files and s not in complete)
    return Listing(tuple(complete), dict(sorted(unreadable.items())), incomplete, exists)


def find_slice(bronze: str, name: str, lake: Lake) -> Slice | None:
    """Return one slice in its present state, or None if it does not exist or is not complete.

    Raises:
        StorageUnavailable: It can't be read.
    """
    path = local_path(bronze)
    if path is None:
        return next((slice_ for slice_ in list_slices(bronze, lake) if slice_.name == name), None)
    try:
        found = _local_slice(path / name)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        raise StorageUnavailable(
            f"the slice {name} can't be read: {error.filename or path / name}: {error.strerror or error}",
            details={"alerts": [BRONZE_UNREADABLE]},
        ) from error
    return found if found.files and TEMPORARY not in found.marks else None


def discovered(slices: Iterable[Slice], application: Application, entity: str) -> Iterator[DiscoveredSlice]:
    """Yield slices in the form in which the manifest records them."""
    for slice_ in slices:
        yield DiscoveredSlice(item_id(slice_.path), application, entity, slice_.name, slice_.fingerprint)


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
    scheme = _SCHEMES.get(scheme.lower(), scheme.lower())
    if scheme == "file":
        path = "/" + rest.lstrip("/").rstrip("/")
        return "file://" + quote(
            unquote(path, errors="surrogateescape").encode("utf-8", "surrogateescape"), safe=_SAFE
        )
    host, _, path = rest.lstrip("/").partition("/")
    parts = [part for part in path.split("/") if part]
    return "/".join([f"{scheme}://{host}", *parts])


_SAFE = "/!$&'()*+,;=:@~"
_SCHEMES: Mapping[str, str] = {"s3a": "s3", "s3n": "s3", "wasbs": "wasb", "abfss": "abfs"}


def _is_marked(slice_: Slice) -> bool:
    """Return whether a slice is complete if others have the mark `_SUCCESS`; a file always is."""
    return not slice_.is_folder or SUCCESS in slice_.marks


def _list_local(folder: Path, unreadable: dict[str, str]) -> tuple[bool, list[Slice]]:
    """Return whether a folder exists, and its slices; add those that can't be read to `unreadable`."""
    try:
        names = [entry.name for entry in os.scandir(folder) if _is_visible(entry.name)]
    except FileNotFoundError as error:
        if folder.is_symlink():
            raise _unreadable_folder(str(folder), "it is a link to a place that does not exist") from error
        return False, []
    except OSError as error:
        raise _unreadable_folder(str(folder), error.strerror or str(error)) from error
    slices = []
    for name in names:
        try:
            slices.append(_local_slice(folder / name))
        except FileNotFoundError as error:
            if why := _dangling(Path(error.filename or folder / name)):
                unreadable[name] = why
            # Otherwise it was removed while the folder was listed.
        except OSError as error:
            unreadable[name] = f"{error.filename or folder / name}: {error.strerror or error}"
    return True, slices


def _dangling(path: Path) -> str | None:
    """Return that a path is a link to nothing, or None if it is not."""
    is_dangling = path.is_symlink() and not path.exists()
    return f"{path} is a link to {path.readlink()}, which does not exist" if is_dangling else None


def _unreadable_folder(folder: str, why: str) -> StorageUnavailable:
    return StorageUnavailable(
        f"the bronze folder {folder} can't be read: {why}",
        remedy="Let the user who runs Lakewright read it, then run again.",
        details={"alerts": [BRONZE_UNREADABLE]},
    )


def _local_slice(path: Path) -> Slice:
    if not path.is_dir():
        status = path.stat()
        return Slice(path.name, str(path), (File(path.name, status.st_size, status.st_mtime_ns),))
    marks = frozenset(entry.name for entry in os.scandir(path) if not _is_visible(entry.name))
    files = tuple(sorted(_local_files(path), key=lambda file: file.name))
    return Slice(path.name, str(path), files, marks, is_folder=True)


def _local_files(root: Path) -> Iterator[File]:
    for folder, folders, names in os.walk(root, onerror=_raise, followlinks=True):
        folders[:] = [name for name in folders if _is_visible(name) or _is_partition(name)]
        for name in names:
            if _is_visible(name):
                file = Path(folder, name)
                status = file.stat()
                yield File(file.relative_to(root).as_posix(), status.st_size, status.st_mtime_ns)


def _raise(error: OSError) -> None:
    # By default, `os.walk` leaves out folders that it can't read.
    raise error


def _list_hadoop(bronze: str, lake: Lake) -> tuple[bool, list[Slice]]:
    """Return whether a folder exists in any file system that Hadoop supports, and its slices."""
    spark: Any = lake.spark
    try:
        system, root = file_system(spark, bronze)
        exists = bool(system.exists(root))
        return exists, list(_hadoop_slices(bronze, system, root)) if exists else []
    except NotInstalled:
        raise
    except Exception as error:
        if is_jvm_failure(error):
            raise
        java = getattr(error, "java_exception", None)
        why = str(error) if java is None else str(java.toString())
        raise _unreadable_folder(bronze, why.partition("\n")[0]) from error


def _hadoop_slices(bronze: str, system: Any, root: Any) -> Iterator[Slice]:
    for status in system.listStatus(root):
        place = status.getPath()
        name = str(place.getName())
        if not _is_visible(name):
            continue
        path = f"{bronze.rstrip('/')}/{name}"
        if not status.isDirectory():
            file = File(name, int(status.getLen()), int(status.getModificationTime()))
            yield Slice(name, path, (file,))
            continue
        marks = frozenset(str(s.getPath().getName()) for s in system.listStatus(place))
        hidden = frozenset(mark for mark in marks if not _is_visible(mark))
        yield Slice(name, path, tuple(_hadoop_files(system, place)), hidden, is_folder=True)


def _hadoop_files(system: Any, root: Any) -> Iterator[File]:
    base = str(system.resolvePath(root).toUri().getPath()).rstrip("/")
    found = system.listFiles(root, True)
    files = []
    while found.hasNext():
        status = found.next()
        name = str(status.getPath().toUri().getPath()).removeprefix(base).lstrip("/")
        *folders, last = name.split("/")
        if _is_visible(last) and all(_is_visible(part) or _is_partition(part) for part in folders):
            files.append(File(name, int(status.getLen()), int(status.getModificationTime())))
    yield from sorted(files, key=lambda file: file.name)


def _is_visible(name: str) -> bool:
    return bool(name) and not name.startswith(("_", "."))


def _is_partition(name: str) -> bool:
    """Return whether a folder is that of a partition, whose name may start with `_`."""
    return name.startswith("_") and "=" in name


def slice_name(item: Item) -> str:
    """Return the name of an item's slice, or the end of the item's id if it was recorded without a name."""
    noted = None if item.new is None else item.new.note.get("slice")
    if noted:
        return str(noted)
    last = item.item_id.rstrip("/").rpartition("/")[2]
    return unquote(last, errors="surrogateescape") if item.item_id.startswith("file:") else last


def find_unchanged_slice(lake: Lake, bronze: str, item: Item) -> Slice:
    """Return an item's slice if it is unchanged since it was recorded.

    Raises:
        SliceError: The slice is gone, has changed, or has 0 bytes.
    """
    name = slice_name(item)
    found = find_slice(bronze, name, lake)
    if found is None:
        raise SliceError(
            f"the slice {name} is gone from {bronze}",
            remedy="Bring it back, then resolve the item; otherwise resolve and skip it.",
        )
    recorded = item.fingerprint
    if recorded is not None and dict(recorded) != found.fingerprint:
        raise SliceError(
            f"the slice {name} has changed since it was discovered",
            remedy="If its present content is right, resolve the item.",
            details={"recorded": dict(recorded), "found": found.fingerprint},
        )
    check_not_empty(found)
    return found


def check_not_empty(slice_: Slice) -> None:
    """Raise `SliceError` if a slice has 0 bytes."""
    if slice_.size == 0:
        raise SliceError(
            f"the slice {slice_.name} has 0 bytes",
            remedy="Deliver it again, then resolve the item; otherwise resolve and skip it.",
            details={"path": slice_.path},
        )

"""What bronze holds: slices and their files, on this machine, in S3, or where only Hadoop reaches.

Source: rules of entities, "Slices".
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.errors import NotInstalled, StorageUnavailable
from lakewright.lake.files import HadoopFiles, file_system, is_hidden, is_visible
from lakewright.lake.paths import FileEntry, join, split_url
from lakewright.spark.jvm import is_jvm_failure

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.lake.object_storage import Bucket, ObjectStorage

__all__ = [
    "BRONZE_UNREADABLE",
    "SUCCESS",
    "UNFINISHED",
    "Slice",
    "list_hadoop",
    "list_local",
    "list_objects",
    "local_slice",
    "unreadable_folder",
]

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
    """

    name: str
    path: str
    files: tuple[FileEntry, ...]
    marks: frozenset[str] = frozenset()
    is_folder: bool = False

    @property
    def is_being_written(self) -> bool:
        """Whether a mark, or the ending of a name, says that a program still writes it."""
        names = (self.name, *(file.name for file in self.files))
        return TEMPORARY in self.marks or any(name.lower().endswith(UNFINISHED) for name in names)

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
    """Return whether a bronze folder exists in S3, and its slices, or only the one with a name.

    It is one flat listing, whatever the depth of the folder.

    Raises:
        StorageUnavailable: The store can't be reached, or refuses to list the folder.
    """
    bucket, key = split_url(bronze)
    objects = storage.bucket(bucket)
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

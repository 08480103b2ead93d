"""What bronze holds: slices and their files, and names that are none.

Source: rules of entities, "Slices".
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from lakewright.errors import StorageUnavailable
from lakewright.lake.paths import join

__all__ = [
    "BRONZE_UNREADABLE",
    "SUCCESS",
    "UNFINISHED",
    "File",
    "Slice",
    "is_partition",
    "is_visible",
    "unreadable_folder",
]

SUCCESS = "_SUCCESS"
TEMPORARY = "_temporary"

UNFINISHED = ("._copying_", ".tmp", ".part", ".partial", ".filepart", ".crdownload")
"""Endings that Hadoop's `put`, SFTP clients and browsers give to a file while they write it."""

BRONZE_UNREADABLE = "bronze_unreadable"
"""The alert that a bronze folder, or a slice in it, can't be read."""

_LET_READ = "Let the user who runs Lakewright read it, then run again."


@dataclass(frozen=True, slots=True)
class File:
    """One file of a slice; `modified` has nanoseconds where the file system has them, else milliseconds."""

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


def is_visible(name: str) -> bool:
    """Return whether a name in bronze belongs to a slice: marks and temporary files start with `_` or `.`."""
    return bool(name) and not name.startswith(("_", "."))


def is_partition(name: str) -> bool:
    """Return whether a folder is that of a partition, whose name may start with `_`."""
    return name.startswith("_") and "=" in name


def unreadable_folder(folder: str, why: str, remedy: str = _LET_READ) -> StorageUnavailable:
    """Return the error for a bronze folder that can't be read."""
    return StorageUnavailable(
        f"the bronze folder {folder} can't be read: {why}",
        remedy=remedy,
        details={"alerts": [BRONZE_UNREADABLE]},
    )

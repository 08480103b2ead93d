"""The files at a place: those that may hold data, and those that are left out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from lakewright.errors import StorageUnavailable, UsageError
from lakewright.lake.files import Files, LocalFiles, ObjectFiles, is_visible
from lakewright.lake.paths import FileEntry, is_stored, join, local_path, parent
from lakewright.profiling.reason import Code, Reason
from lakewright.slices.discovery import UNFINISHED
from lakewright.spec.models.slice_folder import FORMATS

if TYPE_CHECKING:
    from lakewright.lake.object_storage import ObjectStorage


_MAY_BE_TEXT = frozenset((".txt", ".dat", ".psv", ".data", ""))
"""Endings of files that hold rows, or anything."""

KINDS = {f".{ending}": kind for ending, kind in FORMATS.items() if f".{ending}" not in _MAY_BE_TEXT}
"""Kinds of files by the endings of names."""

_ARCHIVES = frozenset((".zip", ".tar", ".tgz", ".7z", ".rar", ".xlsx", ".jar"))
_PACKED = frozenset((".gz", ".gzip", ".bz2"))
_OTHERS_PACKED = frozenset((".zst", ".zstd", ".lz4", ".snappy", ".deflate", ".xz"))
_LOG = "_delta_log"

_MOST_FILES = 100_000
"""Files of a place that are listed."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that may hold data.

    Attributes:
        name: Its path below the place.
        path: Its path or URI.
        size: In bytes.
        kind: Its format by its name; empty if only its content shows it.
    """

    name: str
    path: str
    size: int
    kind: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that is left out, by its path below the place, and why."""

    name: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Place:
    """A folder, or a single file, with what is there.

    Attributes:
        root: The folder, as a path or URI.
        files: The files that may hold data, by their names.
        skipped: What is left out.
        system: Reads the files.
    """

    root: str
    files: tuple[FoundFile, ...]
    skipped: tuple[Skipped, ...]
    system: Files


def stem_of(name: str) -> str:
    """Return the last part of a path without the endings that name format and compression.

    Example:
        >>> stem_of("a/orders-2024.05.01.csv.gz"), stem_of("part-0.snappy.parquet")
        ('orders-2024.05.01', 'part-0')
    """
    last = PurePosixPath(name)
    while last.suffix.lower() in {*KINDS, *_MAY_BE_TEXT, *_PACKED, *_OTHERS_PACKED} - {""}:
        last = last.with_suffix("")
    return last.name


def kind_of_name(name: str) -> str | None:
    """Return the format that a name shows; empty if only the content shows it, None if it is no data.

    Example:
        >>> kind_of_name("a.CSV.gz"), kind_of_name("a.txt"), kind_of_name("a.pdf")
        ('csv', '', None)
    """
    endings = [each.lower() for each in PurePosixPath(name).suffixes]
    while endings and endings[-1] in _PACKED:
        endings.pop()
    last = endings[-1] if endings and not endings[-1][1:].isdecimal() else ""
    return KINDS.get(last, "" if last in _MAY_BE_TEXT else None)


def look_at_place(place: str, storage: ObjectStorage) -> Place:
    """Return the files at a place of this machine or in an object store.

    Raises:
        UsageError: There is nothing, or it is in a system that only Spark can list.
        StorageUnavailable: It can't be listed.
    """
    if is_stored(place):
        system: Files = ObjectFiles(storage)
        found, skipped = _stored(place, storage), list[Skipped]()
        is_file = len(found) == 1 and found[0].name == ""
    else:
        local = local_path(place)
        if local is None:
            raise UsageError(
                f"{place} can't be looked at without Spark: only what is here or in an object store can",
                remedy="Copy some of its files to this machine, and name that folder.",
            )
        system = LocalFiles()
        local = local.resolve() if ".." in local.parts else local.absolute()
        place, is_file = str(local), local.is_file()
        found, skipped = _local(local)
    if is_file:
        root, name = parent(place)
        found = [FileEntry(name, each.size) for each in found]
    else:
        root = place.rstrip("/") or "/"
    files, left_out = _sorted_out(root, found)
    return Place(root, files, (*skipped, *left_out), system)


def _stored(place: str, storage: ObjectStorage) -> list[FileEntry]:
    bucket, key = storage.at(place)
    found: list[FileEntry] = []
    for each in bucket.under(key):
        if len(found) == _MOST_FILES:
            break
        if not bucket.is_folder_mark(each):
            found.append(FileEntry(each.name.removeprefix(f"{key}/" if key else ""), each.size))
    only = None if found or not key else bucket.find(key)
    if only is not None:
        return [FileEntry("", only.size)]
    if not found:
        raise _nothing(place)
    return found


def _local(root: Path) -> tuple[list[FileEntry], list[Skipped]]:
    if root.is_file():
        return [FileEntry("", root.stat().st_size)], []
    if not root.exists():
        raise _nothing(str(root))
    found: list[FileEntry] = []
    skipped: list[Skipped] = []

    def note(error: OSError) -> None:
        if error.filename == str(root):
            raise StorageUnavailable(
                f"{root} can't be listed: {error.strerror or error}", remedy="Ask for the right to read it."
            ) from error
        skipped.append(_unreadable(Path(str(error.filename)).relative_to(root).as_posix(), error))

    for folder, folders, names in os.walk(root, onerror=note, followlinks=True):
        folders.sort()
        for name in sorted(names):
            file = Path(folder, name)
            try:
                found.append(FileEntry(file.relative_to(root).as_posix(), file.stat().st_size))
            except OSError as error:
                skipped.append(_unreadable(file.relative_to(root).as_posix(), error))
        if len(found) > _MOST_FILES:
            break
    return found[:_MOST_FILES], skipped


def _nothing(place: str) -> UsageError:
    return UsageError(f"there is nothing at {place}", remedy="Name a folder with files, or a file.")


def _unreadable(name: str, error: OSError) -> Skipped:
    return Skipped(name, Reason.of(Code.UNREADABLE, why=error.strerror or str(error)))


def _sorted_out(root: str, found: list[FileEntry]) -> tuple[tuple[FoundFile, ...], list[Skipped]]:
    """Return the files that may hold data, and the others; a Delta table is left out as one folder."""
    tables = {name.partition(_LOG)[0] for name in (each.name for each in found) if f"{_LOG}/" in name}
    skipped = [Skipped(table or ".", Reason.of(Code.DELTA_TABLE)) for table in sorted(tables)]
    files = []
    for each in found:
        if any(each.name.startswith(table) for table in tables):
            continue
        code, kind = _code_of(each), kind_of_name(each.name)
        if code is not None or kind is None:
            skipped.append(Skipped(each.name, Reason.of(code or Code.NOT_DATA)))
        else:
            files.append(FoundFile(each.name, join(root, each.name), each.size, kind))
    return tuple(files), skipped


def _code_of(file: FileEntry) -> Code | None:
    """Return why a file is left out whatever it holds; None if its name does not show it."""
    lower = file.name.lower()
    endings = PurePosixPath(lower).suffixes
    for code, holds in (
        (Code.HIDDEN, not is_visible(file.name)),
        (Code.UNFINISHED, lower.endswith(UNFINISHED)),
        (Code.ARCHIVE, bool(_ARCHIVES.intersection(endings[-2:]))),
        (Code.COMPRESSION, bool(endings) and endings[-1] in _OTHERS_PACKED),
    ):
        if holds:
            return code
    return None

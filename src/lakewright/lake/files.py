"""Folders and files of the lake: listed, renamed and removed.

Local ones, and those in S3, need no Spark. On other systems (`hdfs://`, …) Hadoop's file systems are used,
through the session.
"""

from __future__ import annotations

import ctypes
import glob
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from lakewright.lake.file_entry import FileEntry, is_hidden
from lakewright.lake.file_systems import file_system
from lakewright.lake.object_files import ObjectFiles
from lakewright.lake.paths import is_s3, join, local_path, parent

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake

__all__ = [
    "FileEntry",
    "Files",
    "append_folder",
    "files_at",
    "replace_folder",
]

# Arguments of Linux's renameat2: AT_FDCWD (paths are relative to the working directory) and RENAME_EXCHANGE.
_AT_CURRENT_FOLDER = -100
_EXCHANGE = 2


class Files(Protocol):
    """A file system; paths are local paths or URIs."""

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        ...

    def listed(self, path: str) -> Iterator[FileEntry]:
        """Yield the files at or below `path`, sorted by name; none if it doesn't exist.

        Like Spark's readers, this skips names that start with `.`, and those that start with `_` unless they
        name the folder of a partition (`_year=2022`).
        """
        ...

    def matching(self, pattern: str) -> list[str]:
        """Return the paths that match a pattern with `*`, `?` and `[…]`, sorted; an existing path matches."""
        ...

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents, unless they exist."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename a file or folder to a path that doesn't exist yet; its parents are created."""
        ...

    def exchange(self, one: str, other: str) -> bool:
        """Swap two folders atomically; return False if the system can't."""
        ...

    def link(self, source: str, target: str) -> bool:
        """Give a file a second name (a hard link); return False if the system can't."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, or a folder and everything below it, if it exists."""
        ...

    def begin(self, path: str, size: int) -> bytes:
        """Return the first bytes of a file, at most `size`."""
        ...

    def read_range(self, path: str, start: int, size: int) -> bytes:
        """Return bytes of a file, by the position of the first one and their number."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Write a file, in place of one that exists; its folder is created."""
        ...


def files_at(path: str, lake: Lake) -> Files:
    """Return the file system of a path; a local one, and one in S3, needs no session."""
    if is_s3(path):
        return ObjectFiles(lake.storage)
    return LocalFiles() if local_path(path) is not None else HadoopFiles(lake)


def replace_folder(files: Files, staged: str, target: str) -> None:
    """Replace the folder `target` by the folder `staged`, atomically if the system can swap folders.

    Otherwise readers find no folder for a moment, but never an incomplete one. If a crash in that moment
    leaves the former content under another name, the next call restores it.
    """
    folder, name = parent(target)
    former = join(folder, f".{name}.former")
    if files.exists(former) and not files.exists(target):
        files.rename(former, target)
    files.remove(former)
    if not files.exists(target):
        files.rename(staged, target)
    elif files.exchange(staged, target):
        files.remove(staged)
    else:
        files.rename(target, former)
        files.rename(staged, target)
        files.remove(former)


def append_folder(files: Files, staged: str, target: str) -> None:
    """Move the files of `staged` into `target`: atomically if files can be linked, otherwise one by one."""
    if not files.exists(target):
        files.rename(staged, target)
        return
    if all(files.link(join(target, old.name), join(staged, old.name)) for old in files.listed(target)):
        replace_folder(files, staged, target)
        return
    for new in files.listed(staged):
        if not files.exists(join(target, new.name)):
            files.rename(join(staged, new.name), join(target, new.name))
    files.remove(staged)


class LocalFiles:
    """Files of this machine."""

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        return _local(path).exists()

    def listed(self, path: str) -> Iterator[FileEntry]:
        """Yield the files at or below `path`, sorted by name."""
        root = _local(path)
        if root.is_file():
            yield _entry(root, root.name)
            return
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if not is_hidden(name))
            for name in sorted(names):
                if not is_hidden(name):
                    file = Path(folder, name)
                    yield _entry(file, file.relative_to(root).as_posix())

    def matching(self, pattern: str) -> list[str]:
        """Return the paths that match a pattern, sorted."""
        if _local(pattern).exists():
            return [pattern]  # `[` and the like are part of its name
        return sorted(glob.glob(str(_local(pattern))))  # noqa: PTH207 - Path.glob refuses absolute patterns

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents, unless they exist."""
        _local(path).mkdir(parents=True, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """Rename a file or folder to a path that doesn't exist yet; its parents are created."""
        _local(target).parent.mkdir(parents=True, exist_ok=True)
        _local(source).rename(_local(target))

    def exchange(self, one: str, other: str) -> bool:
        """Swap two folders atomically; return False if the system can't."""
        rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # Linux has it, others don't
        if rename is None:
            return False
        names = os.fsencode(_local(one)), os.fsencode(_local(other))
        return bool(rename(_AT_CURRENT_FOLDER, names[0], _AT_CURRENT_FOLDER, names[1], _EXCHANGE) == 0)

    def link(self, source: str, target: str) -> bool:
        """Give a file a second name (a hard link); return False if the system can't."""
        try:
            _local(target).hardlink_to(_local(source))
        except OSError:
            return False
        return True

    def remove(self, path: str) -> None:
        """Remove a file, or a folder and everything below it."""
        file = _local(path)
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        else:
            file.unlink(missing_ok=True)

    def begin(self, path: str, size: int) -> bytes:
        """Return the first bytes of a file."""
        return self.read_range(path, 0, size)

    def read_range(self, path: str, start: int, size: int) -> bytes:
        """Return bytes of a file, by the position of the first one and their number."""
        with _local(path).open("rb") as file:
            file.seek(start)
            return file.read(size)

    def write(self, path: str, content: bytes) -> None:
        """Write a file in one step, in place of one that exists."""
        file = _local(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        staged = file.with_name(f".{file.name}.{uuid4()}")
        try:
            staged.write_bytes(content)
            staged.replace(file)
        finally:
            staged.unlink(missing_ok=True)


class HadoopFiles:
    """Files of any system that Hadoop knows, through the session's JVM."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def _at(self, path: str) -> tuple[Any, Any]:
        return file_system(self._lake.spark, path)

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        system, place = self._at(path)
        return bool(system.exists(place))

    def listed(self, path: str) -> Iterator[FileEntry]:
        """Yield the files at or below `path`, sorted by name."""
        system, place = self._at(path)
        if not system.exists(place):
            return
        root = str(system.resolvePath(place).toUri().getPath()).rstrip("/")
        found = system.listFiles(place, True)
        entries = []
        while found.hasNext():
            status = found.next()
            full = str(status.getPath().toUri().getPath())
            name = full.removeprefix(root).lstrip("/") or full.rpartition("/")[2]
            if not any(is_hidden(part) for part in name.split("/")):
                entries.append(FileEntry(name, int(status.getLen()), int(status.getModificationTime())))
        yield from sorted(entries, key=lambda entry: entry.name)

    def matching(self, pattern: str) -> list[str]:
        """Return the paths that match a pattern, sorted."""
        system, place = self._at(pattern)
        if system.exists(place):
            return [pattern]
        return sorted(str(status.getPath()) for status in system.globStatus(place) or ())

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents, unless they exist."""
        system, place = self._at(path)
        system.mkdirs(place)

    def rename(self, source: str, target: str) -> None:
        """Rename a file or folder to a path that doesn't exist yet; its parents are created."""
        system, place = self._at(source)
        _, goal = self._at(target)
        system.mkdirs(goal.getParent())
        if not system.rename(place, goal):
            raise OSError(f"{source} can't be renamed to {target}")

    def exchange(self, one: str, other: str) -> bool:  # noqa: ARG002 - Hadoop can't
        """Return False: Hadoop can't swap folders."""
        return False

    def link(self, source: str, target: str) -> bool:  # noqa: ARG002 - Hadoop can't
        """Return False: Hadoop has no links."""
        return False

    def remove(self, path: str) -> None:
        """Remove a file, or a folder and everything below it."""
        system, place = self._at(path)
        system.delete(place, True)

    def begin(self, path: str, size: int) -> bytes:
        """Return the first bytes of a file."""
        return self.read_range(path, 0, size)

    def read_range(self, path: str, start: int, size: int) -> bytes:
        """Return bytes of a file, by the position of the first one and their number."""
        system, place = self._at(path)
        stream = system.open(place)
        try:
            stream.seek(start)
            return bytes(stream.readNBytes(size))
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        """Write a file, in place of one that exists."""
        system, place = self._at(path)
        stream = system.create(place, True)
        stream.write(bytearray(content))
        stream.close()


def _local(path: str) -> Path:
    local = local_path(path)
    if local is None:
        raise ValueError(f"{path} isn't on this machine")
    return local


def _entry(file: Path, name: str) -> FileEntry:
    status = file.stat()
    return FileEntry(name, status.st_size, status.st_mtime_ns)

"""Folders and files of the lake: listed, read, renamed and removed.

Local ones, and those in object stores, need no Spark. On other systems (`hdfs://`, …) Hadoop's file systems
are used, through the session. A copy of a whole file appears under its name when it is complete.
"""

from __future__ import annotations

import ctypes
import glob
import hashlib
import os
import re
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lakewright.errors import NotInstalled
from lakewright.lake.paths import FileEntry, is_stored, join, local_path, parent, split_url, store_of
from lakewright.spark.engine import Jvm, jvm_of
from lakewright.spark.jvm import full_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.lake.object_storage import Bucket, ObjectStorage


# Arguments of Linux's renameat2: AT_FDCWD (paths are relative to the working directory) and RENAME_EXCHANGE.
_AT_CURRENT_FOLDER = -100
_EXCHANGE = 2


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """What stands in a folder under one name: a file, or a folder with all that is in it.

    Attributes:
        files: The file, or the files of the folder that are visible, with names below it, in their order.
        marks: The names in the folder that are hidden, such as `_SUCCESS`.
        is_folder: Whether it is a folder.
        error: Why it can't be read; None if it can.
    """

    name: str
    files: tuple[FileEntry, ...] = ()
    marks: frozenset[str] = frozenset()
    is_folder: bool = False
    error: OSError | None = None


class Files(ABC):
    """A file system; paths are local paths or URIs."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""

    @abstractmethod
    def entry(self, path: str) -> FolderEntry:
        """Return a file, or a folder with the files below it, sorted by name.

        Like Spark's readers, this skips names that start with `.`, and those that start with `_` unless they
        name the folder of a partition (`_year=2022`).

        Raises:
            FileNotFoundError: It doesn't exist.
        """

    @abstractmethod
    def entries(self, folder: str) -> Iterator[FolderEntry]:
        """Yield what stands in a folder and is visible; what can't be read has its error.

        Raises:
            FileNotFoundError: There is no such folder.
        """

    def listed(self, path: str) -> Iterator[FileEntry]:
        """Yield the files at or below `path`, sorted by name; none if it doesn't exist."""
        try:
            found = self.entry(path).files
        except (FileNotFoundError, NotADirectoryError):
            if self.exists(path):  # something below it is gone, and the rest of it is not all
                raise
            return
        yield from found

    @abstractmethod
    def matching(self, pattern: str) -> list[str]:
        """Return the paths that match a pattern with `*`, `?` and `[…]`, sorted; an existing path matches."""

    def make_folder(self, path: str) -> None:  # noqa: B027 - only some have folders
        """Create a folder and its parents, unless they exist; object stores have none."""

    @abstractmethod
    def rename(self, source: str, target: str) -> None:
        """Rename a file or folder to a path that doesn't exist yet; its parents are created."""

    def exchange(self, one: str, other: str) -> bool:
        """Swap two folders atomically; return False if the system can't."""
        return False

    def link(self, source: str, target: str) -> bool:
        """Give a file a second name (a hard link); return False if the system can't."""
        return False

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file, or a folder and everything below it, if it exists."""

    def begin(self, path: str, size: int) -> bytes:
        """Return the first bytes of a file, at most `size`."""
        return self.read_range(path, 0, size)

    @abstractmethod
    def read_range(self, path: str, start: int, size: int) -> bytes:
        """Return bytes of a file, by the position of the first one and their number."""

    @abstractmethod
    def write(self, path: str, content: bytes) -> None:
        """Write a file, in place of one that exists; its folder is created."""


def files_at(path: str, lake: Lake) -> Files:
    """Return the file system of a path; a local one, and one in an object store, needs no session."""
    if is_stored(path):
        return ObjectFiles(lake.storage)
    return LocalFiles() if local_path(path) is not None else HadoopFiles(lake)


def names_in(folder: str, lake: Lake) -> frozenset[str] | None:
    """Return the names of what lies in a folder; None where only Spark can list it, or this user may not."""
    local = local_path(folder)
    try:
        if local is not None:
            return frozenset(entry.name for entry in local.iterdir()) if local.exists() else frozenset()
        if not is_stored(folder):
            return None
        return frozenset(file.name.partition("/")[0] for file in files_at(folder, lake).listed(folder))
    except OSError:
        return None


def digest_of_listing(lake: Lake, patterns: Iterable[str]) -> str | None:
    """Return a digest of the names, sizes and modification times of files; None if nothing is there.

    Args:
        lake: The lake.
        patterns: Paths or URIs of files and folders, which may be patterns.
    """
    digest, is_there = hashlib.sha256(), False
    for pattern in patterns:
        files = files_at(pattern, lake)
        for place in files.matching(pattern):
            is_there = True
            for entry in files.listed(place):
                digest.update(f"{place}/{entry.name}\t{entry.size}\t{entry.modified}\n".encode())
    return digest.hexdigest() if is_there else None


def is_pattern(path: str) -> bool:
    """Return whether a path has signs of a pattern."""
    return _WILDCARD.search(path) is not None


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


class LocalFiles(Files):
    """Files of this machine."""

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        return _local(path).exists()

    def entry(self, path: str) -> FolderEntry:
        """Return a file, or a folder with the files below it."""
        return _folder_entry(_local(path))

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        """Yield what stands in a folder and is visible; what can't be read has its error."""
        for place in list(os.scandir(_local(folder))):
            if is_visible(place.name):
                try:
                    yield _folder_entry(place)
                except OSError as error:
                    yield FolderEntry(place.name, error=error)

    def matching(self, pattern: str) -> list[str]:
        """Return the paths that match a pattern, sorted."""
        if _local(pattern).exists():
            return [pattern]  # `[` and the like are part of its name
        # Hadoop writes `[^…]` for what Python writes as `[!…]`. Path.glob refuses absolute patterns.
        return sorted(glob.glob(str(_local(pattern)).replace("[^", "[!")))  # noqa: PTH207

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
        except OSError as error:
            error.filename = error.filename or str(file)  # a full disk names no file
            raise
        finally:
            staged.unlink(missing_ok=True)


class HadoopFiles(Files):
    """Files of any system that Hadoop knows, through the session's JVM."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def _at(self, path: str) -> tuple[Any, Any]:
        # A path of this machine as Hadoop reads it whatever its default file system is.
        local = local_path(path)
        return file_system(self._lake.spark, path if local is None else local.absolute().as_uri())

    def _replace(self, path: str, write: Callable[[Any, Any], None]) -> None:
        """Have a file or folder written under another name, and then put it in place of the one at a path."""
        system, part = self._at(part_of(path))
        system.delete(part, True)
        write(system, part)
        self.remove(path)
        self.rename(part_of(path), path)

    def copy(self, source: str, target: str) -> None:
        """Copy a file or folder, in place of one that exists; Hadoop copies between its file systems."""
        origin, content = self._at(source)
        jvm = needed_jvm(self._lake.spark, target)
        copying = jvm.packages.org.apache.hadoop.fs.FileUtil
        self._replace(target, lambda *part: copying.copy(origin, content, *part, False, jvm.hadoop))

    def concatenate(self, names: Sequence[str], target: str, delimiter: bytes) -> None:
        """Write files one after the other to one file."""
        copying = needed_jvm(self._lake.spark, target).packages.org.apache.hadoop.io.IOUtils

        def write(system: Any, part: Any) -> None:
            with closing(system.create(part, True)) as writer:
                for index, name in enumerate(names):
                    if index and delimiter:
                        writer.write(bytearray(delimiter), 0, len(delimiter))
                    origin, place = self._at(name)
                    with closing(origin.open(place)) as reader:
                        copying.copyBytes(reader, writer, _CHUNK, False)

        self._replace(target, write)

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        system, place = self._at(path)
        return bool(system.exists(place))

    def entry(self, path: str) -> FolderEntry:
        """Return a file, or a folder with the files below it."""
        system, place = self._at(path)
        if not system.exists(place):
            raise FileNotFoundError(path)
        return self._entry(system, system.getFileStatus(place))

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        """Yield what stands in a folder and is visible."""
        system, root = self._at(folder)
        if not system.exists(root):
            raise FileNotFoundError(folder)
        for status in system.listStatus(root):
            if is_visible(str(status.getPath().getName())):
                yield self._entry(system, status)

    def _entry(self, system: Any, status: Any) -> FolderEntry:
        place = status.getPath()
        name = str(place.getName())
        if not status.isDirectory():
            return FolderEntry(name, (_hadoop_file(status, name),))
        inside = (str(each.getPath().getName()) for each in system.listStatus(place))
        marks = frozenset(each for each in inside if not is_visible(each))
        root = str(system.resolvePath(place).toUri().getPath()).rstrip("/")
        found, files = system.listFiles(place, True), []
        while found.hasNext():
            each = found.next()
            files.append(_hadoop_file(each, str(each.getPath().toUri().getPath()).removeprefix(f"{root}/")))
        return FolderEntry(name, _visible(files), marks, is_folder=True)

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

    def remove(self, path: str) -> None:
        """Remove a file, or a folder and everything below it."""
        system, place = self._at(path)
        system.delete(place, True)

    def read_range(self, path: str, start: int, size: int) -> bytes:
        """Return bytes of a file, by the position of the first one and their number."""
        system, place = self._at(path)
        with closing(system.open(place)) as stream:
            stream.seek(start)
            return bytes(stream.readNBytes(size))

    def write(self, path: str, content: bytes) -> None:
        """Write a file, in place of one that exists."""
        system, place = self._at(path)
        with closing(system.create(place, True)) as stream:
            stream.write(bytearray(content))


def _local(path: str) -> Path:
    local = local_path(path)
    if local is None:
        raise ValueError(f"{path} isn't on this machine")
    return local


def _folder_entry(place: Path | os.DirEntry[str]) -> FolderEntry:
    status = place.stat()
    if not stat.S_ISDIR(status.st_mode):
        return FolderEntry(place.name, (FileEntry(place.name, status.st_size, status.st_mtime_ns),))
    root, files = Path(place), list[FileEntry]()
    # Before the files: a writer removes its mark once they are complete.
    marks = frozenset(each.name for each in os.scandir(root) if not is_visible(each.name))
    # Links to folders are followed, as Spark does.
    for folder, folders, names in os.walk(root, onerror=_raise, followlinks=True):
        folders[:] = [name for name in folders if not is_hidden(name)]
        for file in (Path(folder, name) for name in names if is_visible(name)):
            status = file.stat()
            name = file.relative_to(root).as_posix()
            files.append(FileEntry(name, status.st_size, status.st_mtime_ns))
    return FolderEntry(place.name, _visible(files), marks, is_folder=True)


def _raise(error: OSError) -> None:
    # By default, `os.walk` leaves out folders that it can't read.
    raise error


def _hadoop_file(status: Any, name: str) -> FileEntry:
    return FileEntry(name, int(status.getLen()), int(status.getModificationTime()))


def _visible(files: Iterable[FileEntry]) -> tuple[FileEntry, ...]:
    """Return the files that are read, sorted by name."""
    return tuple(sorted((each for each in files if is_visible(each.name)), key=lambda each: each.name))


def is_hidden(name: str) -> bool:
    """Return whether Spark's readers skip a folder; that of a partition may start with `_`."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def is_visible(name: str) -> bool:
    """Return whether a file is read: neither its name nor a folder of it, joined by `/`, is hidden."""
    *folders, own = name.split("/")
    return bool(own) and not own.startswith(("_", ".")) and not any(map(is_hidden, folders))


_WILDCARD = re.compile(r"[*?\[]")


class ObjectFiles(Files):
    """Files of the buckets of an object store, without Spark.

    A folder is nothing but the common beginning of its objects' keys: it exists as long as one of them does.
    A rename copies and removes each object, so that readers may see a part of it.
    """

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage

    def _at(self, path: str) -> tuple[Bucket, str]:
        return self._storage.at(path)

    def exists(self, path: str) -> bool:
        """Return whether an object exists, or a folder that holds one."""
        bucket, key = self._at(path)
        return bucket.find(key) is not None or next(bucket.under(key), None) is not None

    def entry(self, path: str) -> FolderEntry:
        """Return an object, or a folder with the objects below it."""
        bucket, key = self._at(path)
        found = _below(bucket, key)
        if not found and (only := bucket.find(key)) is not None:
            found = [("", only)]
        if not found:
            raise FileNotFoundError(path)
        return _stored_entry(key.rpartition("/")[2], found, bucket)

    def entries(self, folder: str) -> Iterator[FolderEntry]:
        """Yield what stands in a folder and is visible; it is one flat listing, whatever its depth."""
        bucket, key = self._at(folder)
        if not (found := _below(bucket, key)):
            raise FileNotFoundError(folder)
        for name, group in groupby(sorted(found, key=itemgetter(0)), lambda each: each[0].partition("/")[0]):
            if is_visible(name):
                inside = [(path.partition("/")[2], each) for path, each in group]
                yield _stored_entry(name, inside, bucket)

    def matching(self, pattern: str) -> list[str]:
        """Return the paths that match a pattern, sorted."""
        if self.exists(pattern):
            return [pattern]
        bucket, key = self._at(pattern)
        parts = key.split("/")
        fixed = next((index for index, part in enumerate(parts) if _WILDCARD.search(part)), len(parts))
        if fixed == len(parts):
            return []
        parts = [part.replace("[^", "[!") for part in parts]
        scheme, name, _ = split_url(pattern)
        keys = {tuple(each.name.split("/")[: len(parts)]) for each in bucket.under("/".join(parts[:fixed]))}
        paths = (
            "/".join(key) for key in keys if len(key) == len(parts) and all(map(fnmatchcase, key, parts))
        )
        return sorted(f"{scheme}://{name}/{path}" for path in paths)

    def rename(self, source: str, target: str) -> None:
        """Copy an object, or all objects of a folder, to a path that doesn't exist yet; then remove them."""
        bucket, key = self._at(source)
        goal_bucket, goal = self._at(target)
        if goal_bucket is not bucket:
            raise OSError(f"{source} can't be renamed to {target}: it is another bucket")
        # The mark that a folder is complete comes last.
        found = (each.name for each in bucket.under(key))
        keys = sorted(found, key=lambda name: is_hidden(parent(name)[1])) or [key]
        for each in keys:
            bucket.copy(each, goal + each.removeprefix(key))
        bucket.remove(keys)

    def remove(self, path: str) -> None:
        """Remove an object, and everything below it, if it exists."""
        bucket, key = self._at(path)
        keys = [each.name for each in bucket.under(key)]
        if bucket.find(key) is not None:
            keys.append(key)
        bucket.remove(keys)

    def read_range(self, path: str, start: int, size: int) -> bytes:
        """Return bytes of an object, by the position of the first one and their number."""
        bucket, key = self._at(path)
        return bucket.read_range(key, start, size)

    def write(self, path: str, content: bytes) -> None:
        """Write an object, in place of one that exists."""
        bucket, key = self._at(path)
        bucket.put(key, content)


def _below(bucket: Bucket, key: str) -> list[tuple[str, FileEntry]]:
    """Return the objects below a folder, each after its path in there."""
    above = f"{key}/" if key else ""
    return [(each.name.removeprefix(above), each) for each in bucket.under(key)]


def _stored_entry(name: str, found: list[tuple[str, FileEntry]], bucket: Bucket) -> FolderEntry:
    """Return an object, or a folder, by its objects with their paths in it."""
    inside = [(path, each) for path, each in found if path]
    if not inside and not bucket.is_folder_mark(found[0][1]):
        return FolderEntry(name, (FileEntry(name, found[0][1].size, found[0][1].modified),))
    firsts = (path.partition("/")[0] for path, _ in inside)
    marks = frozenset(first for first in firsts if not is_visible(first))
    files = (
        FileEntry(path, each.size, each.modified)
        for path, each in inside
        if not (is_visible(path) and bucket.is_folder_mark(each))
    )
    return FolderEntry(name, _visible(files), marks, is_folder=True)


MISSING_CLASS = r"Class (\S+FileSystem) not found|No FileSystem for scheme \"?([\w.+-]+)"
"""What Java says of a file system whose jar is missing."""


def needed_jvm(spark: SparkSession, location: str) -> Jvm:
    """Return Spark's JVM, whose file systems reach a location.

    Raises:
        NotInstalled: There is none, as with Spark Connect.
    """
    jvm = jvm_of(spark)
    if jvm is None:
        raise NotInstalled(
            f"{location} is in a file system that only Spark's JVM reaches, which Spark Connect lacks",
            remedy="Use a folder that this machine sees, or an object store; or run where the driver runs.",
        )
    return jvm


def file_system(spark: SparkSession, location: str) -> tuple[Any, Any]:
    """Return Hadoop's file system of a location, and the location as its path.

    Raises:
        NotInstalled: Spark has no jar with the file system.
    """
    jvm = needed_jvm(spark, location)
    from py4j.protocol import Py4JJavaError

    place = jvm.packages.org.apache.hadoop.fs.Path(location)
    try:
        return place.getFileSystem(jvm.hadoop), place
    except Py4JJavaError as error:
        raise missing_file_system(full_text(error), location) or error from error


def missing_file_system(text: str, location: str = "") -> NotInstalled | None:
    """Return the error for a file system whose jar is missing; None if a text of Spark names none."""
    found = re.search(MISSING_CLASS, text)
    if found is None:
        return None
    scheme = location.partition("://")[0] or found[2] or _scheme_of(found[1])
    why = f"its class {found[1]} is missing" if found[1] else "no jar has one for this scheme"
    return NotInstalled(f"Spark cannot read or write {scheme}:// locations: {why}", remedy=_remedy(scheme))


def _scheme_of(name: str) -> str:
    """Return the scheme of a file system's class: Hadoop's packages have their names."""
    parts = name.split(".")
    return {"azurebfs": "abfss"}.get(parts[-2], parts[-2]) if len(parts) > 1 else name


def _remedy(scheme: str) -> str:
    if (kind := store_of(f"{scheme}://")) is not None:
        return f"Declare the store: `storage: {{{kind}: {{}}}}`, with an endpoint_url if it is another's."
    return "Add the jar of its file system to the project's config: spark.jars.packages or spark.jars."


_CHUNK = 1 << 20


def part_of(path: str) -> str:
    """Return the name under which a file is written until it is complete; Spark's readers skip it."""
    folder, name = parent(path)
    return join(folder, f".{name}.part")


def copy_file(lake: Lake, source: str, target: str) -> None:
    """Copy a file, or a folder with everything below it, and replace what is there."""
    one, other = local_path(source), local_path(target)
    if one is None or other is None:
        HadoopFiles(lake).copy(source, target)
        return
    part = Path(part_of(str(other)))
    part.parent.mkdir(parents=True, exist_ok=True)
    if one.is_dir():
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(one, part)
        replace_folder(files_at(target, lake), str(part), str(other))
    else:
        shutil.copyfile(one, part)
        part.replace(other)


def concatenate(lake: Lake, folder: str, target: str, delimiter: bytes) -> int:
    """Write the files of a folder one after the other to one file, and return how many there were."""
    names = [join(folder, entry.name) for entry in files_at(folder, lake).listed(folder)]
    if any(local_path(path) is None for path in (folder, target)):
        HadoopFiles(lake).concatenate(names, target, delimiter)
        return len(names)
    part = Path(part_of(str(local_path(target))))
    part.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb") as writer:
        for index, name in enumerate(names):
            writer.write(delimiter if index else b"")
            with Path(str(local_path(name))).open("rb") as reader:
                shutil.copyfileobj(reader, writer, _CHUNK)
    part.replace(str(local_path(target)))
    return len(names)

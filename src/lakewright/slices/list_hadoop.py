"""Slices on file systems that only Hadoop knows, listed through the Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakewright.errors import NotInstalled
from lakewright.lake.files import file_system
from lakewright.slices.bronze import File, Slice, is_partition, is_visible, unreadable_folder
from lakewright.spark.jvm import is_jvm_failure

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake

__all__ = ["list_hadoop"]


def list_hadoop(bronze: str, lake: Lake) -> tuple[bool, list[Slice]]:
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
        raise unreadable_folder(bronze, why.partition("\n")[0]) from error


def _hadoop_slices(bronze: str, system: Any, root: Any) -> Iterator[Slice]:
    for status in system.listStatus(root):
        place = status.getPath()
        name = str(place.getName())
        if not is_visible(name):
            continue
        path = f"{bronze.rstrip('/')}/{name}"
        if not status.isDirectory():
            file = File(name, int(status.getLen()), int(status.getModificationTime()))
            yield Slice(name, path, (file,))
            continue
        marks = frozenset(str(s.getPath().getName()) for s in system.listStatus(place))
        hidden = frozenset(mark for mark in marks if not is_visible(mark))
        yield Slice(name, path, tuple(_hadoop_files(system, place)), hidden, is_folder=True)


def _hadoop_files(system: Any, root: Any) -> Iterator[File]:
    base = str(system.resolvePath(root).toUri().getPath()).rstrip("/")
    found = system.listFiles(root, True)
    files = []
    while found.hasNext():
        status = found.next()
        name = str(status.getPath().toUri().getPath()).removeprefix(base).lstrip("/")
        *folders, last = name.split("/")
        if is_visible(last) and all(is_visible(part) or is_partition(part) for part in folders):
            files.append(File(name, int(status.getLen()), int(status.getModificationTime())))
    yield from sorted(files, key=lambda file: file.name)

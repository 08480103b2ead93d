"""Copies of whole files, on this machine and between the file systems that Spark knows.

A copy appears under its name when it is complete.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.lake.files import files_at, replace_folder
from lakewright.lake.paths import join, local_path, parent

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake

__all__ = ["concatenate", "concatenate_with_hadoop", "copy_file", "copy_with_hadoop", "part_of"]

_CHUNK = 1 << 20


def part_of(path: str) -> str:
    """Return the name under which a file is written until it is complete; Spark's readers skip it."""
    folder, name = parent(path)
    return join(folder, f".{name}.part")


def copy_file(lake: Lake, source: str, target: str) -> None:
    """Copy a file, or a folder with everything below it, and replace what is there."""
    one, other = local_path(source), local_path(target)
    if one is None or other is None:
        copy_with_hadoop(lake, source, target)
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


def copy_with_hadoop(lake: Lake, source: str, target: str) -> None:
    """Copy a file or folder by Hadoop's file systems, which copy between each other."""
    spark: Any = lake.spark
    hadoop, configuration = spark._jvm.org.apache.hadoop.fs, spark._jsc.hadoopConfiguration()
    paths = [hadoop.Path(_uri(path)) for path in (source, part_of(target), target)]
    systems = [path.getFileSystem(configuration) for path in paths]
    systems[1].delete(paths[1], True)
    hadoop.FileUtil.copy(systems[0], paths[0], systems[1], paths[1], False, configuration)
    systems[2].delete(paths[2], True)
    _rename(systems[1], paths[1], paths[2])


def concatenate(lake: Lake, folder: str, target: str, delimiter: bytes) -> int:
    """Write the files of a folder one after the other to one file, and return how many there were."""
    names = [join(folder, entry.name) for entry in files_at(folder, lake).listed(folder)]
    if any(local_path(path) is None for path in (folder, target)):
        concatenate_with_hadoop(lake, names, target, delimiter)
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


def concatenate_with_hadoop(lake: Lake, names: Sequence[str], target: str, delimiter: bytes) -> None:
    """Write files one after the other to one file, by Hadoop's file systems."""
    spark: Any = lake.spark
    hadoop, configuration = spark._jvm.org.apache.hadoop, spark._jsc.hadoopConfiguration()
    part, whole = (hadoop.fs.Path(_uri(path)) for path in (part_of(target), target))
    system = part.getFileSystem(configuration)
    with closing(system.create(part, True)) as writer:
        for index, name in enumerate(names):
            if index and delimiter:
                writer.write(bytearray(delimiter), 0, len(delimiter))
            place = hadoop.fs.Path(_uri(name))
            with closing(place.getFileSystem(configuration).open(place)) as reader:
                hadoop.io.IOUtils.copyBytes(reader, writer, _CHUNK, False)
    system.delete(whole, True)
    _rename(system, part, whole)


def _rename(system: Any, part: Any, whole: Any) -> None:
    if not system.rename(part, whole):
        raise OSError(f"{part} can't be renamed to {whole}")


def _uri(path: str) -> str:
    """Return a path as Hadoop reads it, whatever its default file system is."""
    local = local_path(path)
    return path if local is None else local.absolute().as_uri()

"""Slices in S3, listed without Spark: one flat listing of a bronze folder, whatever its depth."""

from __future__ import annotations

from itertools import groupby

from lakewright.lake.object_storage import Bucket, ObjectStorage, StoredObject
from lakewright.lake.paths import join, split_url
from lakewright.slices.bronze import File, Slice, is_partition, is_visible

__all__ = ["list_objects"]


def list_objects(bronze: str, storage: ObjectStorage, name: str | None = None) -> tuple[bool, list[Slice]]:
    """Return whether a bronze folder exists, and its slices, or only the one with a name.

    Raises:
        StorageUnavailable: The store can't be reached, or refuses to list the folder.
    """
    bucket, key = split_url(bronze)
    objects = storage.bucket(bucket)
    found = list(objects.under(key if name is None else f"{key}/{name}".lstrip("/")))
    if name is not None and (single := objects.find(f"{key}/{name}".lstrip("/"))) is not None:
        found.append(single)
    below = [(each.key.removeprefix(f"{key}/" if key else ""), each) for each in found]
    by_slice = groupby(sorted(below, key=lambda pair: pair[0]), key=lambda pair: pair[0].partition("/")[0])
    slices = (_slice(bronze, first, list(pairs), objects) for first, pairs in by_slice if is_visible(first))
    return bool(found), list(slices)


def _slice(bronze: str, name: str, found: list[tuple[str, StoredObject]], bucket: Bucket) -> Slice:
    path = join(bronze, name)
    inside = [(key.removeprefix(f"{name}/"), stored) for key, stored in found if key != name]
    if not inside and not bucket.is_folder_mark(found[0][1]):
        return Slice(name, path, (_file(name, found[0][1]),))
    firsts = (key.partition("/")[0] for key, _ in inside)
    marks = frozenset(first for first in firsts if not is_visible(first))
    files = (_file(key, each) for key, each in inside if _is_data(key) and not bucket.is_folder_mark(each))
    return Slice(name, path, tuple(files), marks, is_folder=True)


def _is_data(name: str) -> bool:
    *folders, last = name.split("/")
    return is_visible(last) and all(is_visible(part) or is_partition(part) for part in folders)


def _file(name: str, stored: StoredObject) -> File:
    return File(name, stored.size, stored.modified)

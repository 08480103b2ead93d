"""Files in S3, without Spark.

A folder is nothing but the common beginning of its objects' keys: it exists as long as one of them does. A
rename copies and removes each object, so that readers may see a part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakewright.lake.bucket import Bucket
from lakewright.lake.file_entry import FileEntry, is_hidden
from lakewright.lake.object_storage import ObjectStorage
from lakewright.lake.paths import split_url

__all__ = ["ObjectFiles"]

_WILDCARD = re.compile(r"[*?\[]")


class ObjectFiles:
    """Files of the buckets of an object store; the methods are those of `lakewright.lake.files.Files`."""

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage

    def _at(self, path: str) -> tuple[Bucket, str]:
        name, key = split_url(path)
        return self._storage.bucket(name), key

    def exists(self, path: str) -> bool:
        """Return whether an object exists, or a folder that holds one."""
        bucket, key = self._at(path)
        return bucket.find(key) is not None or next(bucket.under(key), None) is not None

    def listed(self, path: str) -> Iterator[FileEntry]:
        """Yield the objects at or below `path`, sorted by name."""
        bucket, key = self._at(path)
        found = list(bucket.under(key))
        if not found and (only := bucket.find(key)) is not None:
            yield FileEntry(key.rpartition("/")[2], only.size, only.modified)
            return
        for each in sorted(found, key=lambda each: each.key):
            name = each.key.removeprefix(f"{key}/")
            if not any(is_hidden(part) for part in name.split("/")) and not bucket.is_folder_mark(each):
                yield FileEntry(name, each.size, each.modified)

    def matching(self, pattern: str) -> list[str]:
        """Return the paths that match a pattern, sorted."""
        if self.exists(pattern):
            return [pattern]
        bucket, key = self._at(pattern)
        parts = key.split("/")
        fixed = next((index for index, part in enumerate(parts) if _WILDCARD.search(part)), len(parts))
        if fixed == len(parts):
            return []
        expression = re.compile("/".join(map(_part_expression, parts)))
        scheme = pattern.partition("://")[0]
        keys = (each.key.split("/") for each in bucket.under("/".join(parts[:fixed])))
        paths = {"/".join(each[: len(parts)]) for each in keys}
        return sorted(f"{scheme}://{bucket.name}/{path}" for path in paths if expression.fullmatch(path))

    def make_folder(self, path: str) -> None:
        """Do nothing: a folder exists by its objects."""

    def rename(self, source: str, target: str) -> None:
        """Copy an object, or all objects of a folder, to a path that doesn't exist yet; then remove them."""
        bucket, key = self._at(source)
        goal_bucket, goal = self._at(target)
        if goal_bucket.name != bucket.name:
            raise OSError(f"{source} can't be renamed to {target}: it is another bucket")
        # The mark that a folder is complete comes last.
        keys = sorted((each.key for each in bucket.under(key)), key=_is_mark) or [key]
        for each in keys:
            bucket.copy(each, goal + each.removeprefix(key))
        bucket.remove(keys)

    def exchange(self, one: str, other: str) -> bool:  # noqa: ARG002 - object stores can't
        """Return False: object stores can't swap folders."""
        return False

    def link(self, source: str, target: str) -> bool:  # noqa: ARG002 - object stores can't
        """Return False: object stores have no links."""
        return False

    def remove(self, path: str) -> None:
        """Remove an object, and everything below it, if it exists."""
        bucket, key = self._at(path)
        keys = [each.key for each in bucket.under(key)]
        if bucket.find(key) is not None:
            keys.append(key)
        bucket.remove(keys)

    def begin(self, path: str, size: int) -> bytes:
        """Return the first bytes of an object."""
        return self.read_range(path, 0, size)

    def read_range(self, path: str, start: int, size: int) -> bytes:
        """Return bytes of an object, by the position of the first one and their number."""
        bucket, key = self._at(path)
        return bucket.read_range(key, start, size)

    def write(self, path: str, content: bytes) -> None:
        """Write an object, in place of one that exists."""
        bucket, key = self._at(path)
        bucket.put(key, content)


def _is_mark(key: str) -> bool:
    return is_hidden(key.rpartition("/")[2])


def _part_expression(part: str) -> str:
    """Return the regular expression of one level of a pattern."""
    texts = []
    for piece in re.split(r"(\*|\?|\[[^\]]+\])", part):
        if piece == "*":
            texts.append("[^/]*")
        elif piece == "?":
            texts.append("[^/]")
        elif piece.startswith("[") and piece.endswith("]"):
            inner = piece[1:-1].replace("\\", r"\\")
            texts.append(f"[^{inner[1:]}]" if inner.startswith(("!", "^")) else f"[{inner}]")
        else:
            texts.append(re.escape(piece))
    return "".join(texts)

"""The objects of a bucket in an object store, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError, StorageUnavailable
from lakewright.lake.storage_errors import store_fault

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import S3Store

__all__ = ["Bucket", "StoredObject"]


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object.

    Attributes:
        key: Its path in the bucket.
        size: In bytes.
        modified: In milliseconds since 1970.
        tag: What the store calls this content; another content has another tag. Empty if the store has none.
    """

    key: str
    size: int
    modified: int
    tag: str = ""


class Bucket:
    """The objects of a bucket; keys have no slash at their ends.

    Each method raises `StorageUnavailable` if the store can't be reached or refuses the request. The client
    repeats requests that fail for a moment.
    """

    def __init__(self, name: str, store: S3Store, endpoint_url: str) -> None:
        self.name = name
        self._store = store
        self._where = f"s3://{name}"
        self._at = f" at {endpoint_url}" if endpoint_url else ""

    def under(self, key: str, *, after: str = "") -> Iterator[StoredObject]:
        """Yield the objects below a folder, by name; only those `after` a key.

        They come from one flat listing of pages.
        """
        prefix = f"{key}/" if key else ""
        try:
            pages = self._store.list(prefix or None, offset=after or None)
            for page in pages:
                for meta in page:
                    if meta["path"].startswith(prefix):
                        yield _object(meta)
        except Exception as error:
            raise self.fault(error, key, "listed") from error

    def is_folder_mark(self, found: StoredObject) -> bool:
        """Return whether a listed object is the empty one with which Hadoop and others mark a folder.

        Its real key ends with a slash, which listings leave out.
        """
        return found.size == 0 and self.find(found.key) is None

    def find(self, key: str) -> StoredObject | None:
        """Return an object, or None if there is none."""
        try:
            meta = self._store.head(key)
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self.fault(error, key, "read") from error
        return _object(meta)

    def read(self, key: str) -> bytes | None:
        """Return the content of an object, or None if there is none."""
        try:
            return bytes(self._store.get(key).bytes())
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self.fault(error, key, "read") from error

    def read_range(self, key: str, start: int, size: int) -> bytes:
        """Return bytes of an object that is not empty, by the position of the first one and their number."""
        try:
            return bytes(self._store.get_range(key, start=start, length=size))
        except Exception as error:
            raise self.fault(error, key, "read") from error

    def put(self, key: str, content: bytes) -> None:
        """Write an object, in place of one that exists."""
        try:
            self._store.put(key, content)
        except Exception as error:
            raise self.fault(error, key, "written") from error

    def put_if_absent(self, key: str, content: bytes) -> bool:
        """Write an object unless it exists; return whether it was written, as far as the store says."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            self._store.put(key, content, mode="create")
        except (AlreadyExistsError, PreconditionError):
            return False
        except Exception as error:
            raise self.fault(error, key, "written") from error
        return True

    def copy(self, source: str, target: str) -> None:
        """Copy an object inside the store, in place of one that exists."""
        try:
            self._store.copy(source, target)
        except Exception as error:
            raise self.fault(error, source, f"copied to {target}") from error

    def remove(self, keys: list[str]) -> None:
        """Remove objects; those that don't exist are left out."""
        try:
            for start in range(0, len(keys), _REMOVED_AT_ONCE):
                self._store.delete(keys[start : start + _REMOVED_AT_ONCE])
        except FileNotFoundError:
            return
        except Exception as error:
            raise self.fault(error, keys[0], "removed") from error

    def fault(self, error: Exception, key: str, what: str) -> LakewrightError:
        """Return the error for a request that failed: what can't be done with the object or folder."""
        if isinstance(error, LakewrightError):
            return error
        found = store_fault(str(error))
        place = f"{self._where}/{key}".rstrip("/") + self._at
        return StorageUnavailable(f"{place} can't be {what}: {found.reason}", remedy=found.remedy)


_REMOVED_AT_ONCE = 1000
"""S3 removes at most this many objects by one request."""


def _object(meta: ObjectMeta) -> StoredObject:
    modified = int(meta["last_modified"].timestamp() * 1000)
    return StoredObject(meta["path"], meta["size"], modified, meta["e_tag"] or "")

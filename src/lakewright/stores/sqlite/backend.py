"""The kind `sqlite`: a file in the project, which needs no server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from lakewright.errors import StoreUnavailable
from lakewright.manifest.store import Store
from lakewright.stores.backend import Backend
from lakewright.stores.memory import MemoryStore

DEFAULT_PATH = ".lakewright/manifest.db"

T = TypeVar("T")


class SqliteBackend(Backend):
    """A SQLite file; `path` is absolute or relative to the current folder."""

    options = frozenset({"path"})

    @classmethod
    def resolve(cls, settings: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        return {**settings, "path": str(folder / settings.get("path", DEFAULT_PATH))}

    @property
    def path(self) -> Path:
        """The file."""
        return Path(str(self.settings.get("path", DEFAULT_PATH)))

    @property
    def is_shared(self) -> bool:
        """Return False: processes of other machines can't lock its file."""
        return False

    @property
    def local_place(self) -> Path | None:
        return self.path

    @property
    def new_folder(self) -> Path | None:
        return self.path.parent

    @property
    def is_writable(self) -> bool:
        """Whether this user may write the file."""
        from lakewright.stores.sqlite.readonly import is_writable

        return is_writable(self.path)

    def open(self) -> Store:
        from lakewright.stores.sqlite.database import SqliteStore

        return SqliteStore(self.path)

    def open_existing(self) -> Store | datetime:
        """Return the store, read-only if this user cannot write the file; the time if there is no file."""
        from lakewright.stores.sqlite.readonly import is_writable, read_only_store

        if not self._exists():
            return datetime.now(UTC)
        return self.open() if is_writable(self.path) else read_only_store(self.path)

    def read(self, ask: Callable[[Store], T]) -> T:
        """Return the result of `ask`; no file is created and no byte of any file is changed."""
        from lakewright.stores.sqlite.readonly import read_only_store

        with closing(read_only_store(self.path) if self._exists() else MemoryStore()) as store:
            return ask(store)

    def _exists(self) -> bool:
        """Return whether there is a file.

        Raises:
            StoreUnavailable: Its folder can't be read.
        """
        try:
            return self.path.exists()
        except OSError as error:
            raise StoreUnavailable(
                f"the manifest {self.path} can't be opened: {error.strerror}",
                remedy="Give the user who runs Lakewright access to its folder, or set "
                "`manifest: {path: …}` to another file.",
            ) from error

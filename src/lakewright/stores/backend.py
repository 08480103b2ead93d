"""The interface of a kind of back end: its settings, how its store is opened, and who may write to it.

Whether this user may write is found by the rights to its file and folder, without writing anything. Of a
database or an object store, only a write would show it.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from secrets import SystemRandom
from typing import Any, ClassVar, TypeVar

from lakewright.errors import Fault, LakewrightError, NotInstalled
from lakewright.manifest.store import Store
from lakewright.stores.memory import MemoryStore

T = TypeVar("T")


def check_version(where: str, present: int, known: int) -> None:
    """Raise `NotInstalled` if a newer version of Lakewright has written the manifest `where`."""
    if present > known:
        raise NotInstalled(
            f"{where} has schema version {present}, this Lakewright knows versions up to {known}",
            remedy="Install the version of Lakewright that last wrote it, or a newer one.",
        )


def attempts(patience: float, given_up: LakewrightError) -> Iterator[None]:
    """Yield once per attempt, with growing pauses of random length between.

    Args:
        patience: Seconds after which no further attempt is made.
        given_up: The error that is raised then.
    """
    deadline, longest = time.monotonic() + patience, 0.02
    while True:
        yield
        time.sleep(SystemRandom().uniform(0, longest))
        longest = min(2 * longest, 2.0)
        if time.monotonic() > deadline:
            raise given_up


class Backend(ABC):
    """One kind of back end with its settings.

    Attributes:
        options: Settings that the kind takes, in addition to those of every kind.
        required: Settings that a project must give, each with the remedy that is shown when it is missing.

    Args:
        settings: The kind's own settings; all of them are among `options`.
    """

    options: ClassVar[frozenset[str]] = frozenset()
    required: ClassVar[Mapping[str, str]] = {}

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings

    @classmethod
    def resolve(cls, settings: Mapping[str, Any], _folder: Path) -> dict[str, Any]:
        """Return settings with defaults filled in, and relative paths joined to the project's folder."""
        return dict(settings)

    @property
    def is_shared(self) -> bool:
        """Whether several machines can use the manifest at once."""
        return True

    @property
    def new_folder(self) -> Path | None:
        """The local folder in which opening creates the manifest's files; None if that is not checked."""
        return None

    @property
    def local_place(self) -> Path | None:
        """The file or folder on this machine that is the manifest; None if it is elsewhere."""
        return None

    @property
    def is_writable(self) -> bool | None:
        """Whether this user may write to the manifest that exists; None if only a write would show it."""
        return None

    @abstractmethod
    def open(self) -> Store:
        """Return the store, ready for use; the manifest is created if it does not exist."""

    @abstractmethod
    def open_existing(self) -> Store | datetime:
        """Return the store if the manifest exists, otherwise the back end's current time (UTC)."""

    def read(self, ask: Callable[[Store], T]) -> T:
        """Return the result of `ask`, which only reads; a manifest that does not exist reads as empty."""
        existing = self.open_existing()
        store = MemoryStore() if isinstance(existing, datetime) else existing
        try:
            return ask(store)
        finally:
            store.close()


class MemoryBackend(Backend):
    """The kind `memory`: an empty manifest that is lost when the process ends, for tests."""

    @property
    def is_shared(self) -> bool:
        """Return False: it belongs to one process."""
        return False

    def open(self) -> Store:
        """Return an empty store."""
        return MemoryStore()

    def open_existing(self) -> Store:
        """Return an empty store."""
        return MemoryStore()


def may_write(*places: Path) -> bool:
    """Return whether this user may write all of some files and folders that exist."""
    as_effective = os.access in os.supports_effective_ids
    return all(os.access(place, os.W_OK, effective_ids=as_effective) for place in places)


def write_fault(backend: Backend) -> Fault | None:
    """Return why a run would fail at a manifest that can be read; None if nothing shows that it would.

    Args:
        backend: The manifest's back end; it can be read, or does not exist yet.
    """
    place = backend.local_place
    if place is None:
        return None
    if place.exists():
        if backend.is_writable is not False:
            return None
        return Fault(
            f"the manifest {place} can be read, but this user may not write to it: a run would fail",
            remedy=f"Give the user who runs Lakewright the right to write {_parts(place)}. "
            "What only reads works without.",
            code="store_unavailable",
        )
    folder = next(above for above in place.absolute().parents if above.exists())
    if not folder.is_dir() or may_write(folder):
        return None
    return Fault(
        f"the manifest {place} does not exist, and this user may not create it in {folder}: a run would fail",
        remedy=f"Give the user who runs Lakewright the right to write {folder}, or set `manifest:` to "
        "another place.",
        code="store_unavailable",
    )


def _parts(place: Path) -> str:
    if place.is_dir():
        return "this folder and what is in it"
    beside = [f"{name}" for end in ("-wal", "-shm") if (name := Path(f"{place}{end}")).exists()]
    also = "".join(f", {name}" for name in beside)
    return f"this file{also} and its folder {place.parent}"

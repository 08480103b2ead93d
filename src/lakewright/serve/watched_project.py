"""A project that is loaded again whenever one of its files has changed.

A project that can't be loaded is an error until its files change again: the last one that could be loaded is
not used instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from lakewright.app import App
from lakewright.errors import LakewrightError, NotInstalled
from lakewright.spark.session import NoSession

Stamp = tuple[int, int, int, int] | None
"""What changes when a file or the listing of a folder changes; None for one that does not exist."""


NO_SPARK = NoSession(
    NotInstalled(
        "the server's own process starts no Spark", remedy="Type the command instead: it may start Spark."
    )
)


@dataclass(slots=True)
class WatchedProject:
    """A project of a process that runs for long, and starts no Spark; its threads may share it.

    Attributes:
        open_project: Opens the project; its argument receives each file and folder that is read.
    """

    open_project: Callable[[Callable[[Path], None]], App]
    _app: App | None = field(init=False, default=None)
    _error: LakewrightError | None = field(init=False, default=None)
    _stamps: Mapping[Path, Stamp] = field(init=False, default_factory=dict)
    _lock: Lock = field(init=False, default_factory=Lock)

    def app(self) -> App:
        """Return the project as its files declare it now.

        Raises:
            LakewrightError: The project can't be loaded; a `SpecError` has every fault.
        """
        with self._lock:
            is_loaded = self._app is not None or self._error is not None
            if not is_loaded or any(_stamp(path) != stamp for path, stamp in self._stamps.items()):
                self._load()
            if self._error is not None:
                # Each caller gets an error of its own: tracebacks grow with each `raise` of the same one.
                raise self._error.with_traceback(None)
            if self._app is None:
                raise AssertionError("a load ends with a project or an error")
            return self._app

    def close(self) -> None:
        """Close the project, if it is open."""
        with self._lock:
            if self._app is not None:
                self._app.close()
            self._app = None

    def _load(self) -> None:
        read: dict[Path, Stamp] = {}
        before, self._app, self._error = self._app, None, None
        try:
            self._app = self.open_project(lambda path: _note(read, path))
            self._app.sessions = NO_SPARK
            _keep_store(before, self._app)
        except LakewrightError as error:
            self._error = error
            if before is not None:
                before.close()
        self._stamps = read


def _keep_store(before: App | None, now: App) -> None:
    """Let the project use the open manifest of the one before it; another manifest is closed."""
    if before is None or "store" not in before.__dict__:
        return
    if before.manifest_settings == now.manifest_settings:
        now.store = before.__dict__.pop("store")
    before.close()


def _note(read: dict[Path, Stamp], path: Path) -> None:
    """Keep the stamp of a file before it is read: one that changes meanwhile has another one afterwards."""
    if path not in read:
        read[path] = _stamp(path)


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)

"""Making and sending OpenLineage events: the client, the namespace, and the thread that sends.

Events are sent if the project configures a collector, or the client's own environment variables do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from queue import Empty, Full, Queue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault
from lakewright.run.lineage.events import run_event

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

    from lakewright.manifest.redact import Redactor
    from lakewright.run.lineage.events import Subject

__all__ = ["NAMESPACE", "URL", "Reporter", "Sender", "is_configured"]

log = logging.getLogger(__name__)

URL, NAMESPACE = "lakewright.openlineage.url", "lakewright.openlineage.namespace"
"""The configuration of the collector and of the namespace of jobs."""

TIMEOUT_SECONDS = 3
"""Time limit of one request to a collector that the project configures."""


_VARIABLES = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT")


def is_configured(config: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    """Return whether events are to be sent, and the client is installed; that it is missing is told."""
    if environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    if not config.get(URL) and not any(name.startswith(_VARIABLES) for name in environ):
        return False
    if find_spec("openlineage") is None:
        log.warning("OpenLineage is configured, but its client is not installed: lakewright[openlineage]")
        return False
    return True


@dataclass(slots=True)
class Reporter:
    """Sends events to the collector that a project or the environment names.

    Attributes:
        config: The project's configuration.
        environ: The environment variables.
        redactor: Hides secrets.
        clock: Returns the present time.
        sender: Sends events.
    """

    config: Mapping[str, str]
    environ: Mapping[str, str]
    redactor: Redactor
    clock: Callable[[], datetime]
    sender: Sender = field(default_factory=lambda: Sender("OpenLineage"))
    _client: OpenLineageClient | None = field(init=False, default=None)

    def namespace(self, project: str) -> str:
        """Return the namespace of a project's jobs."""
        return self.environ.get("OPENLINEAGE_NAMESPACE") or self.config.get(NAMESPACE) or project

    def shown(self, error: Fault | None) -> Fault | None:
        """Return an error without secrets."""
        return None if error is None else Fault(self.redactor.text(error.message), code=error.code)

    def send(
        self, subject: Subject, state: str, make: Callable[[], Mapping[str, Any]] = dict, **content: Any
    ) -> None:
        """Send an event in the background; `make` returns what takes time to find out."""
        self.sender.send(partial(self._emit, subject, state, self.clock(), make, content))

    def close(self) -> None:
        """Wait some time for the events that are left."""
        self.sender.close()

    def _emit(
        self,
        subject: Subject,
        state: str,
        at: datetime,
        make: Callable[[], Mapping[str, Any]],
        content: Mapping[str, Any],
    ) -> None:
        """Make an event and send it. The client is imported here, in the thread: that takes half a second."""
        if self._client is None:
            self._client = self._new_client()
        self._client.emit(run_event(subject, state, at, **content, **make()))

    def _new_client(self) -> OpenLineageClient:
        from openlineage.client import OpenLineageClient

        url = self.config.get(URL)
        if url is None:
            return OpenLineageClient()
        transport = {"type": "http", "url": url, "timeout": TIMEOUT_SECONDS, "retry": {"total": 1}}
        return OpenLineageClient(config={"transport": transport})


MAX_WAITING = 1_000
"""Events that may wait; further ones are dropped, so that a slow collector cannot use up memory."""

MAX_FAILURES = 3
"""Failures in a row after which no further events are sent in this run."""

CLOSE_SECONDS = 5.0
"""How long the end of a run waits for the events that are left; a collector that hangs is cut off."""


class Sender:
    """Sends events in a background thread, in the order they were added; failures are told once.

    Args:
        what: What is sent where, for warnings.
        max_waiting: How many events may wait.
        close_seconds: How long `close` waits.
    """

    def __init__(
        self, what: str, *, max_waiting: int = MAX_WAITING, close_seconds: float = CLOSE_SECONDS
    ) -> None:
        self._what = what
        self._close_seconds = close_seconds
        self._events: Queue[Callable[[], None] | None] = Queue(max_waiting)
        self._thread: Thread | None = None
        self._failures = 0
        self._lost = 0
        self._is_told = False
        self._is_cut_off = False

    def send(self, event: Callable[[], None]) -> None:
        """Add an event, which the thread makes and sends."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="openlineage", daemon=True)
            self._thread.start()
        try:
            self._events.put_nowait(event)
        except Full:
            self._lost += 1

    def close(self) -> None:
        """Wait a limited time for the remaining events; the others are dropped, with a warning."""
        if self._thread is None:
            return
        deadline = monotonic() + self._close_seconds
        with suppress(Full):
            self._events.put(None, timeout=self._close_seconds)
        self._thread.join(max(0.0, deadline - monotonic()))
        self._is_cut_off = self._thread.is_alive()
        lost = self._lost + (max(1, self._events.qsize()) if self._is_cut_off else 0)
        if lost and not self._is_told:
            log.warning("%s: %d events were not sent: it answers too slowly", self._what, lost)

    def _run(self) -> None:
        while (event := self._next()) is not None:
            if self._failures >= MAX_FAILURES or self._is_cut_off:
                self._lost += 1
                continue
            try:
                event()
                self._failures = 0
            except Exception as error:  # an event must not fail the run that it tells of
                self._failures += 1
                self._tell(error)

    def _next(self) -> Callable[[], None] | None:
        try:
            return self._events.get(timeout=None if not self._is_cut_off else 0)
        except Empty:
            return None

    def _tell(self, error: Exception) -> None:
        if not self._is_told and not self._is_cut_off:
            self._is_told = True
            log.warning("%s: events could not be sent, and the run goes on: %s", self._what, error)

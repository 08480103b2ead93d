"""Making and sending OpenLineage events: the client, the namespace, and the thread that sends.

Events are sent if the project configures a collector, or the client's own environment variables do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault
from lakewright.run.lineage.events import run_event
from lakewright.run.lineage.sender import Sender

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

    from lakewright.manifest.redact import Redactor
    from lakewright.run.lineage.events import Subject

__all__ = ["NAMESPACE", "URL", "Reporter", "is_configured"]

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

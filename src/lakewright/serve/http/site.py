"""What the answers of a server are made from: the project, and the commands that were begun over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from lakewright.manifest.plain_values import document_of
from lakewright.manifest.redaction import Redactor
from lakewright.serve.http.faults import HttpFault
from lakewright.serve.watched_project import WatchedProject
from lakewright.warm.requests import Gauges, KeptRequest, Requests

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from lakewright.app import App
    from lakewright.serve.http.access import Access


MOST_RUNNING = 8
MOST_KEPT = 100
LARGEST_DOCUMENT = 5_000_000


@dataclass(slots=True)
class BegunCommand:
    """A command that was begun over HTTP.

    Attributes:
        arguments: What follows `lakewright`, without `-o json`.
        exit_code: None while it runs.
    """

    command_id: str
    arguments: tuple[str, ...]
    author: str
    reason: str
    started: datetime
    request: KeptRequest = field(repr=False)
    finished: datetime | None = None
    exit_code: int | None = None

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.finished is None

    @property
    def document(self) -> Any:
        """The JSON document that it printed; None before it has ended, or if it printed none."""
        printed = "" if self.is_running else self.request.printed
        try:
            return json.loads(printed) if 0 < len(printed) <= LARGEST_DOCUMENT else None
        except ValueError:
            return None

    def as_json(self) -> dict[str, Any]:
        """Return the command as the API shows it."""
        named = ("command_id", "arguments", "author", "reason", "started", "finished", "exit_code")
        return document_of(self, *named)


@dataclass(slots=True)
class Commands:
    """The commands of one server, the last ones kept.

    Attributes:
        requests: Runs command lines.
    """

    requests: Requests
    _begun: dict[str, BegunCommand] = field(init=False, default_factory=dict)
    _lock: Lock = field(init=False, default_factory=Lock)
    _ended: int = field(init=False, default=0)

    def begin(
        self, arguments: Sequence[str], *, author: str, reason: str, joins: bool = False
    ) -> BegunCommand:
        """Begin a command and return it; its run's history names the author and the reason.

        Args:
            arguments: What follows `lakewright`.
            author: Who begins it.
            reason: Why.
            joins: Whether the same command of the same author is returned instead if it is running.

        Raises:
            HttpFault: Too many commands are running.
        """
        with self._lock:
            same = (each for each in self._begun.values() if each.is_running and joins)
            asked = (tuple(arguments), author)
            running = next((each for each in same if (each.arguments, each.author) == asked), None)
            if running is not None:
                return running
            if sum(each.is_running for each in self._begun.values()) >= MOST_RUNNING:
                raise HttpFault(
                    429,
                    "too_many_commands",
                    f"{MOST_RUNNING} commands are running, which were begun over HTTP",
                    "Wait until one of them has ended, or cancel one.",
                )
            request = KeptRequest(self.requests, arguments, f"{author}: {reason}")
            command = BegunCommand(uuid4().hex, tuple(arguments), author, reason, datetime.now(UTC), request)
            self._begun[command.command_id] = command
            self._forget()
        threading.Thread(target=self._await, args=(command,), daemon=True).start()
        return command

    def find(self, command_id: str) -> BegunCommand:
        """Return a command.

        Raises:
            HttpFault: There is no such command.
        """
        with self._lock:
            if command_id not in self._begun:
                raise HttpFault(404, "unknown", f"there is no command {command_id!r}")
            return self._begun[command_id]

    def all(self) -> list[BegunCommand]:
        """Return the commands that are kept, the newest first."""
        with self._lock:
            return list(self._begun.values())[::-1]

    @property
    def running(self) -> int:
        """How many commands are running."""
        return sum(each.is_running for each in self.all())

    @property
    def ended(self) -> int:
        """How many commands have ended."""
        return self._ended

    def cancel(self, command_id: str) -> BegunCommand:
        """Interrupt a command, as Ctrl-C would; it ends after the present commit."""
        command = self.find(command_id)
        if command.is_running:
            command.request.interrupt()
        return command

    def close(self) -> None:
        """Interrupt the commands that are running, and forget all."""
        for command in self.all():
            if command.is_running:
                command.request.interrupt()
            command.request.close()

    def _await(self, command: BegunCommand) -> None:
        try:
            command.exit_code = command.request.wait()
        except Exception:  # it must not look as if it were running
            command.exit_code = 1
        command.finished = datetime.now(UTC)
        with self._lock:
            self._ended += 1

    def _forget(self) -> None:
        ended = [each for each in self._begun.values() if not each.is_running]
        for command in ended[: max(0, len(self._begun) - MOST_KEPT)]:
            del self._begun[command.command_id]
            command.request.close()


@dataclass(frozen=True, slots=True)
class Site:
    """One project, as it is served.

    Attributes:
        project: The project, which is loaded again when its files change.
        allows_data: Whether rows of tables are shown.
        gauges: What the warm session reports of itself.
        deciding: Held while a decision is recorded.
    """

    project: WatchedProject
    access: Access
    commands: Commands
    allows_data: bool = False
    gauges: Gauges = field(default_factory=Gauges)
    deciding: Lock = field(default_factory=Lock, compare=False, repr=False)

    def app(self) -> App:
        """Return the project as its files declare it now.

        Raises:
            LakewrightError: It can't be loaded.
        """
        return self.project.app()

    def redactor(self) -> Redactor:
        """Return what removes the project's secrets; without a project, those of the environment."""
        try:
            return self.project.app().redactor
        except Exception:  # a broken project has no secrets that could be known
            return Redactor.of(self.commands.requests.environ)


class SitePages(Protocol):
    """The pages of a site."""

    def routes(self) -> list[Route]:
        """Return their routes."""
        ...

    def error_page(self, request: Request, status: int, error: Exception) -> Response:
        """Return the page for a request that failed."""
        ...


MakePages = Callable[[Site], SitePages]
"""Makes the pages of a site."""

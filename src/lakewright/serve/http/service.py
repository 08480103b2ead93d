"""The HTTP server as a service: uvicorn in a thread of its own, with limits on connections."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from lakewright.errors import UsageError
from lakewright.serve.http.access import Access
from lakewright.serve.http.application import make_application
from lakewright.serve.http.site import Commands, MakePages, Site
from lakewright.stores.process import user_name

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from lakewright.serve.service import Serving


log = logging.getLogger(__name__)

MOST_CONNECTIONS = 200
HEADER_SECONDS = 10.0
IDLE_SECONDS = 15
LONGEST_HEADER = 32_768
STOP_SECONDS = 5.0
TICK, TICKS = 0.1, 5
"""Seconds of uvicorn's tick, each tenth of which sets the date of answers, and how many pass at once."""


def make_service(serving: Serving, make_pages: MakePages) -> HttpService:
    """Return the service for a server's project."""
    options = serving.options
    access = Access(
        user=user_name(),
        hosts=frozenset({options.host}),
        proxy_header=options.behind_proxy,
        allows_actions=options.allow_actions,
    )
    site = Site(
        project=serving.project,
        access=access,
        commands=Commands(serving.requests),
        allows_data=options.allow_data,
        gauges=serving.gauges,
    )
    return HttpService(serving, site, make_pages)


def _answer(server: uvicorn.Server, listener: socket.socket) -> None:
    try:
        server.run(sockets=[listener])
    except BaseException:  # the server finds that the thread has ended, and stops
        log.exception("the page and the API have ended")


@dataclass(slots=True)
class HttpService:
    """Serves the API, the metrics and the page of a project."""

    name: ClassVar[str] = "http"

    serving: Serving
    site: Site
    make_pages: MakePages
    _server: uvicorn.Server | None = field(init=False, default=None)
    _thread: threading.Thread | None = field(init=False, default=None)
    _socket: socket.socket | None = field(init=False, default=None)
    _is_stopping: bool = field(init=False, default=False)

    @property
    def is_busy(self) -> bool:
        """Whether a command that was begun over HTTP is running."""
        return self.site.commands.running > 0

    @property
    def has_ended(self) -> bool:
        """Whether nothing answers any more."""
        return self._thread is not None and not self._thread.is_alive() and not self._is_stopping

    @property
    def url(self) -> str:
        """The address of the page."""
        if self._socket is None:
            raise AssertionError("the service has started")
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> None:
        """Listen, and begin to answer.

        Raises:
            UsageError: The port is taken, or the host is not one of this machine.
        """
        self._socket = _listening(self.serving.options.host, self.serving.options.port)
        self.serving.files.write(self.serving.files.token, self.site.access.token + "\n")
        server = self._server = CalmServer(_config(make_application(self.site, self.make_pages)))
        self._thread = threading.Thread(target=_answer, args=(server, self._socket), name="http")
        self._thread.start()
        self.serving.report(self._greeting())

    def stop(self) -> None:
        """Stop answering."""
        self._is_stopping = True
        if self._server is not None:
            self._server.should_exit = True
        self.site.commands.close()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
            if self._thread.is_alive() and self._server is not None:
                self._server.force_exit = True
                self._thread.join(STOP_SECONDS)
        if self._socket is not None:
            self._socket.close()

    def _greeting(self) -> str:
        if self.site.access.proxy_header is not None:
            return f"listening on {self.url}, for a proxy that names users in {self.site.access.proxy_header}"
        return f"open {self.url}/login/{self.site.access.new_link_token()} (once, within 15 minutes)"


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        is_both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, backlog=128, dualstack_ipv6=is_both)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (")[0]  # Python adds the address
        raise UsageError(
            f"the server can't listen on {host}, port {port}: {why}",
            remedy="Name another port with --port; 0 takes a free one.",
        ) from error


def _config(application: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        access_log=False,
        log_config=None,
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=LONGEST_HEADER,
    )


class CalmServer(uvicorn.Server):
    """Looks twice a second whether it is to stop; uvicorn looks ten times, even if nobody asks anything."""

    async def main_loop(self) -> None:
        """Run until it is to stop."""
        counter = 0
        while not await self.on_tick(counter):
            await asyncio.sleep(TICK * TICKS)
            counter += TICKS


class PatientProtocol(H11Protocol):
    """Closes a connection whose request does not come within some seconds; uvicorn waits for ever."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request, which must be whole some seconds after its beginning."""
        before: RequestResponseCycle | None = self.cycle
        super().data_received(data)
        now: RequestResponseCycle | None = self.cycle
        if now is not before or (now is not None and not now.response_complete):
            self._wait_no_more()
        elif self._waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

"""What runs in a server: services, their options, and what they are made from."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from lakewright.errors import UsageError
from lakewright.warm.requests import Gauges, Requests

if TYPE_CHECKING:
    from lakewright.serve.server_files import ServerFiles
    from lakewright.serve.watched_project import WatchedProject


class Service(Protocol):
    """A part of a server that runs in threads of its own."""

    @property
    def name(self) -> str:
        """Its name in the log."""
        ...

    @property
    def url(self) -> str | None:
        """Where it is reached since its start, which `lakewright serve status` shows; None for nowhere."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether it does or awaits something, so that an idle server must not stop by itself."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by an error, which the log has, although nobody stopped it."""
        ...

    def start(self) -> None:
        """Begin to work, and return.

        Raises:
            LakewrightError: It can't; the server does not start.
        """
        ...

    def stop(self) -> None:
        """End its work and its threads. It is called once, also after a `start` that failed."""
        ...


@dataclass(frozen=True, slots=True)
class Serving:
    """What services are made from.

    Attributes:
        project: The project, which the services share.
        requests: Runs command lines on the warm session.
        runner: The function that runs a command line in a worker, as `module:function`.
        report: Prints a line for the person who started the server.
        gauges: What the warm session reports of itself.
    """

    options: ServeOptions
    files: ServerFiles
    project: WatchedProject
    requests: Requests
    runner: str
    report: Callable[[str], None]
    gauges: Gauges = field(default_factory=Gauges)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What a server listens on and what it allows.

    Attributes:
        port: 0 takes a free port.
        allow_actions: Whether the page and the API may change something.
        allow_data: Whether the page shows rows of tables.
        is_on_demand: Whether a command started the server by itself: it listens on no port, and stops when it
            has had nothing to do for a while.
        behind_proxy: The header in which a proxy names the user; with it, any host is allowed.
    """

    host: str = "127.0.0.1"
    port: int = 8377
    allow_actions: bool = False
    allow_data: bool = False
    behind_proxy: str | None = None
    is_on_demand: bool = False

    def check(self) -> None:
        """Raise an error if the server would be reachable from other machines without a proxy.

        Raises:
            UsageError: The host is not a loopback address, and no proxy names the user.
        """
        if self.behind_proxy is None and not _is_loopback(self.host):
            raise UsageError(
                f"--host {self.host} is not a loopback address: other machines could reach the server",
                remedy="Use --host 127.0.0.1, or put a proxy that checks users in front of the server and "
                "name the header in which it passes the user: --behind-proxy X-Forwarded-User.",
            )

    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of `lakewright serve` for these options."""
        return (
            *("--host", self.host, "--port", str(self.port)),
            *(("--allow-actions",) if self.allow_actions else ()),
            *(("--allow-data",) if self.allow_data else ()),
            *(("--behind-proxy", self.behind_proxy) if self.behind_proxy is not None else ()),
            *(("--on-demand",) if self.is_on_demand else ()),
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

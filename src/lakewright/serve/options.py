"""The options of a server, as `lakewright serve` takes them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from lakewright.errors import UsageError

__all__ = ["ServeOptions"]


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

"""The server: it composes services, starts them, waits until it is asked to stop, and stops them."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version

from lakewright.errors import NotInstalled, ServiceEnded
from lakewright.serve.service import Service, Serving

log = logging.getLogger(__name__)


PAUSE = 0.2
"""Seconds between two looks at whether the server is to stop."""
IDLE_SECONDS = 15 * 60.0
"""Seconds after which a server that was started on demand stops if it has nothing to do."""


def serve(
    serving: Serving,
    is_stopping: Callable[[], bool],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Run the project's services until they are to stop.

    Raises:
        UsageError: Another server runs for this project, or an option is wrong.
        LakewrightError: A service can't start; those that have started are stopped.
        ServiceEnded: A service has ended by an error; the others are stopped.
    """
    serving.options.check()
    with serving.files.locked():
        services = make_services(serving)
        with closing(serving.project), running(services):
            addresses = {each.name: each.url for each in services if each.url is not None}
            serving.files.write_state({**_state(serving), **addresses})
            begun = clock()
            while not is_stopping():
                sleep(PAUSE)
                _check_alive(services)
                begun = clock() if any(service.is_busy for service in services) else begun
                if serving.options.is_on_demand and clock() - begun > IDLE_SECONDS:
                    log.info("the server stops: it was started on demand, and had nothing to do")
                    break
        log.info("the server has stopped")


def _check_alive(services: Sequence[Service]) -> None:
    for service in services:
        if service.has_ended:
            raise ServiceEnded(
                f"the service {service.name} has ended by an error, so the server stops",
                remedy="Its traceback is above, or in .lakewright/serve.log. Start the server again.",
            )


def make_services(serving: Serving) -> tuple[Service, ...]:
    """Return the services that the project needs; they start in this order, and stop in the reverse one."""
    from lakewright.serve.triggers import TriggerService
    from lakewright.warm.session import WarmSession

    is_on_demand = serving.options.is_on_demand
    warm = WarmSession(serving.requests, serving.runner, serving.gauges, is_lazy=is_on_demand)
    made = (warm, _web(serving), TriggerService(serving))
    return tuple(service for service in made if service is not None)


@contextmanager
def running(services: Sequence[Service]) -> Iterator[None]:
    """Start services, and stop those that were started, the last one first."""
    with ExitStack() as begun:
        for service in services:
            begun.callback(_stop, service)
            service.start()
            log.info("%s started", service.name)
        yield


def _stop(service: Service) -> None:
    try:
        service.stop()
    except Exception:  # the other services must be stopped too
        log.exception("%s did not stop cleanly", service.name)


def _state(serving: Serving) -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": version("lakewright"),
        "project": str(serving.files.basedir),
    }


def _web(serving: Serving) -> Service | None:
    """Return the service for a server's project; a server that was started on demand has none.

    Raises:
        NotInstalled: A package of the extra `serve` is missing.
    """
    if serving.options.is_on_demand:
        return None
    try:
        from lakewright.serve.http.service import make_service
        from lakewright.serve.page.routes import Pages
    except ModuleNotFoundError as missing:
        raise NotInstalled.of(missing, "the server", "serve") from missing
    return make_service(serving, Pages)

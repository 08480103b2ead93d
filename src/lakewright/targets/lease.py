"""Holding the lease on what a target writes, for as long as it writes."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from lakewright.errors import LakewrightError, LeaseHeld, LeaseLost
from lakewright.lake.failpoint import pass_point
from lakewright.manifest.lease import Lease
from lakewright.plan.resource import Resource
from lakewright.stores.heartbeat import Heartbeat
from lakewright.targets.context import Context

__all__ = ["lease_key", "leased_resource", "leases_held"]

log = logging.getLogger(__name__)

_PREFIX = "write "
_KEY = re.compile(r"write (?P<category>\w+):(?P<name>.*?)(?P<parts>(?:\[[^\[\]=]+=[^\[\]]*\])*)", re.DOTALL)
_PART = re.compile(r"\[([^\[\]=]+)=([^\[\]]*)\]")
_PAUSE_SECONDS = 0.2


def lease_key(resource: Resource) -> str:
    """Return the key of the lease on a resource.

    Example:
        >>> lease_key(Resource.table("gold.x", {"year": "2022"}))
        'write table:gold.x[year=2022]'
    """
    return f"{_PREFIX}{resource}"


def leased_resource(key: str) -> Resource | None:
    """Return the resource that a lease's key stands for, or None if it stands for something else."""
    found = _KEY.fullmatch(key)
    if found is None:
        return None
    return Resource(found["category"], found["name"], tuple(_PART.findall(found["parts"])))


@contextmanager
def leases_held(context: Context, resources: frozenset[Resource]) -> Iterator[None]:
    """Hold the leases on what is written, and give them back.

    Once one is lost, Spark's jobs are cancelled, and nothing that was written so far is put where readers
    see it.

    Raises:
        LeaseHeld: Another run writes the same, or a part of it, and the run wasn't asked to wait.
        LeaseLost: A lease could not be kept up to the end.
    """
    lake, store = context.workspace.lake, context.leases.store
    leases: list[Lease] = []

    def check() -> None:
        for lease in leases:
            heartbeat.check(lease)

    with ExitStack() as stack:
        loss = partial(_stop, lake.stopper())
        heartbeat = stack.enter_context(Heartbeat(store, context.leases.duration, on_loss=loss))
        for resource in sorted(resources, key=str):
            lease = _claimed(context, resource)
            stack.callback(context.leases.release, lease)
            heartbeat.keep(lease)
            leases.append(lease)
        pass_point("after_lease")
        try:
            with lake.committing_if(check):
                yield
        except Exception as failure:
            _blame_loss(check, failure)
            raise
        check()


def _blame_loss(check: Callable[[], None], failure: Exception) -> None:
    """Raise the loss of a lease in place of what it brought about: cancelled jobs, for one."""
    try:
        check()
    except LeaseLost as lost:
        raise lost from failure
    except LakewrightError as error:
        log.warning("%s", error)


def _stop(stop: Callable[[], None]) -> None:
    try:
        stop()
    except Exception as error:  # the commit is refused all the same
        log.warning("Spark jobs could not be cancelled: %s", error)


def _claimed(context: Context, resource: Resource) -> Lease:
    def clashes(key: str) -> bool:
        other = leased_resource(key)
        return other is not None and other.intersects(resource)

    while True:
        try:
            return context.leases.claim(lease_key(resource), clashes=clashes)
        except LeaseHeld as held:
            # Targets of this run that write the same thing take turns.
            if held.details.get("run_id") != context.run_id and not context.options.wait:
                raise
            time.sleep(_PAUSE_SECONDS)

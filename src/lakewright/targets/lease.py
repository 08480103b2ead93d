"""Holding the lease on what a target writes, for as long as it writes."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from lakewright.errors import LeaseHeld
from lakewright.manifest.lease import Lease
from lakewright.plan.resource import Resource
from lakewright.stores.heartbeat import Heartbeat
from lakewright.targets.context import Context

__all__ = ["lease_key", "leased_resource", "leases_held"]

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

    Raises:
        LeaseHeld: Another run writes the same, or a part of it, and the run wasn't asked to wait.
        LeaseLost: A lease could not be kept up to the end.
    """
    with ExitStack() as stack:
        heartbeat = stack.enter_context(Heartbeat(context.leases.store, context.leases.duration))
        leases = []
        for resource in sorted(resources, key=str):
            lease = _claimed(context, resource)
            stack.callback(context.leases.release, lease)
            heartbeat.keep(lease)
            leases.append(lease)
        yield
        for lease in leases:
            heartbeat.check(lease)


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

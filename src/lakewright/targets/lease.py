"""Leases on the resources that targets write: only one run at a time writes a resource or a part of it."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError, LeaseHeld, LeaseLost
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.lake import cancel_quietly
from lakewright.plan.resource import Resource
from lakewright.stores.heartbeat import Heartbeat
from lakewright.targets.context import Context

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.lease import Lease, Leases
    from lakewright.spec.models.places import Address


log = logging.getLogger(__name__)

_PREFIX = "write "
_KEY = re.compile(r"write (?P<category>\w+):(?P<name>.*?)(?P<parts>(?:\[[^\[\]=]+=[^\[\]]*\])*)", re.DOTALL)
_PART = re.compile(r"\[([^\[\]=]+)=([^\[\]]*)\]")
_PAUSE_SECONDS = 0.2


def table_resource(address: Address) -> Resource:
    """Return the resource that stands for a table: its folder, or its name in the catalog."""
    return Resource.at(address)


def lease_key(resource: Resource) -> str:
    """Return the key of the lease on a resource.

    Example:
        >>> lease_key(Resource.table("gold.x", {"year": "2022"}))
        'write table:gold.x[year=2022]'
    """
    return f"{_PREFIX}{resource}"


def leased_resource(key: str) -> Resource | None:
    """Return the resource that a lease's key stands for, or None if the key is not of such a lease."""
    found = _KEY.fullmatch(key)
    if found is None:
        return None
    return Resource(found["category"], found["name"], tuple(_PART.findall(found["parts"])))


def claim_resource(leases: Leases, resource: Resource) -> Lease:
    """Return the lease on a resource.

    Raises:
        LeaseHeld: Another lease covers the resource, a part of it, or more than it.
    """

    def clashes(key: str) -> bool:
        other = leased_resource(key)
        return other is not None and other.intersects(resource)

    return leases.acquire(lease_key(resource), clashes=clashes)


def hold_leases(context: Context, resources: frozenset[Resource]) -> AbstractContextManager[None]:
    """Hold the leases on some resources; see `leases_held`.

    Raises:
        LeaseHeld: Another run writes a resource or a part of it, and the run was not asked to wait.
        LeaseLost: A lease was not kept to the end.
    """
    lake, claim = context.workspace.lake, partial(_wait_and_claim, context)
    return leases_held(lake, context.leases, resources, claim=claim)


@contextmanager
def leases_held(
    lake: Lake,
    leases: Leases,
    resources: frozenset[Resource],
    *,
    claim: Callable[[Leases, Resource], Lease] = claim_resource,
) -> Iterator[None]:
    """Hold the leases on some resources, renew them meanwhile and release them at the end.

    If one is lost, Spark's jobs are cancelled and readers see nothing of what was written so far.

    Raises:
        LeaseHeld: Another run writes a resource or a part of it.
        LeaseLost: A lease was not kept to the end.
    """
    held: list[Lease] = []

    def check() -> None:
        for lease in held:
            heartbeat.check(lease)

    with ExitStack() as stack:
        # The commit is refused even if jobs go on running.
        loss = partial(cancel_quietly, lake.job_canceller())
        heartbeat = stack.enter_context(Heartbeat(leases.store, leases.duration, on_loss=loss))
        # In one order for all runs, so that two runs cannot each wait for the other.
        for resource in sorted(resources, key=str):
            lease = claim(leases, resource)
            stack.callback(leases.release, lease)
            heartbeat.keep(lease)
            held.append(lease)
        reach_failpoint("after_lease")
        try:
            with lake.checking_commits(check):
                yield
        except Exception as failure:
            _raise_loss(check, failure)
            raise
        check()


def _raise_loss(check: Callable[[], None], failure: Exception) -> None:
    """Raise the loss of a lease instead of its consequence, such as a cancelled job."""
    try:
        check()
    except LeaseLost as lost:
        raise lost from failure
    except LakewrightError as error:
        log.warning("%s", error)


def _wait_and_claim(context: Context, leases: Leases, resource: Resource) -> Lease:
    while True:
        try:
            return claim_resource(leases, resource)
        except LeaseHeld as held:
            # Targets of this run that write the same resource take turns.
            if held.details.get("run_id") != context.run_id and not context.options.wait:
                raise
            time.sleep(_PAUSE_SECONDS)

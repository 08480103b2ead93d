"""Maintenance of silver tables: after slices were processed, and apart from them.

It holds the lease on what it writes, as TRUNCATE and DESTROY do; slices don't wait for it. A slice that finds
the table compacted meanwhile is compared with it anew, as after any other commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit_lock import commit_lock
from lakewright.lake.failpoint import pass_point
from lakewright.lake.observation import local_table_path
from lakewright.lake.upkeep import compact, look_at_shape, vacuum
from lakewright.plan.resource import Resource
from lakewright.spec.models.places import Address
from lakewright.stores.heartbeat import Heartbeat
from lakewright.targets.lease import lease_key, leased_resource

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.lake.upkeep import Shape
    from lakewright.manifest.leases import Leases
    from lakewright.spec.models.entity import Entity

__all__ = ["Upkeep", "look_at_silver", "maintain", "silver_resource"]


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What maintenance of a table found and did.

    Attributes:
        reasons: Why it was compacted, or is to be; none where its shape does.
        removed: Files that went.
        added: Files that came in their place.
        is_done: Whether the work was done, or only looked at.
    """

    shape: Shape | None
    reasons: tuple[str, ...] = ()
    removed: int = 0
    added: int = 0
    is_done: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as records and commands have it."""
        shape = self.shape
        return {
            "files": shape.files if shape else 0,
            "small_files": shape.small_files if shape else 0,
            "bytes": shape.size if shape else 0,
            "marked": shape.marked if shape else None,
            "reasons": list(self.reasons),
            "done": self.is_done,
            "files_removed": self.removed,
            "files_added": self.added,
        }


def silver_resource(address: Address) -> Resource:
    """Return the resource that stands for a silver table."""
    if address.location is not None:
        return Resource.file(address.location)
    return Resource.table(str(address.name))


def look_at_silver(lake: Lake, entity: Entity) -> Upkeep:
    """Return what maintenance would do for an entity's table; nothing is done."""
    wanted = entity.settings.maintenance
    shape = look_at_shape(lake, entity.places(lake.settings).silver, wanted)
    return Upkeep(shape, shape.reasons(wanted) if shape is not None else ())


def maintain(lake: Lake, leases: Leases, entity: Entity) -> Upkeep:
    """Return what was done so that an entity's table is in the shape that is wanted; often nothing is to do.

    Raises:
        LeaseHeld: Another run writes the table: maintains, empties or removes it.
    """
    address = entity.places(lake.settings).silver
    found = look_at_silver(lake, entity)
    if not found.reasons:
        return found
    wanted = entity.settings.maintenance
    place = local_table_path(lake, address)
    guard = address if place is None else Address(location=str(place))
    with _leased(leases, silver_resource(address)), commit_lock(guard, str(leases.holder)):
        pass_point("before_compaction")
        done = compact(lake, address, wanted, {"maintenance": entity.name, "run": leases.holder.run_id})
        pass_point("after_compaction")
        if wanted.vacuum:
            vacuum(lake, address)
    return Upkeep(found.shape, found.reasons, done.removed, done.added, is_done=True)


@contextmanager
def _leased(leases: Leases, resource: Resource) -> Iterator[None]:
    """Hold the lease on a table meanwhile."""

    def clashes(key: str) -> bool:
        other = leased_resource(key)
        return other is not None and other.intersects(resource)

    with Heartbeat(leases.store, leases.duration) as heartbeat:
        lease = leases.claim(lease_key(resource), clashes=clashes)
        heartbeat.keep(lease)
        try:
            yield
        finally:
            heartbeat.drop(lease)
            leases.release(lease)

"""Maintenance of silver tables: compaction after slices were processed, in commits of its own.

Maintenance holds the lease on the table, as TRUNCATE and DESTROY do. Slices do not wait for it: a slice that
finds the table compacted meanwhile is compared with the table again, as after any other commit.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lakewright.errors import LeaseHeld
from lakewright.lake.commit_lock import commit_lock
from lakewright.lake.compaction import compact, observe_shape
from lakewright.lake.delta_sql import vacuum_table
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import local_table_path, observe_table
from lakewright.lake.table import set_properties
from lakewright.spec.models.places import Address
from lakewright.targets.lease import leases_held, table_resource

if TYPE_CHECKING:
    from lakewright.lake.compaction import TableShape
    from lakewright.lake.lake import Lake
    from lakewright.manifest.lease import Leases
    from lakewright.spec.models.entity import Entity
    from lakewright.targets.context import Context


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The findings and results of a table's maintenance.

    Attributes:
        shape: Numbers and sizes of the table's files; None if there is no table.
        reasons: Why the table is compacted; empty if it needs no maintenance.
        removed: Number of files that compaction replaced.
        added: Number of files that it wrote instead.
        is_done: Whether the table was compacted and not only examined.
        kept: For how long files of old versions are kept for an undo, such as `30d`; None if the entity does
            not say it.
        retention: Properties that the table lacks to keep them for so long.
    """

    shape: TableShape | None
    reasons: tuple[str, ...] = ()
    removed: int = 0
    added: int = 0
    is_done: bool = False
    kept: str | None = None
    retention: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_due(self) -> bool:
        """Whether the table called for maintenance."""
        return bool(self.reasons or self.retention)

    def as_json(self) -> dict[str, Any]:
        """Return the values as metrics and commands show them."""
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
            "undo_window": self.kept,
            "undo_window_begins": bool(self.retention),
        }


def look_at_silver(lake: Lake, entity: Entity) -> Maintenance:
    """Return what maintenance would do for an entity's table, without doing it."""
    wanted, address = entity.settings.maintenance, entity.places(lake.settings).silver
    shape = observe_shape(lake, address, wanted)
    reasons = shape.reasons(wanted) if shape is not None else ()
    return Maintenance(
        shape, reasons, kept=entity.settings.undo_window, retention=_missing_retention(lake, address, entity)
    )


def maintain(lake: Lake, leases: Leases, entity: Entity) -> Maintenance:
    """Compact an entity's table, and vacuum it if so configured, unless its files are in good shape.

    The time for which its slices can be undone is set in any case, and before files are removed.

    Raises:
        LeaseHeld: Another run maintains, empties or drops the table.
    """
    address = entity.places(lake.settings).silver
    found = look_at_silver(lake, entity)
    if not found.is_due:
        return found
    wanted = entity.settings.maintenance
    place = local_table_path(lake, address)
    guard = address if place is None else Address(location=str(place))
    leased = leases_held(lake, leases, frozenset({table_resource(address)}))
    with leased, commit_lock(guard, str(leases.holder)):
        if found.retention:
            set_properties(lake, address, found.retention)
            found = replace(found, retention={})
        if not found.reasons:
            return found
        log.info("%s: compacting %s: %s", entity.called, address, "; ".join(found.reasons))
        reach_failpoint("before_compaction")
        done = compact(lake, address, wanted, {"maintenance": entity.name, "run": leases.holder.run_id})
        reach_failpoint("after_compaction")
        if wanted.vacuum:
            vacuum_table(lake.new_session(), address)
    return replace(found, removed=done.removed, added=done.added, is_done=True)


def maintain_after_slices(context: Context, entity: Entity) -> Maintenance | None:
    """Maintain an entity's table whose slices a run has processed, or leave that for after the run.

    Errors are warnings: the slices are processed, and maintenance only makes later reads faster.
    """
    if not entity.settings.maintenance.enabled or context.is_stopping():
        return None
    lake = context.workspace.lake
    try:
        if context.maintain_later is None:
            return maintain(lake, context.leases, entity)
        found = look_at_silver(lake, entity)
        if found.is_due:
            context.maintain_later(entity.called)
        return found
    except LeaseHeld as held:
        context.warn(f"{entity.called}: not maintained: {held.message}")
    except Exception as error:
        if context.is_cut_off():
            raise
        context.warn(f"{entity.called}: maintenance failed; the next run tries again: {error}")
    return None


def _missing_retention(lake: Lake, address: Address, entity: Entity) -> dict[str, str]:
    """Return the properties, not set yet, by which VACUUM keeps what an undo needs, whoever runs it."""
    if entity.settings.undo_window is None:
        return {}
    state = observe_table(lake, address)
    wanted = entity.settings.silver_properties.items() if state.exists else ()
    return {k: v for k, v in wanted if k.endswith("RetentionDuration") and state.properties.get(k) != v}

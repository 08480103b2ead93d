"""The end of a rewind: its commit is found in the table's log and recorded in the manifest.

A rewind whose process died is ended by the next run or command in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.lake.commit import Commit
from lakewright.manifest.item import Item
from lakewright.manifest.journal import Journal
from lakewright.manifest.rewind import RewoundSlice, rewound_slices
from lakewright.manifest.watermarks import StoredWatermark, Watermark, processed_put
from lakewright.slices.discovery import slice_name
from lakewright.slices.quarantine import keep_replayed_rows, remove_rows
from lakewright.slices.result import metrics_content
from lakewright.slices.rewind.side_table import remove_beside

if TYPE_CHECKING:
    from lakewright.manifest.rewind import Rewind
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity


def check_not_rewinding(context: ProcessingContext, entity: Entity) -> None:
    """Raise an error if a rewind of an entity's table has begun.

    Raises:
        LeaseHeld: It has.
    """
    rewind = context.chain(entity).rewind
    if rewind is not None:
        raise rewind.error()


def settle_rewind(context: ProcessingContext, entity: Entity) -> bool:
    """End a rewind of an entity's table whose process died; return whether its commit was recorded now.

    If so, the history says that its run has done its work.

    Raises:
        LeaseHeld: The process of the rewind is alive.
    """
    ledger, rewind = context.ledger, context.chain(entity).rewind
    if rewind is None:
        return False
    if ledger.is_rewinding(rewind):
        raise rewind.error()

    def end_run() -> None:
        journal = Journal(ledger.store)
        run = journal.run(rewind.holder.run_id)
        if run is not None:
            journal.finish_run(run, "SUCCESS", finished=ledger.store.now())

    # In this order: while the rewind is announced, the next command does what is left.
    is_landed = conclude(context, entity, rewind, before=end_run)
    what = "had changed the table, and is recorded now" if is_landed else "ended before it changed the table"
    context.warn(f"{entity.called}: the {rewind.words} {what}")
    return is_landed


def conclude(
    context: ProcessingContext, entity: Entity, rewind: Rewind, *, before: Callable[[], None] | None = None
) -> bool:
    """Record a rewind if its commit is in the table's log, otherwise end it; return whether it is there.

    Args:
        context: The context of the rewind.
        entity: The entity.
        rewind: The rewind as announced.
        before: Is called before it is recorded.
    """
    commit = find_rewind(context, entity, rewind.rewind_id)
    if commit is None:
        context.ledger.end_rewind(rewind)
        return False
    if before is not None:
        before()
    record_landed(context, entity, rewind, commit)
    return True


def record_landed(
    context: ProcessingContext, entity: Entity, rewind: Rewind | None, commit: Commit
) -> tuple[Item, ...]:
    """Record what the commit of a rewind says in the manifest; return the items with new revisions.

    Without `rewind`, the manifest has no announcement of it: it was put back to an older copy.

    What is left beside the table is removed before, so that a process that dies in between leaves nothing; it
    stays if the rewind made no commit. The quarantine goes with it: rows of a slice that is skipped are
    removed, others replaced.
    """
    if commit.version >= 0:
        remove_beside(context, entity)
    if entity.settings.on_bad_rows == "quarantine":
        _settle_quarantine(context, entity, commit)
    content, application = commit.content["rewind"], context.application
    watermarks = {
        column: None
        if mark is None
        else StoredWatermark(application, column, Watermark.from_json(mark), mark["item"])
        for column, mark in content["watermarks"].items()
    }
    slices = tuple(_with_version(each, commit) for each in rewound_slices(content["slices"]))
    # A rebuild processes its slices again; an undo processes none, though it may apply later slices again.
    also = (processed_put(application),) if content.get("operation") in ("rebuild", "replay") else ()
    return context.ledger.record_rewind(rewind, application, slices, watermarks, content["reason"], also=also)


def _settle_quarantine(context: ProcessingContext, entity: Entity, commit: Commit) -> None:
    """Let the quarantine have the rows of the slices as the table holds them now."""
    for each in rewound_slices(commit.content["rewind"]["slices"]):
        if each.is_skipped:
            remove_rows(context.lake, entity, slice_name(Item(each.item_id)))
        elif each.token is not None:
            metrics = each.content.get("metrics", {})
            keep_replayed_rows(context.lake, entity, each.content["slice"], metrics.get("quarantined", 0))


def _with_version(rewound: RewoundSlice, commit: Commit) -> RewoundSlice:
    """Return a slice with the version of the commit that holds it, if it does, and the number of bad rows."""
    if rewound.token is None or "delta_version" in rewound.content:
        return rewound
    metrics = {**rewound.content.get("metrics", {}), "deltaVersion": commit.version}
    return replace(rewound, content={**rewound.content, **metrics_content(metrics)})


def find_rewind(context: ProcessingContext, entity: Entity, rewind_id: str) -> Commit | None:
    """Return the commit of a rewind, if the log of the entity's table has it."""
    for commit in reversed(context.chain(entity).log):
        if (commit.content.get("rewind") or {}).get("id") == rewind_id:
            return commit
    return None

"""The plan of an undo: to which version the table goes back, and which slices are applied again.

Source: the rules of rewinds, "Undo"; Delta's documentation, "Restore a Delta table to an earlier state".
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.errors import DataLossError, SliceError, UsageError
from lakewright.lake.commit import Commit, read_commits
from lakewright.lake.observation import missing_files, observe_table
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.lock import command, failed_error, locked_error
from lakewright.slices.applied import AppliedSlice, effective_commits, foreign_since, slices_in
from lakewright.slices.changed import processed_items
from lakewright.slices.discover import find_slice, item_id, slice_name
from lakewright.slices.reconcile import has_no_commit
from lakewright.slices.rewind.known_slices import name_of
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from lakewright.lake.table_state import TableState
    from lakewright.manifest.record import Application
    from lakewright.manifest.store import Store
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = ["UndoPlan", "check_bronze", "plan_undo", "unlogged_slices", "version_before"]

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """How a slice is undone.

    Attributes:
        item: The item of the slice.
        undone: The slice as the table holds it; None if it changed nothing, so that the table stays.
        state: The table as it was observed.
        base: The version that the table goes back to; None if the slice made its first commit.
        later: The slices that were applied after it, in order.
        is_requeued: Whether the slice, and those after it, are to be processed again by the next run.
        foreign: Commits of other writers that are lost with it.
        kept: The slices that the table still holds in that version, in order.
    """

    item: Item
    undone: AppliedSlice | None
    state: TableState
    base: int | None = None
    later: tuple[AppliedSlice, ...] = ()
    is_requeued: bool = False
    foreign: tuple[Commit, ...] = ()
    kept: tuple[AppliedSlice, ...] = ()

    @property
    def slice(self) -> str:
        """Name of the slice."""
        return slice_name(self.item)

    @property
    def replayed(self) -> tuple[AppliedSlice, ...]:
        """The slices that are applied again before the table changes."""
        return () if self.is_requeued else self.later

    @property
    def counts(self) -> dict[str, int]:
        """The counts that the slice's commit carries; empty if it has none."""
        metrics = {} if self.undone is None else self.undone.content.get("metrics") or {}
        names = ("inserted", "updated", "deleted", "closed")
        return {name: metrics[name] for name in names if metrics.get(name)}

    @property
    def rewound_ids(self) -> frozenset[str]:
        """The items whose slices the table does not hold afterwards, or holds by other commits."""
        return frozenset((self.item.item_id, *(each.item_id for each in self.later)))

    def as_json(self) -> dict[str, Any]:
        """Return the plan as `undo -o json` prints it."""
        return {
            "slice": self.slice,
            "item": self.item.item_id,
            "version": self.state.version,
            "back_to": self.base,
            "counts": self.counts,
            "replayed": [name_of(each) for each in self.replayed],
            "requeued": [self.slice, *map(name_of, self.later)] if self.is_requeued else [],
            "foreign_commits": [commit.version for commit in self.foreign],
        }


def plan_undo(
    context: ProcessingContext,
    entity: Entity,
    name: str,
    *,
    is_requeued: bool = False,
    is_over_foreign: bool = False,
) -> UndoPlan:
    """Return how a slice of an entity is undone; nothing is written.

    Args:
        context: The context of the processing.
        entity: The entity.
        name: Name of the slice.
        is_requeued: Whether the slice and those after it are to be processed again.
        is_over_foreign: Whether commits of other writers may be lost.

    Raises:
        UsageError: The slice is not in the table.
        ItemLocked, ItemFailed: The slice is being processed, or has failed.
        DataLossError: Commits of other writers would be lost, or the slice's commit is gone from the log.
        SliceError: Slices after it are gone from bronze, or have changed.
    """
    places = entity.places(context.lake.settings)
    item = _processed_item(context, entity, item_id(f"{places.bronze}/{name}"), name)
    state = observe_table(context.lake, places.silver)
    if has_no_commit(context.ledger.store, item, context.application):
        if is_requeued:
            raise UsageError(
                f"the slice {name} of {entity.name} changed nothing, so there is nothing to undo",
                remedy=f"`{command('requeue', f'{entity.name}/{name}')}` has it processed again.",
            )
        return UndoPlan(item, None, state, state.version)
    app = str(context.application)
    chain = tuple(effective_commits(read_commits(context.lake, places.silver), app))
    applied = [each for commit in reversed(chain) for each in slices_in(commit, app)]
    own = [each for each in applied if each.item_id == item.item_id]
    if not own:
        raise _unknown_commit(entity, item)
    first = next(c for c in reversed(chain) if any(each in own for each in slices_in(c, app)))
    before = [each for c in reversed(chain) if c.version < first.version for each in slices_in(c, app)]
    later = [each for each in applied[len(before) :] if each not in own]
    since = [commit for commit in chain if commit.version >= first.version]
    unlogged = unlogged_slices(context, {each.item_id for each in applied})
    unwritten = [each for each in unlogged if each.number > own[0].number and each.is_unwritten]
    plan = UndoPlan(
        item,
        own[-1],
        state,
        base=version_before(first),
        later=tuple(sorted((*later, *unwritten), key=lambda each: each.number)),
        is_requeued=is_requeued,
        foreign=foreign_since(since, app),
        kept=(*(each for each in unlogged if each.number <= own[0].number), *before),
    )
    if plan.foreign and not is_over_foreign:
        raise _foreign_error(entity, plan)
    check_bronze(context, entity, plan.later)
    _check_versions(context, entity, plan)
    return plan


def _processed_item(context: ProcessingContext, entity: Entity, item: str, name: str) -> Item:
    """Return the item of a slice that the application has processed.

    Raises:
        UsageError: It has not.
        ItemLocked, ItemFailed: The slice is being processed, or has failed.
    """
    found = context.ledger.item(item)
    lock = context.ledger.lock(found)
    if lock is not None:
        raise locked_error(lock)
    if found.failed is not None:
        raise failed_error(found, refused="undo")
    verdict = found.verdict(context.application)
    if verdict is not Verdict.PROCESSED:
        raise UsageError(
            f"the slice {name} of {entity.name} is not in the table: it is {verdict}",
            remedy="Only a processed slice can be undone. `lakewright manifest ls` lists the slices.",
            details={"item_id": item, "verdict": verdict.value},
        )
    return found


def version_before(commit: Commit) -> int | None:
    """Return the version that a commit builds on; None if it made the table's first rows."""
    rewind = commit.content.get("rewind")
    if rewind is not None:
        base = rewind.get("base")
        return None if base is None else int(base)
    return commit.version - 1 if commit.version else None


def unlogged_slices(context: ProcessingContext, known: Set[str]) -> tuple[AppliedSlice, ...]:
    """Return processed slices that the log does not show, as the manifest tells them.

    They changed nothing, or their commits are older than what the log keeps.
    """
    application, store = context.application, context.ledger.store
    found = []
    for item in processed_items(context):
        number = item.tokens.get(application.key)
        if number is not None and item.item_id not in known:
            found.append(AppliedSlice(item.item_id, number, _recorded_content(store, item, application)))
    return tuple(sorted(found, key=lambda each: each.number))


def _recorded_content(store: Store, item: Item, application: Application) -> Mapping[str, Any]:
    """Return what the manifest says of a processed slice, in the form in which commits say it."""
    marks = {mark.record_id for mark in item.processed if mark.application.covers(application)}
    record = next(each for each in store.records(item.item_id) if each.record_id in marks)
    names = ("fingerprint", "strategy", "watermarks", "metrics", "delta_version")
    found = {name: record.content[name] for name in names if name in record.content}
    at = record.content.get("processing_time")
    return {
        **found,
        **({} if at is None else {"processingTime": at}),
        "item": item.item_id,
        "revision": item.revision,
    }


def check_bronze(context: ProcessingContext, entity: Entity, slices: Sequence[AppliedSlice]) -> None:
    """Raise an error unless bronze holds slices as they were when they were applied.

    Raises:
        SliceError: Some are gone or have changed; the error names each.
    """
    bronze = entity.places(context.lake.settings).bronze
    faults = []
    for each in slices:
        name = name_of(each)
        found, recorded = find_slice(bronze, name, context.lake), each.content.get("fingerprint") or {}
        if found is None:
            faults.append(f"{name} is gone")
        elif any(
            recorded[key] != found.fingerprint[key] for key in recorded.keys() & found.fingerprint.keys()
        ):
            faults.append(f"{name} has changed since it was processed")
    if faults:
        raise SliceError(
            f"slices of {entity.name} cannot be applied again from {bronze}: {'; '.join(faults)}",
            remedy="Bring them back as they were. Nothing was written.",
            details={"slices": faults},
        )


def _check_versions(context: ProcessingContext, entity: Entity, plan: UndoPlan) -> None:
    """Raise `DataLossError` if files of the version that the table goes back to were removed."""
    silver = entity.places(context.lake.settings).silver
    gone = [] if plan.base is None else missing_files(context.lake, silver, plan.base)
    if gone:
        raise DataLossError(
            f"version {plan.base} of {silver} is not whole any more: {counted(len(gone), 'file')} of it "
            f"{'was' if len(gone) == 1 else 'were'} removed, such as {gone[0]}",
            remedy="VACUUM removes files of old versions. Build the table again from its slices with "
            f"`lakewright rebuild {shlex.quote(entity.name)}`. Nothing was written.",
            details={"version": plan.base, "files": len(gone)},
        )


def _foreign_error(entity: Entity, plan: UndoPlan) -> DataLossError:
    versions = ", ".join(f"{c.version} ({c.operation})" for c in plan.foreign[:MOST_NAMED])
    count = counted(len(plan.foreign), "commit")
    return DataLossError(
        f"{count} of other writers to {entity.name} would be lost with {plan.slice}: version {versions}",
        remedy="Give --over-foreign if they may be lost. Nothing was written.",
        details={"versions": [commit.version for commit in plan.foreign]},
    )


def _unknown_commit(entity: Entity, item: Item) -> DataLossError:
    return DataLossError(
        f"the log of {entity.name} does not show the commit of {slice_name(item)}",
        remedy="It is older than what the log keeps, or the table was written anew since. Build the table "
        f"again without the slice: skip it, then `lakewright rebuild {shlex.quote(entity.name)}`.",
        details={"item_id": item.item_id},
    )

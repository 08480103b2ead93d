"""The undo of a slice: one commit that puts the table back, and the manifest's records of it.

An older slice is undone beside the table: an earlier version is cloned, the later slices are applied to it
again, and one commit replaces the table's rows by the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit import Commit, Token
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.table import restore_table
from lakewright.manifest.item import Item
from lakewright.manifest.rewind import Rewind, RewoundSlice
from lakewright.slices.applied import AppliedSlice
from lakewright.slices.discover import find_slice, natural_key, slice_name
from lakewright.slices.replay_slices import KnownSlice, replay_slices
from lakewright.slices.rewind.known_slices import known_slices, name_of, watermarks_after, watermarks_of
from lakewright.slices.rewind.settle import record_landed
from lakewright.slices.rewind.side_table import (
    Beside,
    begin_beside,
    look_beside,
    plan_digest,
    rewind_session,
    side_of,
)
from lakewright.slices.rewind.swap import commit_rewind, replayed_slices, swap_in
from lakewright.strategies.summary import deleted_rows, plain_names
from lakewright.strategies.table_properties import HISTORY_PROPERTY

if TYPE_CHECKING:
    from lakewright.lake.table_state import TableState
    from lakewright.manifest.store import Put
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = ["UndoPlan", "beside_undo", "undo"]


def undo(
    context: ProcessingContext,
    entity: Entity,
    plan: UndoPlan,
    rewind: Rewind,
    *,
    reason: str,
    check: Callable[[], None],
    taints: Sequence[Put] = (),
) -> int | None:
    """Undo a slice as planned and record it; return the table's version after.

    Args:
        context: The context of the processing.
        entity: The entity.
        plan: The plan, made under the lease on the table.
        rewind: The announcement of the undo.
        reason: Why, for the commit and for each record.
        check: Raises `LeaseLost` if the lease on the table is no longer held.
        taints: Documents that make targets dirty which read the table; they are written with the records.

    Raises:
        CommitConflict: The table has changed since the undo was planned; nothing was written.
        LeaseLost: The lease is lost; nothing was written.
        TargetError: A later slice cannot be applied again; nothing was written.
    """
    told = {
        "id": rewind.rewind_id,
        "operation": "undo",
        "base": plan.base,
        "reason": reason,
        "taints": [{"key": put.key, "value": put.value} for put in taints],
    }
    if plan.undone is None:
        commit = _unwritten({**told, **_gone(context, entity, plan)})
    elif plan.replayed:
        commit = _replay(context, entity, plan, told, check)
    else:
        commit = _restore(context, entity, plan, {**told, **_gone(context, entity, plan)}, check)
    reach_failpoint("before_rewind_record")
    record_landed(context, entity, rewind, commit)
    return plan.state.version if plan.undone is None else commit.version


def beside_undo(context: ProcessingContext, entity: Entity, plan: UndoPlan) -> Beside | None:
    """Return what an earlier rewind has left beside the table that an undo continues or removes.

    Raises:
        DataLossError: It is not known at what time a later slice was processed.
    """
    if plan.undone is None:
        return None  # the table stays as it is, and so does what is beside it
    # What is beside the table makes room for the check of slices that were processed more than once.
    is_continued = plan.replayed and not plan.is_checked
    app, known = _replay_of(context, plan) if is_continued else (None, ())
    lake = context.lake
    return look_beside(lake, entity, side_of(entity, lake), plan.base, app=app, slices=known)


def _replay_of(context: ProcessingContext, plan: UndoPlan) -> tuple[str, tuple[KnownSlice, ...]]:
    """Return the application id of an undo's commits beside the table, and the slices that it applies."""
    known = known_slices(plan.replayed, before=plan.kept)
    digest = plan_digest({"base": plan.base, "slices": [asdict(each) for each in known]})
    return f"{context.application}/undo/{digest}", known


def _unwritten(told: Mapping[str, Any]) -> Commit:
    """Return what is recorded of an undo that leaves the table as it is."""
    return Commit(-1, None, "", {}, {"rewind": told})


def _gone(context: ProcessingContext, entity: Entity, plan: UndoPlan) -> dict[str, Any]:
    """Return the slices that the table does not hold any more, and the watermarks without them."""
    return {
        "slices": [asdict(each) for each in _taken_back(context, entity, plan)],
        "watermarks": watermarks_after(context, plan.rewound_ids, plan.kept),
    }


def _taken_back(context: ProcessingContext, entity: Entity, plan: UndoPlan) -> Iterator[RewoundSlice]:
    """Yield the undone slice, skipped; or it and those after it, ready again with their processing times."""
    if not plan.is_requeued:
        yield RewoundSlice(plan.item.item_id, plan.item.revision, is_skipped=True)
        return
    bronze = entity.places(context.lake.settings).bronze
    times = {each.item_id: each.content.get("processingTime") for each in plan.requeued}
    if list(times) != sorted(times, key=lambda each: natural_key(slice_name(Item(each)))):
        # The next run takes them by their names, so that the times would not follow each other.
        times = dict.fromkeys(times)
    items = context.ledger.store.read(list(times))
    for name, at in times.items():
        # Any of them may have changed since it was processed: the next run takes what is there now.
        present = find_slice(bronze, slice_name(Item(name)), context.lake)
        note: dict[str, Any] = {"fingerprint": {} if present is None else present.fingerprint}
        if at is not None:
            note["processing_time"] = at
        yield RewoundSlice(name, items[name].revision, note=note)


def _restore(
    context: ProcessingContext,
    entity: Entity,
    plan: UndoPlan,
    told: Mapping[str, Any],
    check: Callable[[], None],
) -> Commit:
    """Put the table back in one commit that writes no rows; return the commit."""
    silver, session = entity.places(context.lake.settings).silver, rewind_session(context.lake, plan.state)
    content = {"rewind": told, "run": context.holder.run_id}
    token = Token(f"{context.application}/undo", (plan.state.version or 0) + 1, content)

    def write() -> None:
        restore_table(session, silver, plan.base)

    return commit_rewind(context, session, silver, plan.state, token, write=write, check=check)


def _replay(
    context: ProcessingContext,
    entity: Entity,
    plan: UndoPlan,
    told: Mapping[str, Any],
    check: Callable[[], None],
) -> Commit:
    """Apply slices to the earlier version beside the table, and swap the result in."""
    app, known = _replay_of(context, plan)
    side, session = side_of(entity, context.lake), rewind_session(context.lake, plan.state)
    begin_beside(context, entity, side, plan.base, app=app, slices=known, session=session)
    marks = watermarks_of(plan.kept)
    contents = replay_slices(
        context,
        side,
        known,
        app=app,
        watermarks=marks,
        check=check,
        has_past=plan.has_past,
        session=session,
    )
    items = context.ledger.store.read([each.item_id for each in known])
    replayed = replayed_slices(items, contents)
    left = (*plan.kept, *_as_applied(contents))
    whole = {
        **told,
        "slices": [asdict(each) for each in (*_taken_back(context, entity, plan), *replayed)],
        "watermarks": watermarks_after(context, plan.rewound_ids, left),
    }
    return swap_in(context, entity, side, plan.state, whole, contents=contents, check=check, session=session)


def _as_applied(contents: Sequence[Mapping[str, Any]]) -> Iterable[AppliedSlice]:
    return (AppliedSlice(each["item"], each["number"], each) for each in contents)


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """How a slice is undone.

    Attributes:
        item: The item of the slice.
        undone: The slice as the table holds it; None if it changed nothing, so that the table stays.
        state: The table as it was observed.
        base: The version that the table goes back to; None if the slice made its first commit.
        since: The slices that were applied from then on, itself among them: each once, in the order of their
            last processing.
        earlier: Those of them that the slice's commit holds, too, and that were applied before it.
        skipped: The items of those of them that were skipped since they were processed: the table has them no
            more afterwards.
        is_requeued: Whether the slice, and those after it, are to be processed again by the next run.
        foreign: Commits of other writers that are lost with it.
        kept: The slices that the table still holds in that version, in order.
        version: The version that the slice made by itself; None if no version shows what it changed.
        unseen: Why none shows it, as a clause; None if one does.
        repeated: Names of slices that were applied after it more than once. Applied once, they must give the
            table as it is.
    """

    item: Item
    undone: AppliedSlice | None
    state: TableState
    base: int | None = None
    since: tuple[AppliedSlice, ...] = ()
    earlier: tuple[AppliedSlice, ...] = ()
    is_requeued: bool = False
    foreign: tuple[Commit, ...] = ()
    kept: tuple[AppliedSlice, ...] = ()
    version: int | None = None
    unseen: str | None = None
    repeated: tuple[str, ...] = ()
    skipped: tuple[Item, ...] = ()

    @property
    def slice(self) -> str:
        """Name of the slice."""
        return slice_name(self.item)

    @property
    def others(self) -> tuple[AppliedSlice, ...]:
        """The slices of `since` without the slice, and without those that are skipped."""
        left_out = {self.item.item_id, *(item.item_id for item in self.skipped)}
        return tuple(each for each in self.since if each.item_id not in left_out)

    @property
    def skipped_names(self) -> list[str]:
        """Names of the slices that are left out."""
        return [slice_name(item) for item in self.skipped]

    @property
    def later(self) -> tuple[AppliedSlice, ...]:
        """The slices that were applied after it, each once."""
        earlier = {each.item_id for each in self.earlier}
        return tuple(each for each in self.others if each.item_id not in earlier)

    @property
    def replayed(self) -> tuple[AppliedSlice, ...]:
        """The slices that are applied again before the table changes."""
        return self.earlier if self.is_requeued else self.others

    @property
    def requeued(self) -> tuple[AppliedSlice, ...]:
        """The slices that are ready again: the slice, and those after it."""
        own = () if self.undone is None else (self.undone,)
        return (*own, *self.later) if self.is_requeued else ()

    @property
    def is_checked(self) -> bool:
        """Whether the slices, each applied once, must first be shown to give the table as it is.

        Slices that are requeued are applied once, as they are then, and those before them were.
        """
        return bool(self.replayed and self.repeated) and not self.is_requeued

    @property
    def has_past(self) -> bool:
        """Whether versions of `history_from` are in the first commit that goes, which a rebuild made."""
        return self.base is None and HISTORY_PROPERTY in self.state.properties

    @property
    def counts(self) -> dict[str, int]:
        """What the slice inserted, updated and deleted, as its commit says; empty if it does not."""
        metrics = plain_names({} if self.undone is None else self.undone.content.get("metrics") or {})
        counts = {name: metrics.get(name) or 0 for name in ("inserted", "updated")}
        counts["deleted"] = deleted_rows(metrics)
        return {name: count for name, count in counts.items() if count}

    @property
    def rewound_ids(self) -> frozenset[str]:
        """The items whose slices the table does not hold afterwards, or holds by other commits."""
        return frozenset((self.item.item_id, *(each.item_id for each in self.since)))

    def as_json(self) -> dict[str, Any]:
        """Return the plan as `undo -o json` prints it."""
        return {
            "slice": self.slice,
            "item": self.item.item_id,
            "version": self.state.version,
            "back_to": self.base,
            "counts": self.counts,
            "replayed": [name_of(each) for each in self.replayed],
            "repeated": list(self.repeated) if self.is_checked else [],
            "requeued": [name_of(each) for each in self.requeued],
            "skipped": self.skipped_names,
            "foreign_commits": [commit.version for commit in self.foreign],
        }

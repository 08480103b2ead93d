"""The undo of a slice: one commit that puts the table back, and the manifest's records of it.

An older slice is undone beside the table: an earlier version is cloned, the later slices are applied to it
again, and one commit replaces the table's rows by the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from lakewright.errors import DataLossError
from lakewright.lake.commit import Commit, Token
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.table import restore_table
from lakewright.manifest.rewind import Rewind, RewoundSlice
from lakewright.slices.chain import AppliedSlice
from lakewright.slices.discover import find_slice, natural_key, slice_name, slice_of_id
from lakewright.slices.rewind.known_slices import Replay, known_slices, watermarks_after
from lakewright.slices.rewind.rebuild import (
    build_beside,
    commit_rewind,
    compare_beside,
    rewind_content,
    swap_in,
)
from lakewright.slices.rewind.settle import record_landed
from lakewright.slices.rewind.side_table import (
    Beside,
    look_beside,
    plan_digest,
    remove_beside,
    rewind_session,
    side_of,
)
from lakewright.spec.words import first_of
from lakewright.strategies.outdated import rebuild_command
from lakewright.strategies.summary import deleted_rows, plain_names
from lakewright.strategies.table_properties import HISTORY_PROPERTY
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from lakewright.lake.table_state import TableState
    from lakewright.manifest.item import Item
    from lakewright.manifest.store import Put
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = ["UndoPlan", "beside_undo", "check_each_once", "undo"]

MOST_NAMED = 5


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
    told = rewind_content(rewind, "undo", plan.base, reason, taints)
    taken_back = tuple(_taken_back(context, entity, plan))
    if plan.undone is not None and plan.replayed:
        replay = _replay_of(context, plan)
        commit = swap_in(
            context,
            entity,
            replay,
            told,
            contents=build_beside(context, entity, replay, check=check),
            gone=plan.rewound_ids,
            taken_back=taken_back,
            check=check,
        )
    else:
        told["slices"] = list(map(asdict, taken_back))
        told["watermarks"] = watermarks_after(context, plan.rewound_ids, plan.kept)
        is_written = plan.undone is not None
        commit = (
            _restore(context, entity, plan, told, check)
            if is_written
            else Commit(-1, None, "", {}, {"rewind": told})
        )
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
    replay = _replay_of(context, plan) if is_continued else None
    app, known = (None, ()) if replay is None else (replay.app, replay.slices)
    lake = context.lake
    return look_beside(lake, entity, side_of(entity, lake), plan.base, app=app, slices=known)


def _replay_of(
    context: ProcessingContext, plan: UndoPlan, slices: Sequence[AppliedSlice] | None = None
) -> Replay:
    """Return what an undo applies beside the table, or other slices from the same version on."""
    known = known_slices(plan.replayed if slices is None else slices, before=plan.kept)
    digest = plan_digest({"base": plan.base, "slices": [asdict(each) for each in known]})
    app = f"{context.application}/undo/{digest}"
    return Replay(plan.state, plan.base, known, plan.kept, app, plan.has_past)


def check_each_once(
    context: ProcessingContext, entity: Entity, plan: UndoPlan, *, check: Callable[[], None]
) -> None:
    """Raise an error unless the slices that an undo applies again, each once, give the table as it is.

    Only an undo after which slices were processed more than once is checked: bronze need not hold what they
    were before. The slices are built beside the table, the undone one among them. Of a row that more than one
    of them had, `lastSeen` and the name of the slice may differ: they follow from the slices that are left.

    Args:
        context: The context of the processing.
        entity: The entity.
        plan: The plan of the undo, made under the lease on the table.
        check: Raises an error if the undo must not go on.

    Raises:
        DataLossError: They give other rows; nothing was written.
        TargetError: A slice cannot be applied again; nothing was written.
    """
    if not plan.is_checked:
        return
    build_beside(context, entity, _replay_of(context, plan, plan.since), check=check)
    system = SystemColumns(context.lake.settings.systemfield_prefix, entity.destination)
    found = compare_beside(context, entity, plan.state, without=(system.filename,))
    remove_beside(context, entity)
    if found is None or replace(found, seen=0).is_none:
        return
    typed = f"{rebuild_command(entity)}{' --over-foreign' if plan.foreign else ''}"
    others = ", without the commits of other writers," if plan.foreign else ""
    names = first_of(plan.repeated, MOST_NAMED)
    verb = "was" if len(plan.repeated) == 1 else "were"
    raise DataLossError(
        f"{names} of {entity.called} {verb} processed more than once, and each slice applied once{others} "
        f"does not give the table as it is: {found.text}",
        remedy=f"`{typed} --check` shows these rows. `{typed}` applies each slice once; then {plan.slice} "
        "can be undone. Nothing was written.",
        details={"slices": list(plan.repeated), "difference": found.as_json()},
    )


def _taken_back(context: ProcessingContext, entity: Entity, plan: UndoPlan) -> Iterator[RewoundSlice]:
    """Yield the undone slice, skipped; or it and those after it, ready again with their processing times."""
    if not plan.is_requeued:
        yield RewoundSlice(plan.item.item_id, plan.item.revision, is_skipped=True)
        return
    bronze = entity.places(context.lake.settings).bronze
    times = {each.item_id: each.content.get("processingTime") for each in plan.requeued}
    if list(times) != sorted(times, key=lambda each: natural_key(slice_of_id(each))):
        # The next run takes them by their names, so that the times would not follow each other.
        times = dict.fromkeys(times)
    items = context.ledger.store.read(list(times))
    for name, at in times.items():
        # Any of them may have changed since it was processed: the next run takes what is there now.
        present = find_slice(bronze, slice_of_id(name), context.lake)
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
            "replayed": [each.name for each in self.replayed],
            "repeated": list(self.repeated) if self.is_checked else [],
            "requeued": [each.name for each in self.requeued],
            "skipped": self.skipped_names,
            "foreign_commits": [commit.version for commit in self.foreign],
        }

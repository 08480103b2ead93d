"""The rebuild of a table beside the old one, its comparison with it, and the swap.

Source: the rules of rewinds, "Rebuild".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from lakewright.errors import DataLossError
from lakewright.lake.commit import strict_session
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import read_table
from lakewright.slices.applied import AppliedSlice
from lakewright.slices.replay_slices import replay_slices
from lakewright.slices.rewind.difference import TableDifference, compare_rows
from lakewright.slices.rewind.known_slices import known_slices, watermarks_after, watermarks_of
from lakewright.slices.rewind.plan_rebuild import RebuildPlan
from lakewright.slices.rewind.settle import record_landed
from lakewright.slices.rewind.side_table import begin_beside, plan_digest, remove_beside, side_of
from lakewright.slices.rewind.swap import replayed_slices, swap_in
from lakewright.spec.words import first_of
from lakewright.strategies.outdated import rebuild_command
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakewright.manifest.rewind import Rewind
    from lakewright.manifest.store import Put
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.rewind.undo import UndoPlan
    from lakewright.spec.models.entity import Entity

__all__ = ["build_beside", "check_each_once", "compare_beside", "swap_rebuilt"]

MOST_NAMED = 5


def build_beside(
    context: ProcessingContext,
    entity: Entity,
    plan: RebuildPlan,
    *,
    check: Callable[[], None],
    is_compared: bool = False,
) -> tuple[Mapping[str, Any], ...]:
    """Build the table beside the old one, or continue an earlier attempt; return what its commits say.

    Args:
        context: The context of the processing.
        entity: The entity.
        plan: The plan.
        check: Raises an error if the rebuild must not go on.
        is_compared: Whether the last attempt was a comparison, which has told what it left.

    Raises:
        TargetError: A slice cannot be applied under today's declaration; those before it stay for the next
            attempt.
    """
    app, side = f"{context.application}/rebuild/{plan.digest}", side_of(entity, context.lake)
    begin_beside(context, entity, side, plan.base, app=app, slices=plan.slices, is_expected=is_compared)
    return replay_slices(
        context,
        side,
        plan.slices,
        app=app,
        watermarks=watermarks_of(plan.kept),
        check=check,
        has_past=plan.base is None,
    )


def compare_beside(
    context: ProcessingContext, entity: Entity, plan: RebuildPlan, *, without: Sequence[str] = ()
) -> TableDifference | None:
    """Return the difference between the table and the one built beside it; None if it has no rows to read.

    Keys and hashes are not compared: they follow from the other columns, and differ in every row under
    another key or hash version.

    Args:
        context: The context of the processing.
        entity: The entity.
        plan: The plan.
        without: Further columns that are not compared.
    """
    if not plan.state.exists or plan.missing:
        return None
    lake, session = context.lake, strict_session(context.lake)
    before = read_table(session, entity.places(lake.settings).silver, plan.state.version)
    after = read_table(session, side_of(entity, lake).places(lake.settings).silver)
    system = SystemColumns(lake.settings.systemfield_prefix, entity.destination)
    ignored = (system.key, system.hash, *without)
    return compare_rows(before, after, without=ignored, seen=system.last_seen)


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
    known = known_slices(plan.since, before=plan.kept)
    digest = plan_digest({"base": plan.base, "slices": [asdict(each) for each in known]})
    whole = RebuildPlan(plan.state, plan.base, known, plan.kept, plan.foreign, digest)
    build_beside(context, entity, whole, check=check)
    system = SystemColumns(context.lake.settings.systemfield_prefix, entity.destination)
    found = compare_beside(context, entity, whole, without=(system.filename,))
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


def swap_rebuilt(
    context: ProcessingContext,
    entity: Entity,
    plan: RebuildPlan,
    rewind: Rewind,
    *,
    contents: tuple[Mapping[str, Any], ...],
    reason: str,
    check: Callable[[], None],
    taints: Sequence[Put] = (),
) -> int:
    """Swap the table in that was built beside the old one, and record it; return the table's version.

    Raises:
        CommitConflict: The table has changed since the rebuild began; nothing was written.
        LeaseLost: The lease is lost; nothing was written.
    """
    items = context.ledger.store.read([known.item_id for known in plan.slices])
    # The manifest has the slices that are left out as skipped already.
    gone = frozenset((*items, *(item.item_id for item in plan.skipped)))
    left = (*plan.kept, *(AppliedSlice(each["item"], each["number"], each) for each in contents))
    told = {
        "id": rewind.rewind_id,
        "operation": "rebuild",
        "base": plan.base,
        "reason": reason,
        "taints": [{"key": put.key, "value": put.value} for put in taints],
        "slices": [asdict(each) for each in replayed_slices(items, contents)],
        "watermarks": watermarks_after(context, gone, left),
    }
    side = side_of(entity, context.lake)
    commit = swap_in(context, entity, side, plan.state, told, contents=contents, check=check)
    reach_failpoint("before_rewind_record")
    record_landed(context, entity, rewind, commit)
    return commit.version

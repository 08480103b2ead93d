"""The rebuild of a table beside the old one, from a version of it on, their comparison, and the swap.

Source: the rules of rewinds, "Rebuild".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit import strict_session
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import read_table
from lakewright.slices.replay_slices import replay_slices
from lakewright.slices.rewind.difference import TableDifference, compare_rows
from lakewright.slices.rewind.known_slices import watermarks_of
from lakewright.slices.rewind.settle import record_landed
from lakewright.slices.rewind.side_table import begin_beside, rewind_session, side_of
from lakewright.slices.rewind.swap import rewind_content, swap_in
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from lakewright.lake.table_state import TableState
    from lakewright.manifest.rewind import Rewind
    from lakewright.manifest.store import Put
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.rewind.known_slices import Replay
    from lakewright.slices.rewind.plan_rebuild import RebuildPlan
    from lakewright.spec.models.entity import Entity

__all__ = ["build_beside", "compare_beside", "swap_rebuilt"]


def build_beside(
    context: ProcessingContext,
    entity: Entity,
    replay: Replay,
    *,
    check: Callable[[], None],
    is_compared: bool = False,
) -> tuple[Mapping[str, Any], ...]:
    """Apply slices beside a table, or continue an earlier attempt; return what the commits say of each.

    Args:
        context: The context of the processing.
        entity: The entity.
        replay: What is applied.
        check: Raises an error if the rewind must not go on.
        is_compared: Whether the last attempt was a comparison, which has told what it left.

    Raises:
        TargetError: A slice cannot be applied under today's declaration; those before it stay for the next
            attempt.
    """
    side, session = side_of(entity, context.lake), rewind_session(context.lake, replay.state)
    begin_beside(
        context,
        entity,
        side,
        replay.base,
        app=replay.app,
        slices=replay.slices,
        session=session,
        is_expected=is_compared,
    )
    return replay_slices(
        context,
        side,
        replay.slices,
        app=replay.app,
        watermarks=watermarks_of(replay.kept),
        check=check,
        has_past=replay.has_past,
        session=session,
    )


def compare_beside(
    context: ProcessingContext, entity: Entity, state: TableState, *, without: Sequence[str] = ()
) -> TableDifference | None:
    """Return the difference between a table and the one built beside it; None if there is no table.

    Keys and hashes are not compared: they follow from the other columns, and differ in every row under
    another key or hash version.

    Args:
        context: The context of the processing.
        entity: The entity.
        state: The table as it was observed.
        without: Further columns that are not compared.
    """
    if not state.exists:
        return None
    lake, session = context.lake, strict_session(context.lake)
    before = read_table(session, entity.places(lake.settings).silver, state.version)
    after = read_table(session, side_of(entity, lake).places(lake.settings).silver)
    system = SystemColumns(lake.settings.systemfield_prefix, entity.destination)
    return compare_rows(before, after, without=(system.key, system.hash, *without), seen=system.last_seen)


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
    # The manifest has the slices that are left out as skipped already.
    gone = frozenset((*(each.item_id for each in plan.slices), *(item.item_id for item in plan.skipped)))
    told = rewind_content(rewind, "rebuild", plan.base, reason, taints)
    commit = swap_in(context, entity, plan, told, contents=contents, gone=gone, check=check)
    reach_failpoint("before_rewind_record")
    record_landed(context, entity, rewind, commit)
    return commit.version

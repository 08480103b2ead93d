"""The rebuild of a table beside the old one, from a version of it on, their comparison, and the commit.

Source: the rules of rewinds, "Rebuild".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lakewright.errors import LeaseLost
from lakewright.lake.commit import Commit, Token, carrying_token, strict_session
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import last_commit_number, observe_table, read_table
from lakewright.lake.table import drop_entry_alone
from lakewright.manifest.commit_counter import raise_counter
from lakewright.manifest.rewind import RewoundSlice
from lakewright.slices.chain import AppliedSlice
from lakewright.slices.recover_from_log import counter_of, last_given_number
from lakewright.slices.replay_slices import replay_slices
from lakewright.slices.rewind.difference import TableDifference, compare_rows
from lakewright.slices.rewind.known_slices import watermarks_after, watermarks_of
from lakewright.slices.rewind.settle import find_rewind, record_landed
from lakewright.slices.rewind.side_table import begin_beside, rewind_session, side_of, swap_write
from lakewright.strategies.table_guard import check_unchanged, table_lock
from lakewright.strategies.table_properties import HASH_VERSION_PROPERTY
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.table_state import TableState
    from lakewright.manifest.item import Item
    from lakewright.manifest.rewind import Rewind
    from lakewright.manifest.store import Put
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.rewind.known_slices import Replay
    from lakewright.slices.rewind.plan_rebuild import RebuildPlan
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Address

__all__ = ["build_beside", "commit_rewind", "compare_beside", "rewind_content", "swap_in", "swap_rebuilt"]


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


def rewind_content(
    rewind: Rewind, operation: str, base: int | None, reason: str, taints: Iterable[Put]
) -> dict[str, Any]:
    """Return what the commit of a rewind says of it, beside its slices and watermarks."""
    return {
        "id": rewind.rewind_id,
        "operation": operation,
        "base": base,
        "reason": reason,
        "taints": [{"key": put.key, "value": put.value} for put in taints],
    }


def swap_in(
    context: ProcessingContext,
    entity: Entity,
    replay: Replay,
    told: Mapping[str, Any],
    *,
    contents: Sequence[Mapping[str, Any]],
    gone: frozenset[str],
    taken_back: Iterable[RewoundSlice] = (),
    check: Callable[[], None],
) -> Commit:
    """Replace the rows of an entity's table by those of its side table, in one commit; return the commit.

    Args:
        context: The context of the processing.
        entity: The entity.
        replay: What was applied beside the table.
        told: What the commit says of the rewind.
        contents: What it says of each slice that was applied.
        gone: Ids of the items that the table does not hold any more, or holds by other commits.
        taken_back: Those of them that the table does not hold any more.
        check: Raises `LeaseLost` if the lease on the table is no longer held.

    Raises:
        CommitConflict: The table has changed since it was observed; nothing was written.
    """
    lake, store = context.lake, context.ledger.store
    silver, app = entity.places(lake.settings).silver, str(context.application)
    last = last_commit_number(lake, silver, app) or 0
    number = max(last_given_number(context.ledger, silver), last) + 1
    # Before the commit: no slice may be given the number, or a smaller one, after it.
    raise_counter(store, counter_of(silver), number)
    items = store.read([known.item_id for known in replay.slices])
    applied = tuple(AppliedSlice(each["item"], each["number"], each) for each in contents)
    beside = side_of(entity, lake).places(lake.settings).silver
    built = observe_table(lake, beside)
    rewind = {
        **told,
        "slices": [asdict(each) for each in (*taken_back, *_replayed(items, contents, number))],
        "watermarks": watermarks_after(context, gone, (*replay.kept, *applied)),
    }
    content = {
        "run": context.holder.run_id,
        "record": told["id"],
        "hashVersion": built.properties.get(HASH_VERSION_PROPERTY),
        "rewind": rewind,
        "items": [
            {**each, "number": number, "revision": items[each["item"]].revision + 1} for each in contents
        ],
    }
    session = rewind_session(lake, built)
    reach_failpoint("before_swap")
    if not replay.state.exists:
        drop_entry_alone(lake, silver)
    write = swap_write(lake, session, silver, beside, built)
    token = Token(app, number, content)
    return commit_rewind(context, session, silver, replay.state, token, write=write, check=check)


def commit_rewind(
    context: ProcessingContext,
    session: SparkSession,
    address: Address,
    state: TableState,
    token: Token,
    *,
    write: Callable[[], None],
    check: Callable[[], None],
) -> Commit:
    """Make the commit of a rewind and return it.

    Args:
        context: The context of the processing.
        session: The session in which `write` makes exactly one commit.
        address: The table.
        state: The table as it was observed.
        token: Carried by the commit; its content has the id of the rewind.
        write: Makes the commit.
        check: Raises `LeaseLost` if the lease on the table is no longer held.

    Raises:
        CommitConflict: The table has changed since it was observed; nothing was written.
        LeaseLost: The lease is lost; nothing was written.
    """
    lake = context.lake
    with table_lock(lake, address, str(context.holder)):
        check_unchanged(lake, address, state, "since this began", remedy="Type the command again.")
        check()
        reach_failpoint("before_rewind")
        with carrying_token(session, token):
            write()
        reach_failpoint("after_rewind")
    found = find_rewind(context, address, token.content["rewind"]["id"])
    if found is None:
        raise LeaseLost(f"the commit to {address} did not land", remedy="Type the command again.")
    expected = 0 if state.version is None else state.version + 1
    if found.version != expected:
        # Nothing keeps another program from a commit between the check and the write.
        context.warn(
            f"{address}: another program committed version {expected} just before version {found.version}, "
            "which does not have its rows; Delta's time travel reads them"
        )
    return found


def _replayed(
    items: Mapping[str, Item], contents: Sequence[Mapping[str, Any]], number: int
) -> Iterator[RewoundSlice]:
    """Yield slices that were applied again, for their new revisions; the commit has a number."""
    for each in contents:
        item, names = items[each["item"]], ("slice", "strategy", "fingerprint", "watermarks", "metrics")
        content = {**{name: each[name] for name in names}, "processing_time": each["processingTime"]}
        note = {"fingerprint": each["fingerprint"]}
        yield RewoundSlice(item.item_id, item.revision, note=note, token=number, content=content)

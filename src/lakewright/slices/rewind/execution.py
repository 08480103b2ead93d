"""The execution of a rewind: slices are applied beside the table, and one commit puts the result there.

A rebuild applies all slices, or those from a version of the table on. An undo of the newest slice applies
none: its commit writes no rows. An older slice is undone as a rebuild from the version before it, without it.

Source: the rules of rewinds, "Undo" and "Rebuild".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from lakewright.errors import LeaseLost
from lakewright.lake.commit import Commit, Token, carrying_token, strict_session
from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.observation import observe_table, read_table, table_id
from lakewright.lake.table import drop_entry_alone, restore_table
from lakewright.manifest.claim import raise_counter
from lakewright.manifest.rewind import RewoundSlice
from lakewright.slices.chain import AppliedSlice, counter_of
from lakewright.slices.rewind.difference import TableDifference, compare_tables
from lakewright.slices.rewind.plan import watermarks_after, watermarks_of
from lakewright.slices.rewind.settlement import find_rewind, record_landed
from lakewright.slices.rewind.side_table import SUFFIX, begin_beside, rewind_session, swap_write
from lakewright.slices.slice_replay import replay_slices
from lakewright.strategies.slice_load import check_unchanged, table_lock
from lakewright.strategies.table_properties import HASH_VERSION_PROPERTY
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.lake.delta_log import TableState
    from lakewright.manifest.item import Item
    from lakewright.manifest.rewind import Rewind
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.rewind.plan import RewindPlan
    from lakewright.spec.models.entity import Entity


def build_beside(
    context: ProcessingContext,
    entity: Entity,
    plan: RewindPlan,
    *,
    check: Callable[[], None],
    is_compared: bool = False,
) -> tuple[Mapping[str, Any], ...]:
    """Apply slices beside a table, or continue an earlier attempt; return what the commits say of each.

    Args:
        context: The context of the processing.
        entity: The entity.
        plan: What is applied.
        check: Raises an error if the rewind must not go on.
        is_compared: Whether the last attempt was a comparison, which has reported what it left.

    Raises:
        TargetError: A slice cannot be applied under today's declaration; those before it stay for the next
            attempt.
    """
    side, session = entity.beside(context.lake.settings, SUFFIX), rewind_session(context.lake, plan.state)
    begin_beside(
        context,
        entity,
        side,
        plan.base,
        app=plan.app,
        slices=plan.slices,
        session=session,
        is_expected=is_compared,
    )
    return replay_slices(
        context,
        side,
        plan.slices,
        app=plan.app,
        watermarks=watermarks_of(plan.kept),
        check=check,
        has_past=plan.has_past,
        session=session,
    )


def compare_beside(context: ProcessingContext, entity: Entity, state: TableState) -> TableDifference | None:
    """Return the difference between a table and the one built beside it; None if there is no table.

    Args:
        context: The context of the processing.
        entity: The entity.
        state: The table as it was observed.
    """
    if not state.exists:
        return None
    lake, session = context.lake, strict_session(context.lake)
    before = read_table(session, entity.places(lake.settings).silver, state.version)
    after = read_table(session, entity.beside(lake.settings, SUFFIX).places(lake.settings).silver)
    system = SystemColumns(lake.settings.systemfield_prefix, entity.destination)
    return compare_tables(before, after, system)


def rewind_table(
    context: ProcessingContext,
    entity: Entity,
    plan: RewindPlan,
    rewind: Rewind,
    *,
    operation: str,
    reason: str,
    check: Callable[[], None],
    contents: Sequence[Mapping[str, Any]] | None = None,
) -> int | None:
    """Rewind a table as planned, and record it; return the table's version after.

    Args:
        context: The context of the processing.
        entity: The entity.
        plan: The plan, made under the lease on the table.
        rewind: The announcement of the rewind.
        operation: What the commit is called: `undo`, `rebuild` or `replay`.
        reason: Why, for the commit and for each record.
        check: Raises `LeaseLost` if the lease on the table is no longer held.
        contents: What the commits beside the table say of each slice that was applied there; by default, the
            slices are applied first, if there are any.

    Raises:
        CommitConflict: The table has changed since the rewind was planned; nothing was written.
        LeaseLost: The lease is lost; nothing was written.
        TargetError: A slice cannot be applied again; nothing was written.
    """
    if contents is None and plan.slices:
        contents = build_beside(context, entity, plan, check=check)
    rewind_content: dict[str, Any] = {
        "id": rewind.rewind_id,
        "operation": operation,
        "base": plan.base,
        "reason": reason,
        "slices": list(map(asdict, plan.taken_back)),
    }
    if contents is not None:
        commit = _commit_rewind(
            context, entity, plan, _swap(context, entity, plan, rewind_content, contents), check
        )
    else:
        rewind_content["watermarks"] = watermarks_after(context, plan.rewound_ids, plan.kept)
        commit = Commit(-1, None, "", {}, {"rewind": rewind_content})
        if plan.changes_table:
            commit = _commit_rewind(
                context, entity, plan, _restore(context, entity, plan, rewind_content), check
            )
    reach_failpoint("before_rewind_record")
    record_landed(context, entity, rewind, commit)
    return commit.version if plan.changes_table else plan.state.version


_RECORDED = ("slice", "strategy", "fingerprint", "watermarks", "metrics", "drift")
"""Entries of a slice in a commit that its record has, too."""


class _Write(NamedTuple):
    """The write of a rewind: it makes exactly one commit in the session, which carries the token."""

    session: SparkSession
    token: Token
    write: Callable[[], object]


def _restore(
    context: ProcessingContext, entity: Entity, plan: RewindPlan, rewind_content: Mapping[str, Any]
) -> _Write:
    """Return the write that puts the table back without writing rows."""
    silver, session = entity.places(context.lake.settings).silver, rewind_session(context.lake, plan.state)
    content = {"rewind": rewind_content, "run": context.holder.run_id}
    token = Token(f"{context.application}/undo", (plan.state.version or 0) + 1, content)
    return _Write(session, token, partial(restore_table, session, silver, plan.base))


def _swap(
    context: ProcessingContext,
    entity: Entity,
    plan: RewindPlan,
    rewind_content: Mapping[str, Any],
    contents: Sequence[Mapping[str, Any]],
) -> _Write:
    """Return the write that replaces the rows of an entity's table by those of its side table.

    Args:
        context: The context of the processing.
        entity: The entity.
        plan: What was applied beside the table.
        rewind_content: What the commit says of the rewind.
        contents: What it says of each slice that was applied.
    """
    lake, store, chain = context.lake, context.ledger.store, context.chain(entity)
    silver, app = chain.silver, chain.app
    number = max(chain.last_given_number, chain.last_number or 0) + 1
    # Before the commit: no slice may be given the number, or a smaller one, after it.
    raise_counter(store, counter_of(silver), number)
    items = store.read([known.item_id for known in plan.slices])
    applied = tuple(AppliedSlice(each["item"], each["number"], each) for each in contents)
    beside = entity.beside(lake.settings, SUFFIX).places(lake.settings).silver
    built = observe_table(lake, beside)
    rewind = {
        **rewind_content,
        "replaces": table_id(lake, silver),
        "slices": [*rewind_content["slices"], *map(asdict, _replayed(items, contents, number))],
        "watermarks": watermarks_after(context, plan.rewound_ids, (*plan.kept, *applied)),
    }
    content = {
        "run": context.holder.run_id,
        "record": rewind_content["id"],
        "hashVersion": built.properties.get(HASH_VERSION_PROPERTY),
        "rewind": rewind,
        "items": [
            {**each, "number": number, "revision": items[each["item"]].revision + 1} for each in contents
        ],
    }
    session = rewind_session(lake, built)
    reach_failpoint("before_swap")
    if not plan.state.exists:
        drop_entry_alone(lake, silver)
    return _Write(session, Token(app, number, content), swap_write(lake, session, silver, beside, built))


def _commit_rewind(
    context: ProcessingContext, entity: Entity, plan: RewindPlan, write: _Write, check: Callable[[], None]
) -> Commit:
    """Make the commit of a rewind and return it; `check` raises `LeaseLost` if the lease is lost.

    Raises:
        CommitConflict: The table has changed since it was observed; nothing was written.
        LeaseLost: The lease on the table is lost; nothing was written.
    """
    lake, address, state = context.lake, entity.places(context.lake.settings).silver, plan.state
    with table_lock(lake, address, str(context.holder)):
        check_unchanged(lake, address, state, "since this began", remedy="Type the command again.")
        check()
        reach_failpoint("before_rewind")
        with carrying_token(write.session, write.token):
            write.write()
        reach_failpoint("after_rewind")
    found = find_rewind(context, entity, write.token.content["rewind"]["id"])
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
        item = items[each["item"]]
        content = {name: each[name] for name in _RECORDED if name in each}
        content["processing_time"] = each["processingTime"]
        note = {"fingerprint": each["fingerprint"]}
        yield RewoundSlice(item.item_id, item.revision, note=note, token=number, content=content)

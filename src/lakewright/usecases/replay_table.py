"""Replay a table as a plan says: the slices that it should hold, from the first that differs on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakewright.due.facts import Effect, Foreign, Slice
from lakewright.due.plan import Code
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.item import is_changed
from lakewright.manifest.record import State, parse_instant
from lakewright.manifest.rewind import RewoundSlice
from lakewright.slices.discover import find_slice, item_id
from lakewright.slices.other_runs import strategy_of_jobs
from lakewright.slices.rewind.placing import Arriving, with_times
from lakewright.slices.rewind.plan import RewindPlan, lasting_commits, plan_replay, starts_over
from lakewright.usecases.history import REPLAY
from lakewright.usecases.items import find_or_record_item
from lakewright.usecases.placed import chain_of
from lakewright.usecases.process_slices import declared_slice_time
from lakewright.usecases.rewinding import carry_out

if TYPE_CHECKING:
    from datetime import datetime

    from lakewright.app import App
    from lakewright.due.facts import Entity as Observed
    from lakewright.due.plan import Step
    from lakewright.manifest.item import Item
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity, Strategy

__all__ = ["arriving_slices", "replay_table"]


def replay_table(app: App, step: Step, observed: Observed, *, author: str, reason: str) -> None:
    """Take a step that goes back: what differs is applied beside the table, and one commit swaps it in.

    Args:
        app: The project.
        step: The step.
        observed: The facts of its entity, as the step was planned.
        author: Who does it.
        reason: Why.

    Raises:
        LeaseHeld: Another run writes or rewinds the table.
        ItemLocked: A slice of the entity is being processed.
        DataLossError: Commits of other writers would be lost that were not observed.
        SliceError: Slices that must be applied again are gone from bronze, or have changed.
        TargetError: A slice can't be applied; the table is as it was.
    """
    app.make_store()
    entity = app.project.entity(step.subject.name)
    held = frozenset(observed.table.held)
    new = [each for each in step.slices if each not in held]
    arriving = arriving_slices(app, entity, [each.name for each in new])
    strategy = strategy_of_jobs(app.project, entity)
    carry_out(
        app,
        entity,
        REPLAY,
        lambda context: _plan(context, entity, step, observed, arriving=arriving, strategy=strategy),
        words=f"replay of {entity.called}",
        facts={"code": step.reason.code.value, "slices": [each.name for each in step.slices]},
        author=author,
        reason=reason,
    )


def arriving_slices(app: App, entity: Entity, names: Iterable[str]) -> list[Arriving]:
    """Return slices as they are in bronze now, with the times that are declared for them, or that they had.

    One that no run has seen yet is recorded first. One that is in the table keeps the time that it has there.

    Raises:
        UsageError: There is no such slice.
    """
    wanted = dict.fromkeys(names)
    if not wanted:
        return []
    chain = chain_of(app, entity)
    held = {each.item_id: each for each in chain.order}
    found = []
    for name in wanted:
        item = find_or_record_item(app, f"{entity.called}/{name}")
        present = find_slice(chain.bronze, name, app.lake)
        if present is None:
            raise UsageError(
                f"the slice {name} of {entity.called} is gone from {chain.bronze}",
                remedy=Phrase("Bring it back, or see what can be decided: ", Command("plan"), "."),
            )
        own = held[item.item_id].at if item.item_id in held else None
        times = (own, declared_slice_time(app, entity.called, name), _former_time(chain, item))
        found.append(Arriving(item.item_id, present.fingerprint, tuple(filter(None, dict.fromkeys(times)))))
    return found


def _former_time(chain: SliceChain, item: Item) -> datetime | None:
    """Return the processing time with which a slice was last processed; None if it never was."""
    found = [
        each.content.get("processing_time")
        for each in chain.store.records(item.item_id)
        if each.state is State.PROCESSED and each.application.key == chain.application.key
    ]
    return parse_instant(found[-1]) if found and found[-1] is not None else None


def _plan(
    context: ProcessingContext,
    entity: Entity,
    step: Step,
    observed: Observed,
    *,
    arriving: Iterable[Arriving],
    strategy: Strategy,
) -> RewindPlan:
    """Return how the table comes to hold what a step says.

    All slices are applied again if the declaration of their rows has changed, the table is gone, or it has no
    version any more to which it could go back.
    """
    chain = context.chain(entity)
    held = {each.name: each for each in chain.order}
    arrived = {each.name: each for each in arriving}
    kept = [each.name for each in observed.table.held[: step.base] if isinstance(each, Slice)]
    names = (*kept, *(each.name for each in step.slices))
    wanted = with_times(context, [arrived.get(name) or held[name] for name in names], strategy)
    others = frozenset(each.version for each in observed.table.held if isinstance(each, Foreign))
    lost = frozenset(each.version for each in observed.table.held[step.base :] if isinstance(each, Foreign))
    lasting = lasting_commits(chain, wanted, lambda commit, _: commit.version in lost)
    is_redeclared = step.reason.code is Code.REDECLARED
    is_whole = is_redeclared or not observed.table.is_there or starts_over(chain, wanted, lasting)
    if is_whole and observed.effect is Effect.LAST:
        wanted = wanted[-1:]  # it replaces all rows of those before it
    removed = [context.ledger.item(item_id(f"{chain.bronze}/{name}")) for name in step.removes]
    return plan_replay(
        context,
        entity,
        wanted,
        lasting,
        is_whole=is_whole,
        strategy=strategy if is_redeclared else None,
        new={
            each.item_id
            for name, each in arrived.items()
            if name not in held or is_changed(held[name].fingerprint, each.fingerprint)
        },
        taken_back=tuple(
            RewoundSlice(item.item_id, item.revision, is_skipped=True)
            for item in removed
            if not item.is_skipped_for(chain.application)
        ),
        takes_skipped=True,
        may_lose=lambda commit: commit.version in others or not observed.table.is_there,
    )

"""The frame of every replay: the lease on the table, the announcement, and the history of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from lakewright.app import App
from lakewright.due.facts import Effect, Foreign, Slice
from lakewright.due.plan import Code
from lakewright.errors import LakewrightError, UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.spark_errors import EVERYWHERE, translated
from lakewright.manifest.item import is_changed
from lakewright.manifest.journal import UNFIT, Run
from lakewright.manifest.lease import find_lease
from lakewright.manifest.payload import failure
from lakewright.manifest.record import parse_instant
from lakewright.manifest.rewind import RewoundSlice
from lakewright.manifest.store import Put, Write
from lakewright.plan.permissions import NO_PERMISSIONS, Permissions
from lakewright.run.execution import Interruption
from lakewright.slices.chain import counter_of
from lakewright.slices.context import ProcessingContext, ProcessingOptions
from lakewright.slices.discovery import find_slice, item_id, list_slices
from lakewright.slices.lost_table import moved_lake_error
from lakewright.slices.other_runs import strategy_of_jobs
from lakewright.slices.rewind.execution import build_beside, compare_beside, rewind_table
from lakewright.slices.rewind.plan import (
    Arriving,
    RewindPlan,
    lasting_commits,
    plan_replay,
    starts_over,
    with_times,
)
from lakewright.slices.rewind.settlement import conclude, settle_rewind
from lakewright.slices.slice_replay import UNFIT_SLICE
from lakewright.spark.loggers import without_id_warnings
from lakewright.strategies.summary import plain_names
from lakewright.targets.entity.work import processing_context
from lakewright.targets.lease import hold_leases, lease_key, table_resource
from lakewright.usecases.history import REPLAY
from lakewright.usecases.items import find_or_record_item
from lakewright.usecases.process_slices import declared_slice_time

if TYPE_CHECKING:
    from datetime import datetime

    from lakewright.due.facts import Entity as Observed
    from lakewright.due.plan import Step
    from lakewright.manifest.item import Item
    from lakewright.manifest.rewind import Rewind
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.rewind.difference import TableDifference
    from lakewright.spec.models.entity import Entity, Strategy


@dataclass(slots=True)
class Attempt:
    """A rewind as the history lists it.

    Attributes:
        is_begun: Whether it has passed its checks. One that is refused before has nothing to be done again.
        is_landed: Whether it has changed the table, although it ended with an error.
    """

    is_begun: bool = False
    is_landed: bool = False


class Replaying(Protocol):
    """A plan that replays a table."""

    @property
    def replay(self) -> RewindPlan:
        """What becomes of the table."""

    def as_json(self) -> dict[str, Any]:
        """Return the plan as commands print it."""


P = TypeVar("P", bound=Replaying)


@dataclass(frozen=True, slots=True)
class Replayed(Generic[P]):
    """What was done to a table.

    Attributes:
        plan: What was planned.
        difference: The new rows compared with the old ones; None if they were not, or can't be read.
        version: The version of the table after; None if only the difference was asked for.
        metrics: The metrics of each slice that was applied again.
    """

    plan: P
    difference: TableDifference | None
    version: int | None
    metrics: tuple[Mapping[str, Any], ...] = ()


def carry_out(
    app: App,
    entity: Entity,
    phase: str,
    make_plan: Callable[[ProcessingContext], P],
    *,
    words: str,
    facts: Mapping[str, Any],
    author: str,
    reason: str,
    is_only_compared: bool = False,
    compares: Callable[[P], bool] = lambda _: False,
    is_continued: bool = False,
    permissions: Permissions = NO_PERMISSIONS,
    interruption: Interruption | None = None,
) -> Replayed[P]:
    """Replay a table as planned under the lease on it, and record it; return what was done.

    A replay of which the process died is continued: if its commit landed, only the records are made.

    Args:
        app: The project.
        entity: The entity.
        phase: `UNDO`, `REBUILD` or `REPLAY`, under which it is listed in the history of runs.
        make_plan: Makes the plan in a context.
        words: What is done, such as `undo of 2024-05-03.csv of orders`.
        facts: What identifies it among those of the same entity.
        author: Who does it.
        reason: Why.
        is_only_compared: Whether the table that is built stays beside the entity's own.
        compares: Whether the rows are compared before.
        is_continued: Whether a comparison has reported what is beside the table.
        permissions: What slices may do that were not processed before.
        interruption: Shows whether to stop.

    Raises:
        LeaseHeld: Another run writes or rewinds the table.
        ItemLocked: A slice of the entity is being processed.
        TargetError: A slice can't be applied; the table is as it was.
    """
    app.check_session()
    app.make_store()
    context = rewind_context(app, entity, interruption, author=author, permissions=permissions)
    settle_rewind(context, entity)
    listed_facts = {"entity": entity.called, "author": author, "reason": reason, **facts}
    command = nullcontext() if is_only_compared else app.reported_command(phase.lower(), entity)
    leased = hold_leases(app.context(), frozenset({table_resource(context.chain(entity).silver)}))
    without_warnings = without_id_warnings(is_shared=app.lake.sessions.is_shared)
    job = f"{phase.lower()} {entity.called}"
    with command, listed(app, job, phase, listed_facts) as attempt, leased, without_warnings:
        check = check_of(app, interruption)
        plan = make_plan(context)

        def build() -> tuple[tuple[Mapping[str, Any], ...] | None, TableDifference | None]:
            if not plan.replay.slices:
                return None, None
            contents = build_beside(context, entity, plan.replay, check=check, is_compared=is_continued)
            is_compared = compares(plan)
            return contents, compare_beside(context, entity, plan.replay.state) if is_compared else None

        if is_only_compared:
            return Replayed(plan, build()[1], None)
        with announced(app, context, entity, words, attempt) as rewind:
            with recording_unfit(app, entity):
                contents, difference = build()
            version = rewind_table(
                context,
                entity,
                plan.replay,
                rewind,
                operation=phase.lower(),
                reason=f"{words} by {author}: {reason}",
                check=app.lake.check_commit,
                contents=contents,
            )
    clear_unfit(app, entity, (each.name for each in plan.replay.slices))
    metrics = tuple(plain_names(each["metrics"]) for each in contents or ())
    return Replayed(plan, difference, version, metrics)


def rewind_context(
    app: App,
    entity: Entity,
    interruption: Interruption | None = None,
    *,
    author: str | None = None,
    permissions: Permissions = NO_PERMISSIONS,
) -> ProcessingContext:
    """Return the context in which an entity's table is rewound; records are written in the author's name.

    Raises:
        LakeMoved: The slices were processed in another folder, of which the manifest has the records.
    """
    target = app.context(interruption=interruption)
    context = processing_context(target, entity, ProcessingOptions(permissions=permissions))
    chain = context.chain(entity)
    moved = moved_lake_error(chain, lambda: {each.name for each in list_slices(chain.folder, app.lake)})
    if moved is not None:
        raise moved
    return context if author is None else replace(context, ledger=app.ledger_of(app.store, author))


def check_of(app: App, interruption: Interruption | None) -> Callable[[], None]:
    """Return what ends a rewind before its next slice or its commit: a lost lease, or a signal."""

    def check() -> None:
        if interruption is not None and interruption.signal is not None:
            raise KeyboardInterrupt("the rebuild or undo was interrupted; the table is as it was")
        app.lake.check_commit()

    return check


def end_rewind(app: App, entity: Entity, *, author: str) -> Run | None:
    """End a rewind of an entity's table whose process died; return its run if its commit is recorded now.

    Raises:
        LeaseHeld: It goes on.
    """
    app.make_store()
    context = rewind_context(app, entity, author=author)
    rewind = context.chain(entity).rewind
    is_landed = rewind is not None and settle_rewind(context, entity)
    return app.journal.run(rewind.holder.run_id) if rewind is not None and is_landed else None


def settled(app: App, entity: Entity, phase: str, facts: Mapping[str, Any], *, author: str) -> Run | None:
    """Return the run of the same undo or rebuild whose process died after its commit; it is recorded now.

    None if there is none, or if the one that died was another: it is ended, too.

    Args:
        app: The project.
        entity: The entity.
        phase: The phase under which it is listed.
        facts: What identifies it among those of an entity; an entry that is not given is None.
        author: Who records it.
    """
    run = end_rewind(app, entity, author=author)
    if run is None or run.phase != phase:
        return None
    is_other = any((run.facts.get(name) or None) != (each or None) for name, each in facts.items())
    return None if is_other else run


def ended_words(run: Run) -> str:
    """Return that a run has done what was asked for, although its process died before it was recorded."""
    return f"run {run.run_id} had done this before its process ended: it is recorded now"


def check_settled(app: App, entity: Entity) -> None:
    """Raise an error if a rewind of an entity's table has begun and is not recorded.

    Raises:
        LeaseHeld: It goes on.
        UsageError: Its process has ended.
    """
    rewind = app.chain(entity).rewind
    if rewind is None:
        return
    if app.ledger.is_rewinding(rewind):
        raise rewind.error()
    raise UsageError(
        f"the {rewind.words} did not end, so that nobody knows yet what the table holds",
        remedy="Type the command without --dry-run: it first records what was done, or drops it, and asks "
        "before it does anything else.",
    )


@contextmanager
def announced(
    app: App, context: ProcessingContext, entity: Entity, words: str, attempt: Attempt
) -> Iterator[Rewind]:
    """Announce a rewind under the lease that this process holds, so that no slice begins meanwhile.

    If the block raises an error, the rewind is recorded if its commit landed, and otherwise ended.

    Args:
        app: The project.
        context: The context of the rewind.
        entity: The entity.
        words: What the rewind does.
        attempt: Is informed that it has begun, and whether its commit landed.

    Raises:
        ItemLocked: A slice of the entity is being processed.
    """
    silver = entity.places(app.project.lake).silver
    lease = find_lease(app.store, lease_key(table_resource(silver)))
    if lease is None:
        raise RuntimeError("the lease on the table is not held")
    rewind = context.ledger.announce_rewind(counter_of(silver), words, lease, app.ids(), context.application)
    attempt.is_begun = True
    try:
        yield rewind
    except BaseException:
        attempt.is_landed = conclude(context, entity, rewind)
        raise


@contextmanager
def listed(app: App, job: str, phase: str, facts: Mapping[str, Any]) -> Iterator[Attempt]:
    """List a rewind in the history of runs; its fact `refused` says that it was not begun.

    Raises:
        StorageUnavailable: The storage failed in the block.
    """
    run = app.journal.start_run(
        Run(
            run_id=app.run_id,
            project=app.project.name,
            job=job,
            phase=phase,
            parameters={},
            started=app.clock(),
            holder=app.holder,
            facts={**facts, **({"trigger": app.trigger} if app.trigger else {})},
        )
    )
    status, attempt = "FAILED", Attempt()
    try:
        yield attempt
        status = "SUCCESS"
    except KeyboardInterrupt:
        status = "ABORTED"
        raise
    except Exception as error:
        is_ours = isinstance(error, LakewrightError)
        ours = None if is_ours else translated(error, f"during `{job}`", EVERYWHERE)
        if ours is None:
            raise
        raise ours from error
    finally:
        if attempt.is_landed:
            status = "SUCCESS_WITH_ERRORS"
        refused = {} if status == "SUCCESS" or attempt.is_begun else {"refused": True}
        app.journal.finish_run(run, status, finished=app.clock(), **refused)


@dataclass
class UnfitSlices:
    """The slices of all entities that a replay could not apply, read from the manifest once."""

    app: App

    @cached_property
    def _values(self) -> Mapping[str, Mapping[str, Any]]:
        prefix = f"{self.app.project.name}/"
        return {each.key: each.value for each in self.app.store.documents(UNFIT, prefix=prefix)}

    def of(self, entity: Entity) -> Mapping[str, Mapping[str, Any]]:
        """Return how slices of an entity failed: `fingerprint`, `declared`, `attempt`, `error` by name."""
        prefix = _prefix(self.app, entity)
        return {
            key.removeprefix(prefix): each for key, each in self._values.items() if key.startswith(prefix)
        }


@contextmanager
def recording_unfit(app: App, entity: Entity) -> Iterator[None]:
    """Record the slice that is at fault if a replay in the block fails by one."""
    try:
        yield
    except LakewrightError as error:
        if (found := error.details.get(UNFIT_SLICE)) is not None:
            value = {
                "fingerprint": found["fingerprint"],
                "declared": entity.declared_digest,
                "attempt": app.run_id,
                "error": app.redactor.value(failure(error)["error"]),
            }
            app.store.write(Write(puts=(Put(UNFIT, f"{_prefix(app, entity)}{found['slice']}", value),)))
        raise


def clear_unfit(app: App, entity: Entity, names: Iterable[str]) -> None:
    """Record that slices were applied."""
    known = UnfitSlices(app).of(entity)
    puts = tuple(Put(UNFIT, f"{_prefix(app, entity)}{name}", None) for name in names if name in known)
    if puts:
        app.store.write(Write(puts=puts))


def _prefix(app: App, entity: Entity) -> str:
    return f"{app.project.name}/{entity.called}/"


def replay_table(
    app: App,
    step: Step,
    observed: Observed,
    *,
    permissions: Permissions = NO_PERMISSIONS,
    author: str,
    reason: str,
) -> tuple[Mapping[str, Any], ...]:
    """Take a step that goes back: what differs is applied beside the table, and one commit swaps it in.

    Returns the metrics of each slice that was applied.

    Args:
        app: The project.
        step: The step.
        observed: The facts of its entity, as the step was planned.
        permissions: What slices may do that were not processed before.
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
    with recording_unfit(app, entity):
        arriving = arriving_slices(app, entity, [each.name for each in new])
    strategy = strategy_of_jobs(app.project, entity)
    done = carry_out(
        app,
        entity,
        REPLAY,
        lambda context: _replay_plan(context, entity, step, observed, arriving=arriving, strategy=strategy),
        words=f"replay of {entity.called}",
        facts={"code": step.reason.code.value, "slices": [each.name for each in step.slices]},
        permissions=permissions,
        author=author,
        reason=reason,
    )
    return done.metrics


def arriving_slices(app: App, entity: Entity, names: Iterable[str]) -> list[Arriving]:
    """Return slices as they are in bronze now, with the times that are declared for them, or that they had.

    One that no run has seen yet is recorded first. One that is in the table keeps the time that it has there.

    Raises:
        UsageError: There is no such slice.
    """
    wanted = dict.fromkeys(names)
    if not wanted:
        return []
    chain = app.chain(entity)
    held = {each.item_id: each for each in chain.order}
    found = []
    for name in wanted:
        item = find_or_record_item(app, f"{entity.called}/{name}")
        present = find_slice(chain.folder, name, app.lake)
        if present is None:
            raise UsageError(
                f"the slice {name} of {entity.called} is gone from {chain.bronze}",
                remedy=Phrase("Bring it back, or see what can be decided: ", Command("plan"), "."),
            )
        own = held[item.item_id].at if item.item_id in held else None
        declared = declared_slice_time(app, entity, name)
        # A corrected slice keeps its time, unless this is in the rows.
        first = (own, declared) if entity.settings.time_column is None else (declared, own)
        times = (*first, _former_time(chain, item))
        found.append(Arriving(item.item_id, present.fingerprint, tuple(filter(None, dict.fromkeys(times)))))
    return found


def _former_time(chain: SliceChain, item: Item) -> datetime | None:
    """Return the processing time with which a slice was last processed; None if it never was."""
    found = chain.recorded(item.item_id).get("processing_time")
    return None if found is None else parse_instant(found)


def _replay_plan(
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
    removed = [context.ledger.item(item_id(chain.folder.place(name))) for name in step.removes]
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

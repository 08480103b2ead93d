"""The frame of every replay: the lease on the table, the announcement, and the history of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.lake.delta_warnings import without_id_warnings
from lakewright.manifest.journal import Run
from lakewright.manifest.lease import find_lease
from lakewright.run.execute import Interruption
from lakewright.slices.chain import counter_of
from lakewright.slices.context import ProcessingContext, ProcessingOptions
from lakewright.slices.discover import list_slices
from lakewright.slices.moved_lake import moved_lake_error
from lakewright.slices.rewind.execution import build_beside, compare_beside, rewind_table
from lakewright.slices.rewind.settle import conclude, settle_rewind
from lakewright.strategies.failures import storage_error
from lakewright.target_contexts import target_contexts
from lakewright.targets.entity.work import processing_context
from lakewright.targets.lease import hold_leases, lease_key, table_resource
from lakewright.usecases.command_lineage import told_command
from lakewright.usecases.placed import chain_of
from lakewright.usecases.session_check import check_session
from lakewright.usecases.unfit_slices import clear_unfit, recording_unfit

if TYPE_CHECKING:
    from lakewright.manifest.rewind import Rewind
    from lakewright.slices.rewind.difference import TableDifference
    from lakewright.slices.rewind.plan import RewindPlan
    from lakewright.spec.models.entity import Entity

__all__ = [
    "Replayed",
    "Replaying",
    "carry_out",
    "check_settled",
    "end_rewind",
    "ended_words",
    "rewind_context",
    "settled",
]


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
    """

    plan: P
    difference: TableDifference | None
    version: int | None


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
        facts: What tells it from others of the same entity.
        author: Who does it.
        reason: Why.
        is_only_compared: Whether the table that is built stays beside the entity's own.
        compares: Whether the rows are compared before.
        is_continued: Whether a comparison has told what is beside the table.
        interruption: Shows whether to stop.

    Raises:
        LeaseHeld: Another run writes or rewinds the table.
        ItemLocked: A slice of the entity is being processed.
        TargetError: A slice can't be applied; the table is as it was.
    """
    check_session(app)
    app.make_store()
    context = rewind_context(app, entity, interruption, author=author)
    settle_rewind(context, entity)
    listed_facts = {"entity": entity.called, "author": author, "reason": reason, **facts}
    command = nullcontext() if is_only_compared else told_command(app, phase.lower(), entity)
    with command, under_lease(app, entity, phase, listed_facts) as attempt:
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
    return Replayed(plan, difference, version)


def rewind_context(
    app: App, entity: Entity, interruption: Interruption | None = None, *, author: str | None = None
) -> ProcessingContext:
    """Return the context in which an entity's table is rewound; records are written in the author's name.

    Raises:
        LakeMoved: The slices were processed in another folder, of which the manifest has the records.
    """
    target = target_contexts(app, interruption=interruption)(app.workspace)
    context = processing_context(target, entity, ProcessingOptions())
    chain = context.chain(entity)
    moved = moved_lake_error(chain, lambda: {each.name for each in list_slices(chain.bronze, app.lake)})
    if moved is not None:
        raise moved
    return context if author is None else replace(context, ledger=app.ledger_of(app.store, author))


@contextmanager
def under_lease(app: App, entity: Entity, phase: str, facts: Mapping[str, Any]) -> Iterator[Attempt]:
    """Hold the lease on an entity's table for a rewind that the history of runs lists.

    `Lake.check_commit` raises an error once the lease is lost.

    Raises:
        LeaseHeld: Another run writes the table.
        StorageUnavailable: The storage failed in the block.
    """
    target = target_contexts(app)(app.workspace)
    resources = frozenset({table_resource(entity.places(app.project.lake).silver)})
    with (
        listed(app, f"{phase.lower()} {entity.called}", phase, facts) as attempt,
        hold_leases(target, resources),
        without_id_warnings(app.lake),
    ):
        yield attempt


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
        facts: What tells one of an entity from another; an entry that is not given is None.
        author: Who records it.
    """
    run = end_rewind(app, entity, author=author)
    if run is None or run.phase != phase:
        return None
    return (
        run if all((run.facts.get(name) or None) == (each or None) for name, each in facts.items()) else None
    )


def ended_words(run: Run) -> str:
    """Return that a run has done what was asked for, although its process died before it was recorded."""
    return f"run {run.run_id} had done this before its process ended: it is recorded now"


def check_settled(app: App, entity: Entity) -> None:
    """Raise an error if a rewind of an entity's table has begun and is not recorded.

    Raises:
        LeaseHeld: It goes on.
        UsageError: Its process has ended.
    """
    rewind = chain_of(app, entity).rewind
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
        attempt: Is told that it has begun, and whether its commit landed.

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
        ours = storage_error(error, job)
        if ours is None:
            raise
        raise ours from error
    finally:
        if attempt.is_landed:
            status = "SUCCESS_WITH_ERRORS"
        refused = {} if status == "SUCCESS" or attempt.is_begun else {"refused": True}
        app.journal.finish_run(run, status, finished=app.clock(), **refused)

"""Take the steps that are due, and record what a person decides of the others.

Each step is taken by the use case that does the same for a person; before it is taken, its entity is observed
again, and a step that is not due any more is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakewright.due.facts import Entity, Grant, RecordState, Slice
from lakewright.due.make_plan import make_plan
from lakewright.due.plan import Action, Code, Plan, Step
from lakewright.errors import Fault, LakewrightError, UsageError
from lakewright.manifest.item import is_changed
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase
from lakewright.run.request import JobRequest
from lakewright.slices.context import ProcessingOptions
from lakewright.slices.discover import item_id, list_bronze
from lakewright.slices.other_runs import run_taking
from lakewright.slices.pending import find_pending
from lakewright.target_contexts import target_contexts
from lakewright.targets.entity.work import processing_context
from lakewright.usecases.due.observe import observe
from lakewright.usecases.operate_items import accept_item, release_item, skip_item
from lakewright.usecases.placed import chain_of
from lakewright.usecases.process_slices import process_slices
from lakewright.usecases.rebuild_table import rebuild_table
from lakewright.usecases.rewinding import end_rewind
from lakewright.usecases.slice_times.declared_times import late_slices_of
from lakewright.usecases.undo_slice import undo_slice

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.plan.other_runs import OtherRun
    from lakewright.run.result import RunResult

__all__ = ["Applied", "Taken", "apply_plan", "plan_of_project"]

REASON = "apply"
"""The reason of records that are made because they are due."""

NO_EFFECT = "no_effect"
"""The code of the fault of a step that was taken and changed nothing that is observed."""

MOST_PLANS = 20
"""Plans that are taken one after the other; each takes up what became due by the one before."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A step that was taken.

    Attributes:
        fault: Why it failed; None if it is done.
    """

    step: Step
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done of a plan, and the plan of what is left."""

    taken: tuple[Taken, ...]
    left: Plan

    @property
    def failed(self) -> tuple[Taken, ...]:
        """The steps that failed."""
        return tuple(each for each in self.taken if each.fault is not None)

    @property
    def needs_person(self) -> bool:
        """Whether something is left that a person must do."""
        return bool(self.left.asked)


def plan_of_project(app: App, names: Iterable[str] = (), grants: frozenset[Grant] = frozenset()) -> Plan:
    """Return what is due in a project; nothing is written, and Spark is not started.

    Args:
        app: The project.
        names: Entities; all that are enabled unless given.
        grants: What steps may do that they otherwise wait with.

    Raises:
        SpecError: There is no such entity.
    """
    return make_plan(observe(app, names), grants)


def apply_plan(
    app: App,
    run: Callable[[JobRequest], RunResult],
    names: Sequence[str] = (),
    *,
    grants: frozenset[Grant] = frozenset(),
    author: str,
    on_step: Callable[[Step], None] = lambda _: None,
) -> Applied:
    """Take the steps that need nobody, until none is left; return what was done.

    A step that fails is not taken again; the steps of other entities go on.

    Args:
        app: The project.
        run: Runs a job.
        names: Entities; all that are enabled unless given.
        grants: What steps may do that they otherwise wait with.
        author: Who applies it.
        on_step: Receives each step before it is taken.

    Raises:
        SpecError: There is no such entity.
    """
    taker = _Taker(app, run, grants, author, on_step)
    plan = plan_of_project(app, names, grants)
    for _ in range(MOST_PLANS):
        is_done = taker.take(plan)
        plan = plan_of_project(app, names, grants)
        if not is_done:
            break
    return Applied(tuple(taker.taken), plan)


@dataclass(slots=True)
class _Taker:
    """Takes steps; for the attributes see `apply_plan`.

    Attributes:
        taken: The steps that were taken.
    """

    app: App
    run: Callable[[JobRequest], RunResult]
    grants: frozenset[Grant]
    author: str
    on_step: Callable[[Step], None]
    taken: list[Taken] = field(default_factory=list)

    def take(self, plan: Plan) -> bool:
        """Take the ready steps of a plan; return whether one is done."""
        is_done = False
        for planned in plan.ready:
            due = None if self._has_failed(planned) else self._still_due(planned)
            if due is None:
                continue
            step, entity = due
            self.on_step(step)
            fault = self._fault_of(step, entity)
            self.taken.append(Taken(step, fault))
            is_done |= fault is None
        return is_done

    def _fault_of(self, step: Step, entity: Entity) -> Fault | None:
        """Take a step; return why it failed. A run may fail by something else than the slices of the step."""
        if any(each.step == step for each in self.taken):
            return Fault(f"{step.subject.text}: the step was taken and is still due", code=NO_EFFECT)
        try:
            self._take(step, entity)
        except LakewrightError as error:
            held = (each for now in observe(self.app, [entity.name]).entities for each in now.table.slices)
            return None if step.slices and set(step.slices) <= set(held) else error.as_fault()
        return None

    def _has_failed(self, step: Step) -> bool:
        """Return whether a step of the same subject has failed, after which others may not be right."""
        return any(
            each.fault is not None and each.step.subject.name == step.subject.name for each in self.taken
        )

    def _still_due(self, planned: Step) -> tuple[Step, Entity] | None:
        """Return a step as it is due now, and its entity; None if it is not due any more."""
        facts = observe(self.app, [planned.subject.name])
        now = (step for step in make_plan(facts, self.grants).ready if step.id == planned.id)
        return next(((step, entity) for step in now for entity in facts.entities), None)

    def _take(self, step: Step, entity: Entity) -> None:
        """Take a step of an entity as it is now.

        Raises:
            LakewrightError: It failed; what had begun is as the use case leaves it.
        """
        name, part = step.subject.name, step.subject.part
        if step.action is Action.RECORD and step.reason.code is Code.SUPERSEDED:
            self._leave_out(step, entity)
        elif step.action is Action.RECORD:
            self._recover(name)
        elif step.action is Action.RELEASE and part:
            release_item(self.app, f"{name}/{part}", author=self.author, reason=REASON)
        elif step.action is Action.RELEASE:
            end_rewind(self.app, self.app.project.entity(name), author=self.author)
        elif step.action is Action.FORWARD:
            self._forward(step, entity)
        else:
            self._replay(step, entity)

    def _recover(self, name: str) -> None:
        """Record what the log of a table shows and the manifest lacks."""
        entity = self.app.project.entity(name)
        self.app.make_store()
        context = target_contexts(self.app)(self.app.workspace)
        find_pending(processing_context(context, entity, ProcessingOptions()), entity)

    def _leave_out(self, step: Step, entity: Entity) -> None:
        """Record that slices change nothing, as a later one has replaced all rows."""
        held = {each.name for each in entity.table.slices}
        for each in step.slices:
            leave = accept_item if each.name in held else skip_item
            leave(self.app, f"{step.subject.name}/{each.name}", author=self.author, reason=REASON)

    def _forward(self, step: Step, entity: Entity) -> None:
        records = (entity.records.get(each.name) for each in step.slices)
        if any(record is not None and record.state is RecordState.PROCESSED for record in records):
            self._rebuild(step)  # the manifest has them, and the table has lost them
            return
        self._apply(step, _runs(self.app, step))

    def _apply(self, step: Step, runs: Sequence[OtherRun | None]) -> None:
        """Process the slices of a step by the runs of jobs that take them, or without a job if none does."""
        entity = step.subject.name
        self._make_ready(entity, [each.name for each in step.slices])
        for run in runs:
            self.app.begin_run()
            if run is None:
                result = process_slices(self.app, entity, permissions=self._permissions)
                if result.error is not None:
                    raise result.error
                continue
            arguments = tuple(f"{key}={text}" for key, text in run.parameters)
            self.run(JobRequest(run.job, Phase.BUILD, arguments, permissions=self._permissions)).check()

    @property
    def _permissions(self) -> Permissions:
        return Permissions(
            allow_data_loss=Grant.DATA_LOSS in self.grants, allow_backdated=Grant.BACKDATED in self.grants
        )

    def _replay(self, step: Step, entity: Entity) -> None:
        """Take a step that goes back: by a rebuild beside the table, or by undoing what is after its base."""
        name = step.subject.name
        undone = [each for each in entity.table.held[step.base :] if isinstance(each, Slice)]
        if step.reason.code in (Code.REDECLARED, Code.FOREIGN_ROWS) or not undone:
            self._rebuild(step)
        elif step.reason.code is Code.OTHER_ORDER and len(undone) == len(step.slices) + 1:
            self._undo(name, *step.removes, is_requeued=False)
        elif (late := self._placed(step, entity)) is not None:
            self._rebuild(step, include=[late])
        else:
            runs = _runs(self.app, step)  # refused before anything is done
            self._undo(name, undone[0].name, is_requeued=True)
            for removed in step.removes:
                skip_item(self.app, f"{name}/{removed}", author=self.author, reason=REASON)
            self._apply(step, runs)

    def _placed(self, step: Step, entity: Entity) -> str | None:
        """Return the late slice that a rebuild puts in its place, if that is all and it has one."""
        held = {each.name for each in entity.table.slices}
        new = [each.name for each in step.slices if each.name not in held]
        if step.reason.code is not Code.LATE_SLICE or len(new) != 1 or step.removes:
            return None
        declared = self.app.project.entity(step.subject.name)
        if not late_slices_of(self.app, declared, (new[0],)).is_placed:
            return None
        self._make_ready(step.subject.name, new)
        return new[0]

    def _make_ready(self, entity: str, names: Sequence[str]) -> None:
        """Make slices ready as they are now that have failed, or that changed while they waited."""
        ledger = self.app.ledger_of(self.app.store, self.author)
        chain = chain_of(self.app, self.app.project.entity(entity), ledger)
        present = {
            item_id(each.path): each.fingerprint for each in list_bronze(chain.bronze, chain.lake).slices
        }
        wanted = [item_id(f"{chain.bronze}/{name}") for name in names]
        for item in chain.store.read(wanted).values():
            now = present.get(item.item_id)
            if item.failed is not None:
                ledger.resolve(item.item_id, REASON, fingerprint=now)
            elif now is not None and item.fingerprint is not None and is_changed(item.fingerprint, now):
                may_be_late = bool(item.new is not None and item.new.note.get("allow_late"))
                ledger.requeue(item.item_id, REASON, fingerprint=now, allow_late=may_be_late)

    def _undo(self, entity: str, name: str, *, is_requeued: bool) -> None:
        self.app.begin_run()
        undo_slice(
            self.app,
            entity,
            name,
            is_requeued=is_requeued,
            is_over_foreign=Grant.FOREIGN in self.grants,
            author=self.author,
            reason=REASON,
        )

    def _rebuild(self, step: Step, include: Sequence[str] = ()) -> None:
        self.app.begin_run()
        rebuild_table(
            self.app,
            step.subject.name,
            include=include,
            is_over_foreign=Grant.FOREIGN in self.grants or step.reason.code is Code.FOREIGN_ROWS,
            author=self.author,
            reason=REASON,
        )


def _runs(app: App, step: Step) -> list[OtherRun | None]:
    """Return the runs that take the slices of a step, one after the other; None for what no job takes.

    Raises:
        UsageError: A job needs a parameter that nothing tells.
    """
    runs: list[OtherRun | None] = []
    for each in step.slices:
        run = run_taking(app.project, step.subject.name, each.name)
        if run is not None and run.unknown:
            raise UsageError(
                f"{run.job} takes {each.name} of {step.subject.name}, and needs {', '.join(run.unknown)}",
                remedy="Run it with a value for each, or declare `slices` at the target of the entity.",
            )
        if not runs or _instance(runs[-1]) != _instance(run):
            runs.append(run)
    return runs


def _instance(run: OtherRun | None) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    return None if run is None else (run.job, run.parameters)

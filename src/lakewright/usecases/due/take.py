"""Take the steps that are due, and record what a person decides of the others.

Each step is taken by the use case that does the same for a person; before it is taken, its entity is observed
again, and a step that is not due any more is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from lakewright.due.facts import Check, Entity, Kind, Output, RecordState, Subject
from lakewright.due.plan import Action, Code, Plan, State, Step
from lakewright.due.planner import make_plan
from lakewright.errors import Fault, LakewrightError, UsageError
from lakewright.manifest.item import is_changed
from lakewright.manifest.store import Write
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase
from lakewright.run.builds import recording
from lakewright.run.request import JobRequest
from lakewright.slices.context import ProcessingOptions
from lakewright.slices.discovery import item_id, list_bronze
from lakewright.slices.other_runs import processing_jobs, run_taking
from lakewright.slices.pending_slices import find_pending
from lakewright.spec.grants import Grant
from lakewright.spec.reason import reasons_text
from lakewright.targets.entity.work import processing_context
from lakewright.usecases.due.build_marks import part_of
from lakewright.usecases.due.job_runs import want_builds
from lakewright.usecases.due.last_builds import RecordedBuilds
from lakewright.usecases.due.observe import observe, settle
from lakewright.usecases.due.observe_outputs import OutputObserver
from lakewright.usecases.operate_items import accept_item, release_item, skip_item
from lakewright.usecases.process_slices import process_slices
from lakewright.usecases.rewinding import end_rewind, replay_table

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.run.result import RunResult
    from lakewright.slices.other_runs import OtherRun


REASON = "apply"
"""The reason of records that are made because they are due."""

NO_EFFECT = "no_effect"
"""The code of the fault of a step that was taken and changed nothing that is observed."""

UNDONE = "undone"
"""The code of the fault of a build that its run has not come to."""

MOST_PLANS = 20
"""Plans that are taken one after the other; each takes up what became due by the one before."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A step that was taken.

    Attributes:
        fault: Why it failed; None if it is done.
        slices: The metrics of each slice that it applied without the run of a job.
    """

    step: Step
    fault: Fault | None = None
    slices: tuple[Mapping[str, Any], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the step as `apply` prints it: its id, whether it is done, and its error."""
        error = None if self.fault is None else self.fault.as_json()
        return {"id": self.step.id, "is_done": error is None, "error": error}


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
        names: Entities and targets; all unless given.
        grants: What steps may do that they otherwise wait with.

    Raises:
        SpecError: There is no such entity or target.
    """
    return make_plan(observe(app, names), grants | _configured(app))


def _configured(app: App) -> frozenset[Grant]:
    """Return the grants that the project gives always."""
    return frozenset(app.project.apply.allow)


def apply_plan(
    app: App,
    run: Callable[[JobRequest], RunResult],
    names: Sequence[str] = (),
    *,
    grants: frozenset[Grant] = frozenset(),
    author: str,
    on_plan: Callable[[Plan], None] = lambda _: None,
    on_step: Callable[[Step], None] = lambda _: None,
) -> Applied:
    """Take the steps that need nobody, until none is left; return what was done.

    A step that fails is not taken again, nor what follows it; others go on.

    Args:
        app: The project.
        run: Runs a job.
        names: Entities and targets; all unless given.
        grants: What steps may do that they otherwise wait with.
        author: Who applies it.
        on_plan: Receives each plan before its steps are taken.
        on_step: Receives each step before it is taken.

    Raises:
        SpecError: There is no such entity or target.
    """
    grants |= _configured(app)
    taker = _Taker(app, run, frozenset(names), grants, author, on_step)
    plan = plan_of_project(app, names, grants)
    for _ in range(MOST_PLANS):
        on_plan(plan)
        is_done, before = taker.take(plan), plan
        plan = plan_of_project(app, names, grants)
        taker.add_settled(before, plan)
        if not is_done:
            break
    if taker.taken:
        settle(app)
    return Applied(tuple(taker.taken), plan)


@dataclass(slots=True)
class _Taker:
    """Takes steps; for the attributes see `apply_plan`.

    Attributes:
        taken: The steps that were taken.
        plan: The plan whose steps are being taken.
        before: The number of steps that were taken before this plan.
        faults: Why entities and instances of targets failed in runs that took slices.
    """

    app: App
    run: Callable[[JobRequest], RunResult]
    names: frozenset[str]
    grants: frozenset[Grant]
    author: str
    on_step: Callable[[Step], None]
    taken: list[Taken] = field(default_factory=list)
    plan: Plan = field(default_factory=lambda: Plan(()))
    before: int = 0
    faults: dict[Subject, Fault] = field(default_factory=dict)

    def take(self, plan: Plan) -> bool:
        """Take the ready steps of a plan; return whether one is done."""
        self.before, self.plan = len(self.taken), plan
        for planned in plan.ready:
            if self._is_settled(planned):
                continue
            if planned.reason.code is Code.REFRESH and any(each.step == planned for each in self.taken):
                continue  # it is due at all times
            if planned.action is Action.RECORD and planned.subject.kind is Kind.TARGET:
                self._record_builds(plan)
            elif planned.subject.kind is Kind.TARGET:
                self._build(planned, plan)
            else:
                for step, entity in self._due_now([planned]):
                    if isinstance(entity, Entity):
                        self.on_step(step)
                        self.taken.append(self._taken(step, entity))
        return any(each.fault is None for each in self.taken[self.before :])

    def _is_settled(self, step: Step) -> bool:
        """Return whether a step of the plan was taken, or must not be because one before it failed."""
        now = self.taken[self.before :]
        return any(each.step.id == step.id for each in now) or self._has_failed(step)

    def add_settled(self, before: Plan, after: Plan) -> None:
        """Add the ready steps of a plan that runs took with others: a job has several targets."""
        known = {each.step.id for each in self.taken} | {step.id for step in after.steps}
        settled = [step for step in before.ready if step.id not in known]
        self.taken += [Taken(step, self.faults.get(_whole(step))) for step in settled]

    def _taken(self, step: Step, entity: Entity) -> Taken:
        """Take a step. A run may fail by something else than the slices of the step."""
        if (fault := self._repeated(step)) is not None:
            return Taken(step, fault)
        self.faults.pop(_whole(step), None)
        try:
            slices = self._take(step, entity)
            return Taken(step, self.faults.get(_whole(step)), slices)
        except LakewrightError as error:
            held = (each for now in observe(self.app, [entity.name]).entities for each in now.table.slices)
            is_done = step.slices and set(step.slices) <= set(held)
            return Taken(step, None if is_done else self.faults.get(_whole(step), error.as_fault()))

    def _repeated(self, step: Step) -> Fault | None:
        """Return the fault of a step that was taken and is still due; None if it was not taken."""
        if all(each.step != step for each in self.taken):
            return None
        return Fault(f"{step.subject.text}: the step was taken and is still due", code=NO_EFFECT)

    def _has_failed(self, step: Step) -> bool:
        """Return whether a step has failed that this one follows, or one of the same table or instance."""
        for each in self.taken:
            failed = each.step.subject
            is_same = failed == step.subject or (
                failed.name == step.subject.name and failed.kind is step.subject.kind is Kind.ENTITY
            )
            if each.fault is not None and (is_same or each.step.id in step.after):
                return True
        return False

    def _record_builds(self, plan: Plan) -> None:
        """Record the builds that are in the logs of tables only, of all targets at once."""
        due = [each for each in plan.ready if each.action is Action.RECORD]
        steps = [each for each in due if each.subject.kind is Kind.TARGET]
        for step in steps:
            self.on_step(step)
        self.app.make_store()
        if builds := OutputObserver(self.app).logged:
            self.app.store.write(Write(puts=recording(builds.values())))
        self.taken += [Taken(step, self._repeated(step)) for step in steps]

    def _build(self, planned: Step, plan: Plan) -> None:
        """Build an instance of a target, with others of the same instance of its job that come next."""
        rest = plan.ready[plan.ready.index(planned) :]
        alike = takewhile(lambda each: each.action is planned.action, rest)
        together = [each for each in alike if each.subject.part == planned.subject.part]
        found = [(step, own) for step, own in self._due_now(together) if not isinstance(own, Entity)]
        if not found or found[0][0].id != planned.id:
            return
        first, due = found[0][1], list[tuple[Step, Output | Check]]()
        for step, output in found:
            if (output.job, output.instance) == (first.job, first.instance):
                self.on_step(step)
                if (fault := self._repeated(step)) is not None:
                    self.taken.append(Taken(step, fault))
                else:
                    due.append((step, output))
        faults = self._run_builds(due) if due else {}
        self.taken += [Taken(step, faults.get(output.subject)) for step, output in due]

    def _run_builds(self, due: Sequence[tuple[Step, Output | Check]]) -> dict[Subject, Fault]:
        """Build or check targets of one instance of a job by one run; return why some failed."""
        names, output = tuple(each.subject.name for _, each in due), due[0][1]
        is_check = due[0][0].action is Action.CHECK
        request = JobRequest(
            output.job,
            Phase.VERIFY if is_check else Phase.BUILD,
            tuple(f"{name}={text}" for name, text in output.instance.items()),
            is_alone=is_check,
            targets=names,
            dirty=tuple(map(re.escape, names)),
            keep_going=True,
            permissions=self._permissions,
            settles=False,
        )
        self.app.begin_run()
        try:
            result = self.run(request)
        except LakewrightError as error:
            return {each.subject: error.as_fault() for _, each in due}
        return self._faults_of(result)

    def _faults_of(self, result: RunResult) -> dict[Subject, Fault]:
        """Return why entities and instances of targets failed or were not done: the first reason of each."""
        entities, found = self.app.project.processed_entities, dict[Subject, Fault]()
        for instance in result.instances:
            for each in (target for phase in instance.phases for target in phase.targets):
                if each.is_undone or each.status.is_failure:
                    fault = each.error or Fault(f"{each.name}: {reasons_text(each.reasons)}", code=UNDONE)
                    own = Subject(each.name, part_of(instance.parameters), Kind.TARGET)
                    found.setdefault(Subject(entities[each.name]) if each.name in entities else own, fault)
        return found

    def _due_now(self, planned: Sequence[Step]) -> list[tuple[Step, Entity | Output | Check]]:
        """Return those of some steps that are due by themselves as things are now, with the facts of each."""
        facts = observe(self.app, [each.subject.name for each in planned])
        found: list[tuple[Step, Entity | Output | Check]] = []
        for name in dict.fromkeys(each.subject.name for each in planned):
            entities = tuple(each for each in facts.entities if each.name == name)
            outputs = tuple(each for each in facts.outputs if each.subject.name == name)
            checks = tuple(each for each in facts.checks if each.subject.name == name)
            alone = replace(facts, entities=entities, outputs=outputs, checks=checks)
            steps = {step.id: step for step in make_plan(alone, self.grants).ready}
            own: dict[tuple[Subject, bool], Entity | Output | Check] = {
                **{(Subject(each.name), False): each for each in entities},
                **{(each.subject, False): each for each in outputs},
                **{(each.subject, True): each for each in checks},
            }
            for each in planned:
                key = (_whole(each), each.action is Action.CHECK)
                if each.subject.name == name and each.id in steps and key in own:
                    found.append((steps[each.id], own[key]))
        return found

    def _take(self, step: Step, entity: Entity) -> tuple[Mapping[str, Any], ...]:
        """Take a step of an entity as it is now; return the metrics of slices applied without a job.

        Raises:
            LakewrightError: It failed; what had begun is as the use case leaves it.
        """
        name, part = step.subject.name, step.subject.part
        if step.action is Action.RECORD and step.reason.code in (Code.SUPERSEDED, Code.LATE_SKIPPED):
            self._make_ready(step)
            self._leave_out(step, entity)
        elif step.action is Action.RECORD:
            self._recover(name)
        elif step.action is Action.RELEASE and part:
            release_item(self.app, f"{name}/{part}", author=self.author, reason=REASON)
        elif step.action is Action.RELEASE:
            end_rewind(self.app, self.app.project.entity(name), author=self.author)
        elif step.action is Action.FORWARD:
            return self._forward(step, entity)
        else:
            return self._replay(step, entity)
        return ()

    def _recover(self, name: str) -> None:
        """Record what the log of a table shows and the manifest lacks."""
        entity = self.app.project.entity(name)
        self.app.make_store()
        context = self.app.context()
        find_pending(processing_context(context, entity, ProcessingOptions()), entity)

    def _leave_out(self, step: Step, entity: Entity) -> None:
        """Record that slices change nothing: a later one has replaced all rows, or they are too late."""
        held = {each.name for each in entity.table.slices}
        for each in step.slices:
            leave = accept_item if each.name in held else skip_item
            leave(self.app, f"{step.subject.name}/{each.name}", author=self.author, reason=REASON)

    def _forward(self, step: Step, entity: Entity) -> tuple[Mapping[str, Any], ...]:
        records = filter(None, (entity.records.get(each.name) for each in step.slices))
        if any(each.state is RecordState.PROCESSED for each in records):
            return self._replay(step, entity)  # the manifest has them, and the table has lost them
        return self._apply(step)

    def _apply(self, step: Step) -> tuple[Mapping[str, Any], ...]:
        """Process the slices of a step by the runs of jobs that take them, or without a job if none does.

        Returns the metrics of those without a job.

        A run also takes the slices of other steps whose next run it is. It leaves out the other entities of
        its job: their slices wait, or nobody has asked for them.
        """
        runs, entity = _runs(self.app, step), Subject(step.subject.name)
        others = list(self._others(step, {run.job for run in runs if run is not None}))
        alone, announced = tuple[Mapping[str, Any], ...](), set[str]()
        self._make_ready(step)
        for run in runs:
            self.app.begin_run()
            if run is None:
                processed = process_slices(self.app, entity.name, permissions=self._permissions)
                if processed.error is not None:
                    raise processed.error
                alone += tuple(each.as_json() for each in processed.slices)
                continue
            along = [(each, rest) for each, rest in others if rest and _instance(rest[0]) == _instance(run)]
            for each, rest in along:
                rest.pop(0)
                if each.id not in announced:
                    self.on_step(each)
                    announced.add(each.id)
                    self._make_ready(each)
            result = self.run(self._request(run, {entity.name, *(each.subject.name for each, _ in along)}))
            faults = self._faults_of(result)
            self.faults |= faults
            ended = {each.id for each, rest in along if not rest or _whole(each) in faults}
            self._add_ended(ended, faults)
            if entity in faults:
                result.check()
            others = [(each, rest) for each, rest in others if each.id not in ended]
        return alone

    def _add_ended(self, ended: Collection[str], faults: Mapping[Subject, Fault]) -> None:
        """Add the steps that a run took with another one, and those of targets that it tried in vain."""
        for each in self.plan.ready:
            fault = faults.get(_whole(each))
            is_tried = each.subject.kind is Kind.TARGET and fault is not None and fault.code != UNDONE
            if each.id in ended or (is_tried and each.action is Action.BUILD):
                self.taken.append(Taken(each, fault))

    def _others(self, step: Step, jobs: Collection[str]) -> Iterator[tuple[Step, list[OtherRun | None]]]:
        """Yield the plan's other steps left that process slices by some jobs, with the runs of them."""
        for each in self.plan.ready:
            name = each.subject.name
            if each.action is not Action.FORWARD or name == step.subject.name or self._is_settled(each):
                continue
            if any(job.name in jobs for job, *_ in processing_jobs(self.app.project, name)):
                with suppress(UsageError):  # the step itself reports it
                    yield each, _runs(self.app, each)

    def _request(self, run: OtherRun, entities: Collection[str]) -> JobRequest:
        """Return the request of a run that takes slices of some entities, without what must not run.

        That are other entities, what waits or needs a person, and what has appended its rows. Where targets
        are named, and no parameter makes an instance of them due with its slices, others are left out, too.
        """
        job = self.app.project.job(run.job)
        names = job.target_names(self.app.project.job_scope(job))
        processed, part = self.app.project.processed_entities, part_of(dict(run.parameters))
        held = {step.subject for step in self.plan.steps if step.state is not State.READY}
        left_out = {
            *RecordedBuilds(self.app, self.app.journal).appended(job, dict(run.parameters)),
            *(name for name in names if processed.get(name) not in {None, *entities}),
            *(name for name in names if Subject(name, part, Kind.TARGET) in held),
        }
        if self.names and not job.parameters:
            left_out |= {name for name in names if name not in processed} - self.names
        return JobRequest(
            run.job,
            Phase.BUILD,
            tuple(f"{key}={text}" for key, text in run.parameters),
            targets=tuple(name for name in names if name not in left_out) if left_out else (),
            keep_going=True,
            permissions=self._permissions,
            settles=False,
        )

    @property
    def _permissions(self) -> Permissions:
        return Permissions(
            allow_data_loss=Grant.DATA_LOSS in self.grants,
            allow_backdated=Grant.BACKDATED in self.grants,
            allow_deletes=Grant.DELETES in self.grants,
        )

    def _replay(self, step: Step, entity: Entity) -> tuple[Mapping[str, Any], ...]:
        self._want(step, entity)
        self.app.begin_run()
        permissions = self._permissions
        return replay_table(
            self.app, step, entity, permissions=permissions, author=self.author, reason=REASON
        )

    def _want(self, step: Step, entity: Entity) -> None:
        """Record what is to be built with the slices that a replay takes instead of a run of their job."""
        records = entity.records.items()
        known = {each.name for each in entity.table.slices} | entity.unclaimed.keys()
        known |= {name for name, record in records if record.state is RecordState.PROCESSED}
        new = replace(step, slices=tuple(each for each in step.slices if each.name not in known))
        for run in _runs(self.app, new):
            if run is not None and run.parameters:
                want_builds(self.app, self._request(run, ()))

    def _make_ready(self, step: Step) -> None:
        """Make slices of a step ready as they are now that have failed, or changed while they waited."""
        ledger = self.app.ledger_of(self.app.store, self.author)
        chain = self.app.chain(self.app.project.entity(step.subject.name), ledger)
        present = {each.item_id: each.fingerprint for each in list_bronze(chain.folder, chain.lake).slices}
        wanted = [item_id(chain.folder.place(each.name)) for each in step.slices]
        for item in chain.store.read(wanted).values():
            now = present.get(item.item_id)
            if item.failed is not None:
                ledger.resolve(item.item_id, REASON, fingerprint=now)
            elif item.processed:
                continue  # its step goes back, and is taken by itself
            elif now is not None and item.fingerprint is not None and is_changed(item.fingerprint, now):
                ledger.requeue(item.item_id, REASON, fingerprint=now, allow_late=item.may_be_late)


def _whole(step: Step) -> Subject:
    """Return what a step is about: the instance of a target, or the entity."""
    return step.subject if step.subject.kind is Kind.TARGET else Subject(step.subject.name)


def _runs(app: App, step: Step) -> list[OtherRun | None]:
    """Return the runs that take the slices of a step, one after the other; None for what no job takes.

    Raises:
        UsageError: A job needs a parameter whose value is unknown.
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

"""Plan a job: expand its arguments to instances, observe their targets, build the plan. Nothing is written.

With `--resume` the plan has only the steps that are left of what runs were to do. Targets are observed
several at once: an object store answers a request after some hundredths of a second, and a table that is read
for the first time costs about six.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles"; resuming is Lakewright's own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault, LakewrightError, NotInstalled, SpecError, StorageUnavailable
from lakewright.errors.phrase import Phrase
from lakewright.lake.lake import Lake
from lakewright.lake.spark_errors import query_failure
from lakewright.lake.storage_errors import DAMAGED, failed_observation, storage_error
from lakewright.manifest.journal import Journal
from lakewright.plan.dirtiness import BuildPolicy, Dirtiness
from lakewright.plan.graph import Node
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.plan.planner import Candidate, Instance, PlanRequest, build_plan, selectables
from lakewright.plan.reason import Code
from lakewright.plan.resource import Resource
from lakewright.plan.selectors import select
from lakewright.plan.status import Planned
from lakewright.plan.step import Plan, Step
from lakewright.run.builds import LastBuilds
from lakewright.run.kinds import registry
from lakewright.run.plan_warnings import lost_rows, missing_input, rows_added_again, unknown_column
from lakewright.run.request import JobRequest
from lakewright.run.wants import read_wants, steps_left
from lakewright.spec.arguments import expand_arguments
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import Value, render_value
from lakewright.spec.models.job import Job
from lakewright.spec.project import Project
from lakewright.spec.reason import Reason
from lakewright.targets.context import Context
from lakewright.targets.definition import definition_of
from lakewright.targets.lease import table_resource
from lakewright.targets.target import Target
from lakewright.targets.writing import ADDED_ALREADY
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from lakewright.plan.last_build import LastBuild
    from lakewright.plan.step import StepKey
    from lakewright.targets.definition import BuildDefinition


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """The plan of a run of a job, with all that it follows from.

    Attributes:
        journal: The history of earlier runs.
        context: Makes the context of an instance's targets from its workspace.
        last_builds: Reports the state of the builds of instances.
    """

    project: Project
    lake: Lake
    journal: Journal
    request: JobRequest
    context: Callable[[Workspace], Context]
    last_builds: LastBuilds = field(default_factory=LastBuilds)

    @property
    def job(self) -> Job:
        """The job.

        Raises:
            SpecError: There is no such job, or it is wrong.
        """
        return self.project.job(self.request.job)

    def plan(self) -> Plan:
        """Return what a run would do; nothing is written.

        Raises:
            SpecError: The job, its arguments or a definition are wrong, or targets form a cycle.
        """
        return self.planned()[0]

    def planned(self) -> tuple[Plan, Contexts]:
        """Return the plan of a run of the job, and the contexts to execute it in; see `plan`."""
        job, contexts = self.job, self._contexts()
        if not contexts.parameters:
            log.warning("the arguments of %s expand to no instance, so there is nothing to run", job.name)
        names = job.target_names(self._scope)
        # The steps that runs of these instances have left.
        left = steps_left(self.journal, self.project.name, job.name, contexts.parameters)
        observer = _Observer(contexts, names, job, self.last_builds, left if self.request.retry else None)
        request = self.request
        plan_request = PlanRequest(
            phases=request.phases,
            executions=job.executions,
            targets=self._select_targets(request.targets, observer) if request.targets else None,
            dirty=request.dirty_patterns(observer.targets),
            is_forced=request.force,
            only=left if request.resume else None,
            keep_going=request.keep_going,
        )
        # A disk answers at once, and threads would take turns.
        instances = observer.instances()
        if self.lake.storage.used:
            instances = observed_ahead(instances, plan_request.targets)
        with self.lake.observing(), closing(instances) as found:
            plan = build_plan(self.project.name, job.name, found, plan_request, count=len(contexts))
        observer.check_faults()
        return name_other_jobs(plan, self.project), contexts

    def nodes(self) -> dict[str, Node]:
        """Return what the targets of the first instance require and provide in the request's phase.

        Raises:
            SpecError: The arguments or a definition are wrong.
        """
        job, contexts = self.job, self._contexts()
        observer = _Observer(contexts, job.target_names(self._scope), job, LastBuilds())
        found = observer.instance(0).candidates if contexts.parameters else ()
        observer.check_faults()
        phase = self.request.phase
        return {each.name: each.nodes[phase] for each in found if phase in each.nodes}

    @property
    def _scope(self) -> Scope:
        return self.project.job_scope(self.job, is_forced=self.request.force)

    def instances(self) -> list[dict[str, str]]:
        """Return the parameters of each instance, as texts.

        Raises:
            SpecError: The job or its arguments are wrong.
        """
        return [{name: render_value(value) for name, value in each.items()} for each in self._expanded()]

    def _expanded(self) -> list[dict[str, Value]]:
        found = expand_arguments(self.job.parameters, self.request.arguments, self._scope)
        return [dict(values) for values in found]

    def _contexts(self) -> Contexts:
        job, instances = self.job, self._expanded()

        def make(index: int) -> Context:
            within = self.project.job_scope(job, instances[index], is_forced=self.request.force)
            return self.context(Workspace(self.project.within(within), within, self.lake))

        texts = [{name: render_value(value) for name, value in values.items()} for values in instances]
        return Contexts(texts, make)

    def _select_targets(self, texts: Sequence[str], observer: _Observer) -> frozenset[str]:
        wants = read_wants(self.journal, self.project.name, self.request.job)
        undone = frozenset(name for want in wants for _, name in want.left)
        chosen: frozenset[str] = frozenset()
        for instance in observer.instances():
            chosen |= select(texts, selectables(instance), undone=undone)
        return chosen


@dataclass(slots=True)
class _Observer:
    """Observes the targets of instances and collects the faults of their definitions.

    Attributes:
        targets: Names of the targets, in the order written.
        job: The job.
        last_builds: Reports the state of the builds of the instances.
        left: The steps that earlier attempts have left; None if this run is no further one.
        faults: Faults that show only when expressions are evaluated.
        definitions: What is declared of the rows of targets, by their names.
    """

    contexts: Contexts
    targets: Sequence[str]
    job: Job
    last_builds: LastBuilds
    left: frozenset[StepKey] | None = None
    faults: dict[Fault, None] = field(default_factory=dict)
    definitions: dict[str, BuildDefinition | None] = field(default_factory=dict)

    def instances(self) -> Generator[Instance, None, None]:
        """Yield each instance; its context is closed when the next one is requested.

        Targets are observed when the planner asks for it.
        """
        for index in range(len(self.contexts)):
            yield self.instance(index)
            if len(self.contexts) > 1:
                self.contexts.release(index)

    def instance(self, index: int) -> Instance:
        """Return one instance."""
        parameters = self.contexts.parameters[index]
        context = self.contexts.of(index)
        attempt = frozenset(step[2] for step in self.left or () if step[:2] == (index, Phase.BUILD))
        has_failed = any(step[0] == index for step in self.left or ())
        done = frozenset(self.targets) - attempt if has_failed else frozenset[str]()
        found = (self._candidate(name, context, parameters, done) for name in self.targets)
        return Instance(parameters, tuple(each for each in found if each is not None))

    def check_faults(self) -> None:
        """Raise the collected faults.

        Raises:
            SpecError: Definitions are wrong; the error has every fault.
        """
        if self.faults:
            raise SpecError(self.faults)

    def _candidate(
        self, name: str, context: Context, parameters: Mapping[str, str], done: frozenset[str]
    ) -> Candidate | None:
        """Return a target of an instance, of which failed attempts at the run have built some."""
        fault = context.workspace.project.faulty.get(("target", name))
        if fault is not None:
            return withheld_candidate(context.workspace, name, fault)
        try:
            target = Target.named(context.workspace, name)
            if not target.enabled:
                return None
            phases = sorted(target.phases_in(context.workspace))
            nodes = {phase: node_of(target, context.workspace, phase) for phase in phases}
            append = target.append(context.workspace, context.defaults) if Phase.BUILD in nodes else None
        except SpecError as error:
            self._report(context, name, error)
            return None
        definition = self._definition(target, context) if Phase.BUILD in nodes else None
        is_compared = definition is not None and target.policy(context.defaults) is BuildPolicy.IF_CHANGED
        compared = nodes[Phase.BUILD].provides if is_compared else None
        last_build = cache(partial(self.last_builds.of, self.job, name, parameters, definition, compared))
        return Candidate(
            name=name,
            kind=target.kind,
            nodes=nodes,
            observe=partial(look, target, context, partial(self._report, context, name)),
            dirtiness=lambda phase, found: target.dirtiness(phase, found, context.defaults),
            lost=partial(
                lost_rows, self.last_builds, (name, parameters), partial(target.provides, context.workspace)
            ),
            lacks=partial(unknown_column, target, context.workspace),
            added=lambda: None if append is None else rows_added_again(target, parameters, last_build()),
            appended=lambda: ADDED_ALREADY if append and name in done and last_build().holds_rows else None,
            landed=lambda: _landed(target, context, last_build()) if append else None,
            last_build=last_build,
            is_compared=is_compared,
            missing=partial(missing_input, target, context.workspace),
            labels=target.labels(context.workspace),
            append=None if append is None else replace(append, begun=last_build().begun),
            updates_rows=target.updates_rows(context.defaults),
            definition=None if definition is None else definition.digest,
        )

    def _definition(self, target: Target, context: Context) -> BuildDefinition | None:
        """Return what is declared of a target's rows, which is the same in all instances."""
        if target.name not in self.definitions:
            self.definitions[target.name] = definition_of(target, context.workspace)
        return self.definitions[target.name]

    def _report(self, context: Context, target: str, error: SpecError) -> None:
        """Collect the faults of a target's declaration."""
        where = context.workspace.project.located("target", target)
        self.faults.update(dict.fromkeys(error.placed(f"target {target!r}", where).faults))


def _landed(target: Target, context: Context, last_build: LastBuild) -> Reason | None:
    """Return that the rows of an append are there which was begun, and of which no end is recorded."""
    if last_build.begun is None:
        return None
    try:
        return ADDED_ALREADY if target.has_appended(context.workspace, last_build.begun) else None
    except LakewrightError:  # observing the target raises it
        return None


def node_of(target: Target, workspace: Workspace, phase: Phase) -> Node:
    """Return the resources that a target requires and provides, and the targets it must run before and after.

    Raises:
        SpecError: Its definition, or one that it uses, is wrong.
    """
    return Node(
        target.name,
        before=target.before,
        after=target.targets_before(workspace),
        requires=workspace.through_views(target.requires(workspace, phase)),
        provides=target.provides(workspace, phase),
    )


def withheld_candidate(workspace: Workspace, name: str, fault: Fault) -> Candidate | None:
    """Return the candidate of a faulty target, which a plan blocks with everything that depends on it.

    What it writes is found in its declaration, as far as that can be read. None if it is disabled.
    """
    declared = workspace.project.faulty_targets.get(name)
    raw = {} if declared is None else declared.raw
    if raw.get("enabled") is False:
        return None
    kind = str(raw.get("kind", "target"))
    written = _written(workspace, raw) if _feeds_others(kind) else frozenset[Resource]()
    node = Node(
        name,
        before=_names(raw.get("before")),
        after=_names(raw.get("after")),
        provides=written or frozenset(),
    )
    return Candidate(
        name=name,
        kind=kind,
        nodes=dict.fromkeys(Phase, node),
        observe=lambda: Observation(f"target:{name}"),
        dirtiness=lambda *_: Dirtiness.no(Reason(Code.FAULTY, {"why": fault.message})),
        fault=fault,
        may_write_all=written is None,
    )


def _feeds_others(kind: str) -> bool:
    """Return whether others may read what targets of a kind write; they may if the kind is unknown."""
    found = registry().find_or_none("target", kind)
    return found is None or not issubclass(found, Target) or found.feeds_others


def _written(workspace: Workspace, raw: Any) -> frozenset[Resource] | None:
    """Return what a target writes by its declaration; None if that is not known."""
    relation, entity = raw.get("relation"), raw.get("entity")
    try:
        if isinstance(entity, str | int):
            silver = workspace.project.entity(entity).places(workspace.lake.settings).silver
            return frozenset({table_resource(silver)})
        if isinstance(relation, str):
            return workspace.relation(workspace.scope.render(relation)).resources(workspace)
    except SpecError:
        pass
    return None


def _names(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    return tuple(each for each in listed if isinstance(each, str))


_WRITTEN = ("relation", "entity")


def name_other_jobs(plan: Plan, project: Project) -> Plan:
    """Return the plan with reasons that name the other jobs which share the target of a cleanup step.

    Cleanup steps are those of TRUNCATE and DESTROY. Jobs share a target if they list the same one, or one
    with the same relation or entity.
    """
    if not plan.phase.is_cleanup:
        return plan
    users = _users(project, without=plan.job)

    def named(step: Step) -> Step:
        others = {job for thing in _shared_things(project, step.target) for job in users.get(thing, ())}
        if step.status is not Planned.WOULD_RUN or not others:
            return step
        return replace(step, reasons=(*step.reasons, Reason(Code.SHARED, {"jobs": sorted(others)})))

    return plan.with_steps(named)


def _users(project: Project, *, without: str) -> Mapping[tuple[str, str], list[str]]:
    """Return the names of the other jobs by target, relation and entity."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, job in project.jobs.items():
        for target in _targets(project, job) if name != without else ():
            for thing in _shared_things(project, target):
                found.setdefault(thing, []).append(name)
    return found


def _targets(project: Project, job: Job) -> tuple[str, ...]:
    try:
        return job.target_names(project.job_scope(job))
    except SpecError:
        return ()  # a job whose targets cannot be evaluated now


def _shared_things(project: Project, target: str) -> Iterator[tuple[str, str]]:
    yield ("target", target)
    definition = project.targets.get(target)
    for category in _WRITTEN:
        named = None if definition is None else definition.raw.get(category)
        if isinstance(named, str):
            yield (category, named)


@dataclass(slots=True)
class Contexts:
    """The contexts of a job's instances, created on first use and closed when the instance has finished.

    However many instances a run has, only those in progress are kept in memory.

    Attributes:
        parameters: The parameters of each instance, as text.
        make: Creates the context of an instance by its index, with definitions resolved for it alone.
    """

    parameters: Sequence[Mapping[str, str]]
    make: Callable[[int], Context]
    _made: dict[int, Context] = field(default_factory=dict, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def __len__(self) -> int:
        """Return the number of instances."""
        return len(self.parameters)

    def of(self, index: int) -> Context:
        """Return the context of an instance, the same one until it is released."""
        with self._lock:
            if index not in self._made:
                self._made[index] = self.make(index)
            return self._made[index]

    def refresh(self, index: int, places: frozenset[Resource]) -> None:
        """Discard what an instance has read of places: what is looked at now must be what is read."""
        self.of(index).workspace.invalidate(places)

    def release(self, index: int) -> None:
        """Close the context of an instance."""
        with self._lock:
            context = self._made.pop(index, None)
        if context is not None:
            context.workspace.close()


def look(target: Target, context: Context, report: Callable[[SpecError], None]) -> Observation:
    """Return what a target observes. If it fails, the observation has the reason, and the target runs.

    Args:
        target: The target.
        context: The context of its instance.
        report: Called with an error of the declaration.
    """
    subject = f"target:{target.name}"
    try:
        return target.observe(context)
    except SpecError as error:
        report(error)
        found = error.message
    except StorageUnavailable as error:
        found = Phrase(f"{error.message} (", error.remedy or "", ")")
    except LakewrightError as error:
        return failed_observation(subject, error)
    except OSError as error:
        ours = storage_error(error, f"{target.name} can't be observed")
        found = Phrase(f"{ours.message} (", ours.remedy or "", ")")
    except Exception as error:  # a failed observation must not break a plan: the target runs
        failure = query_failure(error, f"while {target.label} was observed")
        if failure is not None and DAMAGED in failure.details:
            return failed_observation(subject, failure)
        found = f"{type(error).__name__}: {error}" if failure is None else failure.message
        if isinstance(failure, NotInstalled):
            found = Phrase(found, " (", failure.remedy or "", ")")
        log.warning("%s could not be observed: %s", target.name, found)
    return Observation(subject, error=found)


AT_ONCE = 8
"""Targets that are observed at the same time."""


def observed_ahead(
    instances: Iterable[Instance], names: frozenset[str] | None
) -> Generator[Instance, None, None]:
    """Yield each instance, whose targets are being observed from then on, until the next is requested.

    Args:
        instances: The instances.
        names: The targets that may take part; None means all.
    """
    threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="observing")
    try:
        for instance in instances:
            chosen = [each for each in instance.candidates if names is None or each.name in names]
            begun = {each.name: threads.submit(each.observe) for each in chosen}
            candidates = (
                replace(each, observe=begun[each.name].result) if each.name in begun else each
                for each in instance.candidates
            )
            yield replace(instance, candidates=tuple(candidates))
            wait(each for each in begun.values() if not each.cancel())
    finally:
        threads.shutdown(cancel_futures=True)

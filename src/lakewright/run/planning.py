"""Plan a job: expand its arguments to instances, observe their targets, build the plan. Nothing is written.

With `--resume` the plan has only the steps that a recorded run left undone.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles"; resuming is Lakewright's own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault, LakewrightError, SpecError, UsageError
from lakewright.errors.phrase import Command, Option, Phrase
from lakewright.lake.lake import Lake
from lakewright.manifest.journal import Journal, KeptRows, Origin, Run, Taint
from lakewright.plan.graph import Node
from lakewright.plan.observation import Answer
from lakewright.plan.phase import Phase, phases_until
from lakewright.plan.planner import Candidate, Instance, PlanRequest, build_plan, selectables
from lakewright.plan.selectors import select
from lakewright.plan.step import Append, Plan
from lakewright.run.added_before import AddedBefore
from lakewright.run.build_history import BuildHistory
from lakewright.run.contexts import Contexts
from lakewright.run.former_names import FormerNames
from lakewright.run.kept_rows import kept_rows_warning, repeated_rows_warning
from lakewright.run.leftovers import Leftovers, is_built, is_entry_undone, tells_outcome
from lakewright.run.look import look
from lakewright.run.look_ahead import looking_ahead
from lakewright.run.lost_rows import LostRows
from lakewright.run.missing_inputs import missing_input
from lakewright.run.outputs import are_near, filled, is_gone
from lakewright.run.replaced_rows import without_rebuilt
from lakewright.run.request import JobRequest
from lakewright.run.shared_targets import name_other_jobs
from lakewright.run.unknown_columns import unknown_column
from lakewright.run.withheld import withheld_candidate
from lakewright.spec.arguments import expand_arguments
from lakewright.spec.expressions.secrets import HIDDEN
from lakewright.spec.expressions.values import render_value
from lakewright.spec.models.job import Job
from lakewright.spec.project import Project
from lakewright.targets.appending import ADDED_ALREADY
from lakewright.targets.context import Context
from lakewright.targets.definition import definition_of
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from lakewright.plan.resource import Resource

__all__ = ["Planning", "node_of"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Planning:
    """The inputs of a plan.

    Attributes:
        journal: The history of earlier runs.
        context: Makes the context of an instance's targets from its workspace.
    """

    project: Project
    lake: Lake
    journal: Journal
    request: JobRequest
    context: Callable[[Workspace], Context]

    def plan(self, job: Job) -> tuple[Plan, Contexts]:
        """Return the plan of a run of a job, and the contexts to execute it in.

        Raises:
            SpecError: The arguments or a definition are wrong, or targets form a cycle.
            UsageError: There is no run to resume.
        """
        contexts = self._contexts(job)
        if not contexts.parameters:
            log.warning("the arguments of %s expand to no instance, so there is nothing to run", job.name)
        names = job.target_names(self.project.job_scope(job, is_forced=self.request.force))
        history = BuildHistory(self.project, self.lake, self.journal, job)
        lost = LostRows(history, contexts.parameters)
        added = AddedBefore(history)
        observer = _Observer(contexts, names, self._leftovers(), lost, added, self.request.resume)
        plan_request = self._plan_request(job, observer)
        lost.choose(plan_request.targets or names)
        with self.lake.observing(), looking_ahead(plan_request.targets) as ahead:
            # A disk answers at once, and threads would take turns.
            instances = observer.instances()
            found = ahead.over(instances) if self.lake.storage.is_used else instances
            plan = build_plan(self.project.name, job.name, found, plan_request, count=len(contexts))
        observer.check_faults()
        return name_other_jobs(without_rebuilt(plan), self.project), contexts

    def nodes(self, job: Job) -> dict[str, Node]:
        """Return what the targets of the first instance require and provide in the request's phase.

        Raises:
            SpecError: The arguments or a definition are wrong.
        """
        contexts = self._contexts(job)
        names = job.target_names(self.project.job_scope(job, is_forced=self.request.force))
        history = BuildHistory(self.project, self.lake, self.journal, job)
        lost = LostRows(history, contexts.parameters)
        added = AddedBefore(history)
        observer = _Observer(contexts, names, lambda *_: {}, lost, added)
        found = observer.instance(0).candidates if contexts.parameters else ()
        observer.check_faults()
        phase = self.request.phase
        return {each.name: each.nodes[phase] for each in found if phase in each.nodes}

    def _contexts(self, job: Job) -> Contexts:
        scope = self.project.job_scope(job, is_forced=self.request.force)
        instances = [
            dict(values) for values in expand_arguments(job.parameters, self.request.arguments, scope)
        ]

        def make(index: int) -> Context:
            within = self.project.job_scope(job, instances[index], is_forced=self.request.force)
            return self.context(Workspace(self.project.within(within), within, self.lake))

        texts = [{name: render_value(value) for name, value in values.items()} for values in instances]
        return Contexts(texts, make)

    def _leftovers(self) -> Callable[[str, Mapping[str, str]], Mapping[Phase, Taint]]:
        taints: dict[tuple[str, tuple[tuple[str, str], ...]], dict[Phase, Taint]] = {}
        for taint in FormerNames(self.project, self.lake, self.journal).taints():
            key = (taint.place.target, tuple(sorted(taint.place.parameters.items())))
            taints.setdefault(key, {})[Phase(taint.place.phase)] = taint
        hidden = self.journal.hide_secrets

        def leftovers(target: str, parameters: Mapping[str, str]) -> Mapping[Phase, Taint]:
            if not taints:
                return {}
            # A taint of an unknown instance holds for any, until one is built.
            unknown = tuple(sorted((name, HIDDEN) for name in parameters))
            own = taints.get((target, tuple(sorted(hidden(parameters).items()))))
            return taints.get((target, unknown), {}) if own is None else own

        return leftovers

    def _plan_request(self, job: Job, observer: _Observer) -> PlanRequest:
        request = self.request
        texts, only = request.targets, None
        if request.resume:
            chosen, only = self._resumed(observer.contexts)
            texts = texts or chosen
        return PlanRequest(
            phases=request.phases,
            executions=job.executions,
            targets=self._select_targets(texts, observer) if texts else None,
            dirty=request.dirty_patterns(observer.targets),
            is_forced=request.force,
            only=only,
            keep_going=request.keep_going,
        )

    def _select_targets(self, texts: Sequence[str], observer: _Observer) -> frozenset[str]:
        last = next(self.journal.runs(1, project=self.project.name, job=self.request.job), None)
        entries = self.journal.targets(last.run_id) if last is not None else iter(())
        undone = frozenset(entry["name"] for entry in entries if is_entry_undone(entry))
        chosen: frozenset[str] = frozenset()
        for instance in observer.instances():
            chosen |= select(texts, selectables(instance), undone=undone)
        return chosen

    def _resumed(self, contexts: Contexts) -> tuple[tuple[str, ...], Leftovers]:
        """Return the targets to which the runs to resume were restricted, if so, and what these left undone.

        They are the last run with the same arguments that had all steps, and those since then, which left
        steps out: what these did not do is still undone.
        """
        runs = self.journal.runs(
            project=self.project.name, job=self.request.job, parameters=self.request.given
        )
        found: list[Run] = []
        for run in filter(self._is_of_lifecycle, runs):
            found.append(run)
            if self._has_all_steps(run) or run.finished is None:
                break
        if not found:
            raise UsageError(
                f"there is no run of {self.request.job} with these arguments to resume",
                remedy=Phrase(
                    "Run it without ", Option("--resume"), "; ", Command("history"), " lists the runs."
                ),
            )
        instances = list(map(self.journal.hide_secrets, contexts.parameters))
        *since, first = found
        entries = self.journal.targets(first.run_id)
        leftovers = Leftovers.of(entries, instances, is_whole=first.finished is not None)
        for run in reversed(since):
            told = (each for each in self.journal.targets(run.run_id) if tells_outcome(each))
            leftovers = leftovers.after(Leftovers.of(told, instances, is_whole=True))
        leftovers = leftovers.beside(self._appended_since(first, found, contexts), instances)
        targets = (first.facts.get("targets", ()), *(run.facts.get("targets", ()) for run in since))
        return tuple(dict.fromkeys(chain(*targets))) if targets[0] else (), leftovers

    def _appended_since(
        self, first: Run, resumed: Sequence[Run], contexts: Contexts
    ) -> Iterator[Mapping[str, Any]]:
        """Yield what other runs have built since of targets that append: their rows must not come twice."""
        if not contexts.parameters:
            return
        context, known = contexts.of(0), {run.run_id for run in resumed}
        for run in self.journal.runs(project=self.project.name, since=first.started):
            for each in self.journal.targets(run.run_id) if run.run_id not in known else ():
                if is_built(each) and _appends(each["name"], context):
                    yield each

    def _has_all_steps(self, run: Run) -> bool:
        """Return whether a run had all steps up to the phase that is asked for."""
        return not run.is_partial and self.request.phase in phases_until(Phase(run.phase))

    def _is_of_lifecycle(self, run: Run) -> bool:
        return phases_until(Phase(run.phase))[0] is phases_until(self.request.phase)[0]


@dataclass(slots=True)
class _Observer:
    """Observes the targets of instances and collects the faults of their definitions.

    Attributes:
        targets: Names of the targets, in the order written.
        leftover: For a target and parameters, its taints, by phase.
        lost: Finds what was built into tables that do not exist any more.
        added: Finds earlier builds of what adds rows in each build.
        is_resumed: Whether the run goes on with one that was killed, or failed.
        faults: Faults that show only when expressions are evaluated.
        definitions: The digests of definitions, by the names of targets.
    """

    contexts: Contexts
    targets: Sequence[str]
    leftover: Callable[[str, Mapping[str, str]], Mapping[Phase, Taint]]
    lost: LostRows
    added: AddedBefore
    is_resumed: bool = False
    faults: dict[Fault, None] = field(default_factory=dict)
    definitions: dict[str, str | None] = field(default_factory=dict)

    def instances(self) -> Iterator[Instance]:
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
        found = (self._candidate(name, context, parameters) for name in self.targets)
        return Instance(parameters, tuple(each for each in found if each is not None))

    def check_faults(self) -> None:
        """Raise the collected faults.

        Raises:
            SpecError: Definitions are wrong; the error has every fault.
        """
        if self.faults:
            raise SpecError(self.faults)

    def _candidate(self, name: str, context: Context, parameters: Mapping[str, str]) -> Candidate | None:
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
            self._tell(context, name, error)
            return None
        taints = self._taints(target, context, parameters)
        tainted = taints.get(Phase.BUILD)
        kept = None if tainted is None else self._kept(target, context, tainted)
        notice = None if tainted is None else self._notice(target, context, parameters, tainted, kept)
        return Candidate(
            name=name,
            kind=target.kind,
            nodes=nodes,
            observe=partial(look, target, context, partial(self._tell, context, name)),
            dirtiness=lambda phase, found: target.dirtiness(phase, found, context.defaults),
            unfinished={phase: taint.reason for phase, taint in taints.items()},
            notice=notice,
            kept=kept,
            lost=partial(self.lost.lost, target, context, parameters),
            lacks=partial(unknown_column, target, context.workspace),
            added=partial(self.added.added, target, context.workspace, parameters, context.defaults),
            appended=partial(self._appended, target, context, tainted),
            lacking=partial(self.lost.lacking, target, context, parameters),
            missing=partial(self._missing, target, context, parameters),
            labels=target.labels(context.workspace),
            other_runs=partial(target.other_runs, context),
            append=self._resumed(append, tainted),
            definition=self._definition(target, context) if Phase.BUILD in nodes else None,
        )

    def _definition(self, target: Target, context: Context) -> str | None:
        """Return the digest of what is declared of a target's rows, which is the same in all instances."""
        if target.name not in self.definitions:
            self.definitions[target.name] = definition_of(target, context.workspace)
        return self.definitions[target.name]

    def _missing(
        self,
        target: Target,
        context: Context,
        parameters: Mapping[str, str],
        is_made: Callable[[Resource], bool],
    ) -> Fault | None:
        """Return the warning of what a target reads, or else of what others have done to its table."""
        found = missing_input(target, context.workspace, is_made)
        return found or self.lost.changed_warning(target, context, parameters)

    def _taints(
        self, target: Target, context: Context, parameters: Mapping[str, str]
    ) -> Mapping[Phase, Taint]:
        """Return the taints of a target, without that of lost rows which somebody has brought back."""
        found = self.leftover(target.name, parameters)
        built = found.get(Phase.BUILD)
        if built is None or not self.added.is_back(built, target, context.workspace):
            return found
        return {phase: taint for phase, taint in found.items() if phase is not Phase.BUILD}

    def _tell(self, context: Context, target: str, error: SpecError) -> None:
        """Collect the faults of a target's declaration."""
        self.faults.update(dict.fromkeys(_placed(error, target, context).faults))

    def _resumed(self, append: Append | None, taint: Taint | None) -> Append | None:
        """Return an append with the identity under which a run that is resumed has begun it."""
        if append is None or taint is None or not self.is_resumed:
            return append
        return replace(append, begun=taint.append_id)

    def _kept(self, target: Target, context: Context, taint: Taint) -> KeptRows | None:
        """Return the rows of before that building a dirty target leaves; None if none are there."""
        places = target.provides(context.workspace, Phase.BUILD)
        if taint.kept is None or is_gone(places):
            return None
        is_meant = taint.kept.origin is Origin.TWICE and target.is_built_always
        is_empty = are_near(places) and filled(target, context.workspace) is Answer.NO
        return None if is_meant or is_empty else taint.kept

    def _notice(
        self,
        target: Target,
        context: Context,
        parameters: Mapping[str, str],
        taint: Taint,
        kept: KeptRows | None,
    ) -> Fault | None:
        """Return the warning of a dirty target, if building it leaves or repeats rows of before."""
        if kept is not None:
            return kept_rows_warning(self.lost.job.name, parameters, target.name, kept)
        if taint.kept is not None or self.is_resumed or not _has_appended(target, context, taint):
            return None
        return repeated_rows_warning(self.lost.job.name, parameters, taint)

    def _appended(self, target: Target, context: Context, taint: Taint | None) -> str | None:
        """Return why a run that is resumed adds none of a target's rows; None if it adds them."""
        is_left_out = self.is_resumed and taint is not None and _has_appended(target, context, taint)
        return ADDED_ALREADY if is_left_out else None


def _has_appended(target: Target, context: Context, taint: Taint) -> bool:
    """Return whether the rows are there of the append that a run has begun and not recorded."""
    if taint.append_id is None:
        return False
    try:
        return target.has_appended(context.workspace, taint.append_id)
    except LakewrightError:  # observing the target tells it
        return False


def _appends(name: str, context: Context) -> bool:
    if name not in context.workspace.project.targets:
        return False
    try:
        return Target.named(context.workspace, name).append(context.workspace, context.defaults) is not None
    except SpecError:  # planning tells it
        return False


def _placed(error: SpecError, target: str, context: Context) -> SpecError:
    definition = context.workspace.project.definitions("target").get(target)
    return error if definition is None else error.placed(definition.subject, definition.at())


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

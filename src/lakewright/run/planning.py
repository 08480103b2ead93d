"""Planning a job: arguments to instances, these to observations, and those to a plan. Nothing is written.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lakewright.errors import UsageError
from lakewright.lake.lake import Lake
from lakewright.manifest.journal import Journal, Run
from lakewright.plan.arguments import expand_arguments
from lakewright.plan.candidate import selectables
from lakewright.plan.graph import Node
from lakewright.plan.phase import Phase, phases_until
from lakewright.plan.planner import PlanRequest, build_plan
from lakewright.plan.selectors import select
from lakewright.plan.step import Plan
from lakewright.run.contexts import Contexts
from lakewright.run.observe import Observer
from lakewright.run.request import JobRequest
from lakewright.run.resume import Leftovers, is_entry_undone
from lakewright.run.shared import naming_other_jobs
from lakewright.spec.expressions.values import render_value
from lakewright.spec.models.job import Job
from lakewright.spec.project import Project
from lakewright.targets.context import Context
from lakewright.workspace.workspace import Workspace

__all__ = ["Planning"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Planning:
    """What a plan is made from.

    Attributes:
        journal: What earlier runs left.
        context: Makes the context of an instance's targets from its workspace.
    """

    project: Project
    lake: Lake
    journal: Journal
    request: JobRequest
    context: Callable[[Workspace], Context]

    def plan(self, job: Job) -> tuple[Plan, Contexts]:
        """Return what a run of a job would do, and the contexts in which it would.

        Raises:
            SpecError: Its arguments are wrong, a definition is, or targets form a cycle.
            UsageError: There is no run to resume.
        """
        contexts = self._contexts(job)
        if not contexts.parameters:
            log.warning("the arguments of %s come to no instance, so there is nothing to run", job.name)
        names = job.target_names(self.project.scope.instance(job.environment))
        observer = Observer(contexts, names, self._leftovers())
        selection = self._selection(job, observer)
        with self.lake.observing():
            plan = build_plan(
                self.project.name, job.name, observer.instances(), selection, count=len(contexts)
            )
        observer.refuse_faults()
        return naming_other_jobs(plan, self.project), contexts

    def nodes(self, job: Job) -> dict[str, Node]:
        """Return what the targets of a job need and give in the request's phase, in its first instance.

        Raises:
            SpecError: Its arguments are wrong, or a definition is.
        """
        contexts = self._contexts(job)
        names = job.target_names(self.project.scope.instance(job.environment))
        observer = Observer(contexts, names, lambda *_: {})
        found = observer.instance(0).candidates if contexts.parameters else ()
        observer.refuse_faults()
        phase = self.request.phase
        return {each.name: each.nodes[phase] for each in found if phase in each.nodes}

    def _contexts(self, job: Job) -> Contexts:
        scope = self.project.scope.instance(job.environment)
        instances = [
            dict(values) for values in expand_arguments(job.parameters, self.request.arguments, scope)
        ]

        def make(index: int) -> Context:
            within = self.project.scope.instance(job.environment, instances[index])
            return self.context(Workspace(self.project.within(within), within, self.lake))

        texts = [{name: render_value(value) for name, value in values.items()} for values in instances]
        return Contexts(texts, make)

    def _leftovers(self) -> Callable[[str, Mapping[str, str]], Mapping[Phase, str]]:
        taints: dict[tuple[str, tuple[tuple[str, str], ...]], dict[Phase, str]] = {}
        for taint in self.journal.taints(self.project.name):
            key = (taint.place.target, tuple(sorted(taint.place.parameters.items())))
            taints.setdefault(key, {})[Phase(taint.place.phase)] = taint.reason
        hidden = self.journal.hide_secrets

        def leftovers(target: str, parameters: Mapping[str, str]) -> Mapping[Phase, str]:
            return taints.get((target, tuple(sorted(hidden(parameters).items()))), {}) if taints else {}

        return leftovers

    def _selection(self, job: Job, observer: Observer) -> PlanRequest:
        request = self.request
        texts, only = request.targets, None
        if request.resume:
            last, only = self._left(observer.contexts)
            texts = texts or tuple(last.facts.get("targets", ()))
        return PlanRequest(
            phases=request.phases,
            executions=job.executions,
            targets=self._chosen(texts, observer) if texts else None,
            dirty=request.dirty_patterns(),
            is_forced=request.force,
            only=only,
            keep_going=request.keep_going,
        )

    def _chosen(self, texts: Sequence[str], observer: Observer) -> frozenset[str]:
        last = next(self.journal.runs(1, project=self.project.name, job=self.request.job), None)
        entries = self.journal.targets(last.run_id) if last is not None else iter(())
        undone = frozenset(entry["name"] for entry in entries if is_entry_undone(entry))
        chosen: frozenset[str] = frozenset()
        for instance in observer.instances():
            chosen |= select(texts, selectables(instance), undone=undone)
        return chosen

    def _left(self, contexts: Contexts) -> tuple[Run, Leftovers]:
        """Return the last run with the same arguments, and what it left undone."""
        runs = self.journal.runs(
            project=self.project.name, job=self.request.job, parameters=self.request.given
        )
        last = next((run for run in runs if self._is_of_lifecycle(run)), None)
        if last is None:
            raise UsageError(
                f"there is no run of {self.request.job} with these arguments to resume",
                remedy="Run it without --resume; `lakewright history` lists the runs there were.",
            )
        entries = self.journal.targets(last.run_id)
        instances = list(map(self.journal.hide_secrets, contexts.parameters))
        return last, Leftovers.of(entries, instances, is_whole=last.finished is not None)

    def _is_of_lifecycle(self, run: Run) -> bool:
        return phases_until(Phase(run.phase))[0] is phases_until(self.request.phase)[0]

"""One run of a job: arguments to instances, observations to a plan, the plan to a recorded result.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from lakewright.errors import UsageError
from lakewright.lake.lake import Lake
from lakewright.lake.workspace import Workspace
from lakewright.manifest.journal import Journal, Run
from lakewright.manifest.lease import Holder
from lakewright.plan.build import Instance, Selection, build_plan
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase, phases_until
from lakewright.plan.range import expand
from lakewright.plan.select import select
from lakewright.plan.step import Plan, Step
from lakewright.run.execute import Interruption, Listener, Runner, execute
from lakewright.run.observe import observe
from lakewright.run.recorder import Recorder
from lakewright.run.result import RunResult
from lakewright.run.resume import is_undone, unfinished
from lakewright.spec.job import Job
from lakewright.spec.project import Project
from lakewright.spec.values import render_value
from lakewright.targets.context import Context
from lakewright.targets.target import Target

__all__ = ["JobRequest", "JobRun"]


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What a run of a job is asked for.

    Attributes:
        phase: The last phase of its lifecycle that is to run.
        arguments: `p=v`, `p=v1,v2`, `p:start=…` and so on.
        is_alone: Only that phase, not those before it.
        targets: Only targets that one of these chooses take part; see `lakewright.plan.select`.
        dirty: Regular expressions of whole names; these targets run though they are clean.
        resume: Only what the last run with these arguments left undone.
        jobs: How many targets of a phase run side by side, where nothing orders them.
    """

    job: str
    phase: Phase
    arguments: tuple[str, ...] = ()
    is_alone: bool = False
    targets: tuple[str, ...] = ()
    dirty: tuple[str, ...] = ()
    force: bool = False
    keep_going: bool = False
    resume: bool = False
    allow_data_loss: bool = False
    allow_backdated: bool = False
    wait: bool = False
    jobs: int = 1


@dataclass(slots=True)
class JobRun:
    """A job as one request asks for it: planned, and then perhaps executed.

    Attributes:
        context: Makes the context of an instance's targets from its workspace.
    """

    project: Project
    lake: Lake
    journal: Journal
    request: JobRequest
    context: Callable[[Workspace], Context]

    def plan(self) -> Plan:
        """Return what a run would do; nothing is written by asking.

        Raises:
            SpecError: The job or its arguments are wrong, a definition is, or targets form a cycle.
        """
        return self._planned()[0]

    def run(
        self,
        *,
        run_id: str,
        holder: Holder,
        clock: Callable[[], datetime],
        listener: Listener,
        interruption: Interruption,
        facts: Mapping[str, Any],
    ) -> RunResult:
        """Return how the run ended; it is in the history from its start on."""
        plan, contexts = self._planned()
        run = self.journal.start_run(
            Run(
                run_id=run_id,
                project=self.project.name,
                job=self.request.job,
                phase=self.request.phase.value,
                parameters=_argument_map(self.request.arguments),
                started=clock(),
                holder=holder,
                facts=facts,
            )
        )
        parameters = [instance.parameters for instance in plan.instances]
        runner = Runner(
            run_id=run_id,
            perform=partial(_perform, contexts),
            clock=clock,
            listener=Recorder(self.journal, run, parameters, listener),
            interruption=interruption,
            keep_going=self.request.keep_going,
            jobs=self.request.jobs,
        )
        result = execute(plan, runner)
        self.journal.finish_run(
            run, result.status.value, finished=result.finished, exit_code=result.exit_code
        )
        return replace(result, started=run.started)

    def _planned(self) -> tuple[Plan, list[Context]]:
        job = self.project.job(self.request.job)
        instances = self._instances(job)
        contexts = [context for _, context in instances]
        observed = observe(
            job.target_names(self.project.scope.instance(job.environment)), instances, self._leftovers()
        )
        plan = build_plan(self.project.name, job.name, observed, self._selection(job, observed))
        return plan, contexts

    def _instances(self, job: Job) -> list[tuple[Mapping[str, str], Context]]:
        scope = self.project.scope.instance(job.environment)
        made: list[tuple[Mapping[str, str], Context]] = []
        for values in expand(job.parameters, self.request.arguments, scope):
            within = self.project.scope.instance(job.environment, values)
            workspace = Workspace(self.project.within(within), within, self.lake)
            texts = {name: render_value(value) for name, value in values.items()}
            made.append((texts, self.context(workspace)))
        return made

    def _leftovers(self) -> Callable[[str, Mapping[str, str]], Mapping[Phase, str]]:
        taints: dict[tuple[str, tuple[tuple[str, str], ...]], dict[Phase, str]] = {}
        for taint in self.journal.taints(self.project.name):
            key = (taint.place.target, tuple(sorted(taint.place.parameters.items())))
            taints.setdefault(key, {})[Phase(taint.place.phase)] = taint.reason
        return lambda target, parameters: taints.get((target, tuple(sorted(parameters.items()))), {})

    def _selection(self, job: Job, instances: Sequence[Instance]) -> Selection:
        request = self.request
        return Selection(
            phases=phases_until(request.phase, is_alone=request.is_alone),
            executions=job.executions,
            targets=self._chosen(instances) if request.targets else None,
            dirty=_patterns("--dirty", request.dirty),
            is_forced=request.force,
            only=self._unfinished(instances) if request.resume else None,
        )

    def _chosen(self, instances: Sequence[Instance]) -> frozenset[str]:
        last = next(self.journal.runs(1, project=self.project.name, job=self.request.job), None)
        undone = frozenset(
            entry["name"]
            for entry in (self.journal.targets(last.run_id) if last is not None else ())
            if is_undone(entry)
        )
        chosen: frozenset[str] = frozenset()
        for instance in instances:
            chosen |= select(self.request.targets, instance.choices(), undone=undone)
        return chosen

    def _unfinished(self, instances: Sequence[Instance]) -> frozenset[tuple[int, Phase, str]]:
        last = next(
            self.journal.runs(
                1,
                project=self.project.name,
                job=self.request.job,
                parameters=_argument_map(self.request.arguments),
            ),
            None,
        )
        if last is None:
            raise UsageError(
                f"there is no run of {self.request.job} with these arguments to resume",
                remedy="Run it without --resume; `lakewright history` lists the runs there were.",
            )
        parameters = [instance.parameters for instance in instances]
        return unfinished(self.journal.targets(last.run_id), parameters)


def _perform(contexts: Sequence[Context], instance: int, step: Step) -> Outcome:
    context = contexts[instance]
    return Target.named(context.workspace, step.target).execute(context, step.phase)


def _argument_map(arguments: Sequence[str]) -> dict[str, str]:
    return dict(argument.partition("=")[::2] for argument in arguments)


def _patterns(option: str, texts: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(re.compile(text) for text in texts)
    except re.error as error:
        raise UsageError(f"{option} {error.pattern!r} is no regular expression: {error}") from error

"""One run of a job: arguments to instances, observations to a plan, the plan to a recorded result.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Event
from typing import Any

from lakewright.errors import SpecError, UsageError
from lakewright.lake.lake import Lake
from lakewright.lake.workspace import Workspace
from lakewright.manifest.journal import Journal, Run
from lakewright.manifest.lease import Holder
from lakewright.plan.build import Selection, build_plan
from lakewright.plan.candidate import choices
from lakewright.plan.phase import Phase, phases_until
from lakewright.plan.range import expand
from lakewright.plan.select import select
from lakewright.plan.step import Plan
from lakewright.run.attempts import Attempts
from lakewright.run.contexts import Contexts
from lakewright.run.execute import Interruption, Listener, Runner, execute
from lakewright.run.hooks.announce import About, Announcer
from lakewright.run.hooks.messenger import Messenger
from lakewright.run.observe import Observer
from lakewright.run.publish import Publisher
from lakewright.run.recorder import Recorder, notes
from lakewright.run.result import RunResult
from lakewright.run.resume import Leftovers, is_entry_undone
from lakewright.spec.job import Job
from lakewright.spec.project import Project
from lakewright.spec.scope import Scope
from lakewright.spec.values import render_value
from lakewright.targets.context import Context

__all__ = ["JobRequest", "JobRun"]

_PARALLELISM = "lakewright.execution.executor.parallelism"


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
        jobs: How many targets run side by side, where nothing orders them; None leaves it to the job and the
            configuration.
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
    jobs: int | None = None


@dataclass(slots=True)
class JobRun:
    """A job as one request asks for it: planned, and then perhaps executed.

    Attributes:
        context: Makes the context of an instance's targets from its workspace.
        clock: Tells the present instant, in UTC.
        environ: The process's environment, which hooks' commands get.
    """

    project: Project
    lake: Lake
    journal: Journal
    request: JobRequest
    context: Callable[[Workspace], Context]
    clock: Callable[[], datetime]
    environ: Mapping[str, str] = field(default_factory=dict)

    def plan(self) -> Plan:
        """Return what a run would do; nothing is written by asking.

        Raises:
            SpecError: The job or its arguments are wrong, a definition is, or targets form a cycle.
        """
        return self._planned(self.project.job(self.request.job))[0]

    def run(
        self,
        *,
        run_id: str,
        holder: Holder,
        listener: Listener,
        interruption: Interruption,
        facts: Mapping[str, Any],
    ) -> RunResult:
        """Return how the run ended; it is in the history from its start on."""
        job = self.project.job(self.request.job)
        jobs = self._jobs(job)
        plan, contexts = self._planned(job)
        run = Run(
            run_id=run_id,
            project=self.project.name,
            job=job.name,
            phase=self.request.phase.value,
            parameters=_argument_map(self.request.arguments),
            started=self.clock(),
            holder=holder,
            facts={**facts, **({"targets": list(self.request.targets)} if self.request.targets else {})},
        )
        run = self.journal.start_run(run, tuple(notes(run, plan)))
        announcer = self._announcer(job, plan, contexts, run)
        recorder = Recorder(self.journal, run, plan, [listener, *([announcer] if announcer else [])])
        is_over = Event()

        def cut_off() -> None:
            is_over.set()
            self.lake.cancel()

        runner = Runner(
            run_id=run_id,
            perform=Attempts(contexts, self.lake, run_id, is_over.is_set).perform,
            clock=self.clock,
            listener=recorder,
            interruption=interruption,
            keep_going=self.request.keep_going,
            jobs=jobs,
            executions=job.executions,
            release=contexts.release,
            cut_off=cut_off,
        )
        if announcer:
            announcer.run_started()
        result = replace(execute(plan, runner), started=run.started)
        recorder.flush()
        metrics = [metric.as_json() for metric in Publisher(self.project, job, contexts).publish(result)]
        self.journal.finish_run(
            run,
            result.status.value,
            finished=result.finished,
            exit_code=result.exit_code,
            **({"metrics": metrics} if job.metrics else {}),
        )
        if announcer:
            announcer.run_finished(result)
        return result

    def _announcer(self, job: Job, plan: Plan, contexts: Contexts, run: Run) -> Announcer | None:
        if not job.hooks:
            return None
        of_job = self.project.scope.instance(job.environment)

        def scope(instance: int | None) -> Scope:
            number = 0 if instance is None and len(contexts) == 1 else instance
            return of_job if number is None else contexts.of(number).workspace.scope

        about = About(
            project=self.project.name,
            version=self.project.version or "",
            job=job.name,
            run_id=run.run_id,
            scope=scope,
            environ=self.environ,
            folder=self.project.basedir,
            redactor=self.journal.redactor,
            clock=self.clock,
        )
        return Announcer(job.hooks, plan, about, Messenger())

    def _jobs(self, job: Job) -> int:
        """Return how many targets run side by side: as asked for, as the job says, as is configured."""
        configured = self.project.config.get(_PARALLELISM, "1")
        try:
            return self.request.jobs or job.parallelism or max(1, int(configured))
        except ValueError as error:
            raise SpecError.of(f"configuration {_PARALLELISM}: {configured!r} is no number") from error

    def _planned(self, job: Job) -> tuple[Plan, Contexts]:
        contexts = self._contexts(job)
        names = job.target_names(self.project.scope.instance(job.environment))
        observer = Observer(contexts, names, self._leftovers())
        selection = self._selection(job, observer)
        with self.lake.looking():
            plan = build_plan(
                self.project.name, job.name, observer.instances(), selection, count=len(contexts)
            )
        observer.refuse_faults()
        return plan, contexts

    def _contexts(self, job: Job) -> Contexts:
        scope = self.project.scope.instance(job.environment)
        instances = [dict(values) for values in expand(job.parameters, self.request.arguments, scope)]

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
        return lambda target, parameters: taints.get((target, tuple(sorted(parameters.items()))), {})

    def _selection(self, job: Job, observer: Observer) -> Selection:
        request = self.request
        texts, only = request.targets, None
        if request.resume:
            last, only = self._left(observer.contexts)
            texts = texts or tuple(last.facts.get("targets", ()))
        return Selection(
            phases=phases_until(request.phase, is_alone=request.is_alone),
            executions=job.executions,
            targets=self._chosen(texts, observer) if texts else None,
            dirty=_patterns("--dirty", request.dirty),
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
            chosen |= select(texts, choices(instance), undone=undone)
        return chosen

    def _is_of_lifecycle(self, run: Run) -> bool:
        return phases_until(Phase(run.phase))[0] is phases_until(self.request.phase)[0]

    def _left(self, contexts: Contexts) -> tuple[Run, Leftovers]:
        """Return the last run with the same arguments, and what it left undone."""
        given = _argument_map(self.request.arguments)
        runs = self.journal.runs(project=self.project.name, job=self.request.job, parameters=given)
        last = next((run for run in runs if self._is_of_lifecycle(run)), None)
        if last is None:
            raise UsageError(
                f"there is no run of {self.request.job} with these arguments to resume",
                remedy="Run it without --resume; `lakewright history` lists the runs there were.",
            )
        entries = self.journal.targets(last.run_id)
        return last, Leftovers.of(entries, contexts.parameters, is_whole=last.finished is not None)


def _argument_map(arguments: Sequence[str]) -> dict[str, str]:
    return dict(argument.partition("=")[::2] for argument in arguments)


def _patterns(option: str, texts: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(re.compile(text) for text in texts)
    except re.error as error:
        raise UsageError(f"{option} {error.pattern!r} is no regular expression: {error}") from error

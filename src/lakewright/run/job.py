"""Run a job: plan it, execute the plan, record the run, publish its metrics and call its hooks.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" and "Dirtiness"; that a failed target stays dirty is
Lakewright's own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Event
from typing import Any

from lakewright.connections.connection import Connection
from lakewright.connections.database import Database
from lakewright.connections.jdbc import jdbc_connection
from lakewright.errors import SpecError
from lakewright.lake.tracing import span
from lakewright.manifest.journal import Journal, Run
from lakewright.manifest.lease import Holder
from lakewright.manifest.lock import FAILED_ITEMS
from lakewright.manifest.payload import text_of
from lakewright.manifest.store import Put
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import Plan, Step, StepKey
from lakewright.run.builds import BuildRecorder
from lakewright.run.execution import ExecutionOptions, Interruption, Listener, execute
from lakewright.run.hooks.event import HookContext
from lakewright.run.hooks.notifier import HookNotifier
from lakewright.run.lineage.listener import LineageListener, Reporter, is_configured
from lakewright.run.metrics import Published, Publisher
from lakewright.run.planning import Contexts, Planning
from lakewright.run.result import RunResult, TargetResult
from lakewright.run.step_runner import StepRunner
from lakewright.run.wants import WantRecorder
from lakewright.spark.launch import import_engine
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.job import Job
from lakewright.workspace.workspace import Workspace

log = logging.getLogger(__name__)

MOST_WAITING = 500
"""The largest number of results that wait for the next write: a write per result would slow clean runs."""


@dataclass(slots=True)
class Recorder:
    """Records the results of steps in the journal as they finish, and passes them to listeners.

    Results of clean steps are written together with the next other result, or by `flush`.
    """

    journal: Journal
    run: Run
    plan: Plan
    listeners: Sequence[Listener]
    builds: BuildRecorder
    wants: WantRecorder
    _waiting: dict[int, dict[str, Any]] = field(default_factory=dict, init=False)
    _numbers: dict[StepKey, int] = field(default_factory=dict, init=False)
    _left: set[int] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        steps = (
            (index, step.phase, step.target)
            for index, instance in enumerate(self.plan.instances)
            for phase in instance.phases
            for step in phase.steps
        )
        self._numbers = {key: number for number, key in enumerate(steps)}
        self._left.update(self._numbers.values())

    @property
    def is_complete(self) -> bool:
        """Whether the result of every step is recorded."""
        return not self._left

    def step_started(self, instance: int, step: Step) -> None:
        """Notify the listeners that a step starts; record it before if it appends rows, in case of a kill."""
        if begun := self.builds.begin(instance, step):
            self.flush(begun)
        for listener in self.listeners:
            listener.step_started(instance, step)

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Record the result of a step, and what it has built, in one write."""
        number = self._numbers[instance, step.phase, step.target]
        parameters = dict(self.plan.instances[instance].parameters)
        details = {} if result.error is None else result.error.details
        items = {FAILED_ITEMS: details[FAILED_ITEMS]} if details.get(FAILED_ITEMS) else {}
        self._waiting[number] = {
            **result.as_json(),
            "error": None if result.error is None else result.error.as_record(),
            "phase": step.phase.value,
            "instance": parameters,
            **items,
        }
        puts = (*self.builds.end(instance, step, result), *self.wants.end(instance, step, result))
        if puts or result.status is not Status.SKIPPED or len(self._waiting) >= MOST_WAITING:
            self.flush(puts)
        for listener in self.listeners:
            listener.step_finished(instance, step, result)

    def flush(self, puts: Sequence[Put] = ()) -> None:
        """Write the waiting results."""
        if self._waiting or puts:
            self.journal.record_targets(self.run, self._waiting, puts)
            self._left.difference_update(self._waiting)
            self._waiting.clear()


_PARALLELISM = "lakewright.execution.executor.parallelism"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun(Planning):
    """A run of a job, to be planned or executed.

    Attributes:
        clock: Returns the current time, in UTC.
        environ: The environment variables that commands of hooks get.
    """

    clock: Callable[[], datetime]
    environ: Mapping[str, str] = field(default_factory=dict)

    def run(
        self,
        *,
        run_id: str,
        holder: Holder,
        listener: Listener,
        interruption: Interruption,
        facts: Mapping[str, Any],
    ) -> RunResult:
        """Run the job and return the result; the history records the run from its start."""
        about = {"job": self.request.job, "phase": self.request.phase, "run": run_id}
        with span(f"job {self.request.job}", **about, project=self.project.name) as traced:
            result = self._run(self._begun(run_id, holder, facts), listener, interruption)
            traced.note(status=result.status.value)
            if not result.is_success:
                traced.fail(result.summary)
        return result

    def wanted(self, *, run_id: str, holder: Holder) -> tuple[Put, ...]:
        """Return the puts that record what the job is to build, as its run would begin; nothing runs."""
        plan, contexts = self.planned()
        run = self._begun(run_id, holder, {})
        return BuildRecorder(self.journal, run, plan, self.lake, contexts.refresh).wanted()

    def _begun(self, run_id: str, holder: Holder, facts: Mapping[str, Any]) -> Run:
        return Run(
            run_id=run_id,
            project=self.project.name,
            job=self.request.job,
            phase=self.request.phase.value,
            parameters=self.request.given,
            started=self.clock(),
            holder=holder,
            facts={**facts, **self.request.facts},
        )

    def _run(self, run: Run, listener: Listener, interruption: Interruption) -> RunResult:
        job = self.job
        jobs = self._jobs(job)
        plan, contexts = self.planned()
        if jobs > 1 and plan.status is not Planned.CLEAN:
            import_engine()
        builds = BuildRecorder(self.journal, run, plan, self.lake, contexts.refresh)
        wants = WantRecorder(self.journal, run, plan)
        run = self.journal.start_run(run, (*builds.wanted(), *wants.begun()))
        notifier = self._notifier(job, plan, contexts, run)
        lineage = self._lineage(job, contexts, run)
        listeners = [each for each in (listener, notifier, lineage) if each is not None]
        recorder = Recorder(self.journal, run, plan, listeners, builds, wants)
        options = replace(self._options(run, contexts, recorder, interruption), jobs=jobs)
        with notifier or nullcontext(), lineage or nullcontext():
            with self._ending(run, recorder):
                result = replace(execute(plan, options), started=run.started)
                recorder.flush()
                self._finish(run, result, Publisher(self.project, job, contexts).publish(result))
            for each in (notifier, lineage):
                if each is not None:
                    each.run_finished(result)
        return result

    def _options(
        self, run: Run, contexts: Contexts, recorder: Recorder, interruption: Interruption
    ) -> ExecutionOptions:
        is_over = Event()

        def cut_off() -> None:
            is_over.set()
            self.lake.abandon_start()
            self.lake.cancel_jobs()

        return ExecutionOptions(
            run_id=run.run_id,
            perform=StepRunner(
                contexts, self.lake, run.run_id, is_over.is_set, recorder.builds.content
            ).perform,
            clock=self.clock,
            listener=recorder,
            interruption=interruption,
            keep_going=self.request.keep_going,
            executions=self.job.executions,
            release=contexts.release,
            cut_off=cut_off,
        )

    @contextmanager
    def _ending(self, run: Run, recorder: Recorder) -> Iterator[None]:
        """Record the end of a run that an error outside its targets ends.

        If the result of a step can't be recorded, the run counts as aborted: what it left undone is not
        known, as of one that was killed.
        """
        try:
            yield
        except BaseException:
            try:
                recorder.flush()
                if recorder.is_complete:
                    failed = Status.FAILED.value
                    self.journal.finish_run(run, failed, finished=self.clock(), exit_code=1)
            except Exception as error:  # the first one is raised
                log.warning("the end of run %s is not recorded: %s", run.run_id, text_of(error))
            if not recorder.is_complete:
                self.journal.abort_run(run)
            raise

    def _finish(self, run: Run, result: RunResult, metrics: Sequence[Published]) -> None:
        is_chosen = self.job.metrics is not None
        facts = {"metrics": [metric.as_json() for metric in metrics]} if is_chosen else {}
        self.journal.finish_run(
            run, result.status.value, finished=result.finished, exit_code=result.exit_code, **facts
        )

    def _notifier(self, job: Job, plan: Plan, contexts: Contexts, run: Run) -> HookNotifier | None:
        if not job.hooks:
            return None
        of_job = self.project.job_scope(job, is_forced=self.request.force)

        def scope(instance: int | None) -> Scope:
            number = 0 if instance is None and len(contexts) == 1 else instance
            return of_job if number is None else contexts.of(number).workspace.scope

        def connect(named: str | Connection) -> Database:
            workspace = Workspace(self.project, of_job, self.lake)
            found = jdbc_connection(workspace, named, f"a hook of job {job.name!r}")
            return found.open(self.lake, {}).database

        return HookNotifier(
            job,
            plan,
            self.project,
            run.run_id,
            context=HookContext(str, self.environ, self.project.basedir, connect),
            scope=scope,
            redactor=self.journal.redactor,
            clock=self.clock,
        )

    def _lineage(self, job: Job, contexts: Contexts, run: Run) -> LineageListener | None:
        if not is_configured(self.project.config, self.environ):
            return None
        reporter = Reporter(self.project.config, self.environ, self.journal.redactor, self.clock)
        subject = reporter.subject(self.project.name, job.name, run.run_id, "JOB", job.description)
        return LineageListener(reporter, subject, run.run_id, contexts)

    def _jobs(self, job: Job) -> int:
        """Return how many targets run at once: as requested, as the job declares, or as configured."""
        configured = self.project.config.get(_PARALLELISM, "1")
        try:
            return self.request.jobs or job.parallelism or max(1, int(configured))
        except ValueError as error:
            raise SpecError.of(f"configuration {_PARALLELISM}: {configured!r} is not a number") from error

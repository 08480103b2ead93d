"""Notifying a job's hooks of the events of a run, as its steps start and finish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any, cast

from lakewright.errors import (
    CommitTooLate,
    DeleteBrakeError,
    Fault,
    ItemFailed,
    ItemLocked,
    LakewrightError,
    StorageUnavailable,
    StoreBusy,
    StoreUnavailable,
    retryable_codes,
)
from lakewright.manifest.lock import STALE_LOCKS
from lakewright.manifest.payload import text_of
from lakewright.manifest.redaction import Redactor
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.plan.step import Plan, Step
from lakewright.run.background import CallQueue
from lakewright.run.hooks.call import SECONDS
from lakewright.run.hooks.event import RUNNING, Event, Hook, HookContext
from lakewright.run.result import RunResult, TargetResult, status_of_part
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.job import Job
from lakewright.spec.project import Project

_STORAGE = frozenset({StorageUnavailable.code, StoreUnavailable.code, StoreBusy.code})
"""Codes of failures of the storage of the lake, or of the manifest."""

_PASSING = retryable_codes() - {CommitTooLate.code}
"""Codes of errors after which a slice is ready for the next run; see `lakewright.slices.validation`."""


@dataclass(slots=True)
class _Progress:
    """Progress of a phase, an instance or the whole run.

    Attributes:
        steps: How many steps it has.
        error: The error of the first target that failed, with its name.
        results: The results of the steps that have finished.
    """

    steps: int
    error: Fault | None = None
    started: float | None = None
    results: list[TargetResult] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return 0.0 if self.started is None else monotonic() - self.started


class HookNotifier:
    """Notifies hooks of the run that takes place in its `with` block; a background thread makes the calls.

    Args:
        job: The job, which declares the hooks.
        plan: The plan of the run.
        project: The project.
        run_id: The id of the run.
        context: What hooks make calls with, but for the names of an instance.
        scope: Returns the names of an instance by its index; for None, those of the job without arguments.
        redactor: Hides secrets in events.
        clock: Returns the present time, in UTC.
    """

    def __init__(
        self,
        job: Job,
        plan: Plan,
        project: Project,
        run_id: str,
        *,
        context: HookContext,
        scope: Callable[[int | None], Scope],
        redactor: Redactor,
        clock: Callable[[], datetime],
    ) -> None:
        self._job, self._hooks = job.name, cast("Sequence[Hook]", job.hooks)
        self._common: dict[str, Any] = {
            "project": project.name,
            "version": project.version or "",
            "run_id": run_id,
        }
        self._context, self._scope, self._redactor, self._clock = context, scope, redactor, clock
        self._parameters = [redactor.entries(instance.parameters) for instance in plan.instances]
        self._queue = CallQueue("hooks", seconds=SECONDS)
        self._run = _Progress(0)
        self._instances = [
            _Progress(sum(len(p.steps) for p in instance.phases)) for instance in plan.instances
        ]
        self._phases = {
            (index, phase.phase): _Progress(len(phase.steps))
            for index, instance in enumerate(plan.instances)
            for phase in instance.phases
        }

    def __enter__(self) -> HookNotifier:
        """Notify that the run has started."""
        self._run.started = monotonic()
        self._notify(None, self._event(None, "run", RUNNING))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Notify that the run ended with an error, if it did, and wait some time for the remaining calls."""
        if error is not None:
            fault = (
                error.as_fault()
                if isinstance(error, LakewrightError)
                else Fault(repr(error), code="unexpected")
            )
            event = self._event(None, "run", Status.FAILED.value)
            self._notify(None, replace(event, seconds=self._run.seconds, error=self._shown(fault)))
        self._queue.close()

    def run_finished(self, result: RunResult) -> None:
        """Notify that the run has finished, with its status."""
        event = self._event(None, "run", result.status.value)
        self._notify(None, replace(event, seconds=self._run.seconds, error=self._run.error))

    def step_started(self, instance: int, step: Step) -> None:
        """Notify that a step starts; with the first step, also that its phase and instance start."""
        of_instance, of_phase = self._instances[instance], self._phases[instance, step.phase]
        if of_instance.started is None:
            of_instance.started = monotonic()
            self._notify(instance, self._event(instance, "lifecycle", RUNNING))
        if of_phase.started is None:
            of_phase.started = monotonic()
            self._notify(instance, self._event(instance, "job", RUNNING, step.phase))
        self._notify(instance, self._target_event(instance, step, RUNNING))

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Notify that a step has finished; with the last step, also that its phase and instance have."""
        event = self._target_event(instance, step, result.status.value)
        ended = replace(
            event,
            seconds=result.seconds,
            error=self._shown(result.error),
            reasons=tuple(replace(each, params=self._redactor.value(each.params)) for each in result.reasons),
            metrics=self._redactor.value(dict(result.metrics)),
        )
        self._notify(instance, ended)
        for alert in _alerts(result):
            self._notify(instance, replace(ended, category="alert", alert=alert))
        if result.status.is_failure and ended.error is not None:
            error = ended.error.about(f"{step.target} in {step.phase}")
            for part in (self._phases[instance, step.phase], self._instances[instance], self._run):
                part.error = part.error or error
        for category, part, phase in (
            ("job", self._phases[instance, step.phase], step.phase),
            ("lifecycle", self._instances[instance], None),
        ):
            part.results.append(result)
            if len(part.results) == part.steps:
                status = status_of_part(part.results).value
                done = self._event(instance, category, status, phase)
                self._notify(instance, replace(done, seconds=part.seconds, error=part.error))

    def _shown(self, error: Fault | None) -> Fault | None:
        if error is None:
            return None
        text = self._redactor.text
        return replace(error, message=text(error.message), remedy=text(error.remedy or "") or None)

    def _event(self, instance: int | None, category: str, status: str, phase: Phase | None = None) -> Event:
        number = 0 if instance is None and len(self._parameters) == 1 else instance
        return Event(
            category=category,
            kind="job",
            name=self._job,
            status=status,
            job=self._job,
            parameters={} if number is None else self._parameters[number],
            at=self._clock(),
            phase=phase.value if phase else "",
            **self._common,
        )

    def _target_event(self, instance: int, step: Step, status: str) -> Event:
        event = self._event(instance, "target", status, step.phase)
        return replace(event, kind=step.kind, name=step.target, target=step.target)

    def _notify(self, instance: int | None, event: Event) -> None:
        for number, hook in enumerate(self._hooks, 1):
            label = f"hook {number} of job {self._job} ({hook.kind})"
            if self._queue.is_disabled(label):
                continue
            try:
                for call in hook.calls(event, self._context_of(instance, event)):
                    self._queue.send(label, partial(call.make, SECONDS), call.label)
            except Exception as error:  # an error in a hook must not fail the run
                self._queue.failed(label, text_of(error))

    def _context_of(self, instance: int | None, event: Event) -> HookContext:
        scope = self._scope(instance)
        # The project's names shadow the event's variables, as in Flowman.
        names = {name: text for name, text in event.variables().items() if name not in scope.names}
        return replace(self._context, render=scope.child(names).render)


def _alerts(result: TargetResult) -> Iterator[str]:
    """Yield the alerts that a target's result raises."""
    error = result.error
    yield from (error.details.get("alerts", ()) if error else ())
    if result.metrics.get(STALE_LOCKS) or (error and error.details.get("is_stale")):
        yield "stale_lock"
    if error is None or not result.status.is_failure:
        return
    if error.code in _STORAGE:
        yield "storage_failed"
    if error.code in _PASSING:
        return  # no slice is at fault
    is_slice = result.kind == "entity" and result.phase is Phase.BUILD and result.status is Status.FAILED
    if error.code == DeleteBrakeError.code:
        yield "delete_brake"
    elif error.code == ItemFailed.code or (is_slice and error.code != ItemLocked.code):
        yield "slice_failed"

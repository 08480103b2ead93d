"""How a run ended, and the history of runs as a value that a notebook shows as a table."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from lakewright.app import App
from lakewright.errors.phrase import Phrase
from lakewright.manifest.journal import Run
from lakewright.notebook import html_table
from lakewright.plan.status import Status
from lakewright.plan.step import Step
from lakewright.run.result import RunResult, TargetResult
from lakewright.slices.result import SliceReport

__all__ = ["RunEvent", "Runs", "Watcher", "tell_end", "watched"]

log = logging.getLogger("lakewright.run")

_INTERRUPTED = 130
"""The exit code of a run that Ctrl-C has ended."""


def tell_end(job: str, phase: str, result: RunResult) -> None:
    """Log how a run ended.

    Raises:
        KeyboardInterrupt: Ctrl-C ended it.
    """
    log.info("%s %s: %s", job, phase, result.summary, extra={"run_id": result.run_id, "job": job})
    if result.exit_code == _INTERRUPTED:
        raise KeyboardInterrupt(f"run {result.run_id} of {job} was interrupted")


class Runs(tuple[Run, ...]):
    """Runs of jobs, newest first."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        rows = (
            (
                run.job,
                run.phase.lower(),
                " ".join(f"{name}={value}" for name, value in run.parameters.items()),
                run.status,
                f"{run.started:%Y-%m-%d %H:%M:%S}",
                run.run_id,
            )
            for run in self
        )
        return html_table("Runs", ("job", "phase", "parameters", "status", "started", "run"), rows)


log = logging.getLogger("lakewright.run")

_LEVELS = {
    Status.FAILED: logging.ERROR,
    Status.BLOCKED: logging.WARNING,
    Status.ABORTED: logging.WARNING,
    Status.SUCCESS_WITH_ERRORS: logging.WARNING,
}


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something that happened in a run.

    Attributes:
        kind: `started` and `finished` for a target in a phase of an instance, `slice` for the end of a slice.
        run_id: Id of the run.
        instance: The index of the instance, from 0; None for slices.
        parameters: The parameters of the instance, as texts; empty for slices.
        phase: The phase, such as `BUILD`; for slices always that.
        target: Name of the target, or of the slice's entity.
        result: The result of the target, once it has finished.
        slice: The result of the slice or its error.
    """

    kind: Literal["started", "finished", "slice"]
    run_id: str
    instance: int | None
    parameters: Mapping[str, str]
    phase: str
    target: str
    result: TargetResult | None = None
    slice: SliceReport | None = None


class Watcher:
    """Passes the progress of a run on; an error of the callable is logged and does not disturb the run."""

    signal: int | None = None

    def __init__(
        self,
        run_id: str,
        instances: Sequence[Mapping[str, str]] = (),
        on_event: Callable[[RunEvent], None] | None = None,
        redact: Callable[[str], str] = str,
    ) -> None:
        self.run_id = run_id
        self.redact = redact
        self.instances = instances
        self.on_event = on_event
        self._lock = threading.Lock()

    def step_started(self, instance: int, step: Step) -> None:
        """Pass on that a step starts."""
        self._log(instance, step, "started")
        self._send(
            RunEvent("started", self.run_id, instance, self._of(instance), step.phase.value, step.target)
        )

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Pass on the result of a step."""
        why = "" if result.error is None else Phrase(": ", result.error.phrase)
        what = Phrase(f"ended: {result.status.value} in {result.seconds:.1f} s", why)
        self._log(instance, step, what, _LEVELS.get(result.status, logging.INFO))
        event = RunEvent(
            "finished", self.run_id, instance, self._of(instance), step.phase.value, step.target, result
        )
        self._send(event)

    def slice_ended(self, report: SliceReport) -> None:
        """Pass on the end of a slice."""
        self._send(RunEvent("slice", self.run_id, None, {}, "BUILD", report.entity, slice=report))

    def _of(self, instance: int) -> Mapping[str, str]:
        return self.instances[instance] if instance < len(self.instances) else {}

    def _log(self, instance: int, step: Step, what: str, level: int = logging.INFO) -> None:
        named = " ".join(f"{name}={value}" for name, value in self._of(instance).items())
        extra = {"run_id": self.run_id, "target": step.target, "phase": step.phase.value}
        text = Phrase.joined(" ", filter(None, (named, step.phase.value, step.target, what)))
        log.log(level, "%s", self.redact(text), extra=extra)

    def _send(self, event: RunEvent) -> None:
        if self.on_event is None:
            return
        with self._lock:  # slices end in the threads that process them
            try:
                self.on_event(event)
            except Exception:  # a listener only watches
                log.warning("on_event failed for %s of %s", event.kind, event.target, exc_info=True)


@contextmanager
def watched(app: App, watcher: Watcher) -> Iterator[Watcher]:
    """Pass the slices of a run to a watcher in the block."""
    before, app.on_slice = app.on_slice, watcher.slice_ended
    try:
        yield watcher
    finally:
        app.on_slice = before

"""An open project as the parts of the API share it: its app, its session, its runs as they go on and end."""

from __future__ import annotations

import contextlib
import inspect
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Literal

from lakewright.api.arguments import values_of
from lakewright.app import App
from lakewright.errors import Fault, LakewrightWarning, UsageError
from lakewright.errors.phrase import Phrase
from lakewright.errors.surfaces import in_python, message_of
from lakewright.lake.frames import frame_in
from lakewright.manifest.journal import Run
from lakewright.notebook import html_table
from lakewright.plan.status import Status
from lakewright.plan.step import Step, parameters_text
from lakewright.run.result import RunResult, TargetResult
from lakewright.slices.result import ProcessResult, SliceReport
from lakewright.spark.loggers import quiet_pyspark
from lakewright.usecases.process_slices import process_slices

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


log = logging.getLogger("lakewright.run")


@dataclass(slots=True, eq=False)
class Opened:
    """An open project, which is usable until it is closed.

    Attributes:
        given: The session that the caller gave, or None.
    """

    _app: App
    given: SparkSession | None = None
    _is_closed: bool = False
    _busy: Lock = field(default_factory=Lock)

    @property
    def app(self) -> App:
        """The project's app.

        Raises:
            UsageError: The project is closed.
        """
        if self._is_closed:
            raise UsageError(
                f"the project {self._app.project.name} is closed",
                remedy="Load it again: Project.load(…); a block `with` closes it at its end.",
            )
        return self._app

    def close(self) -> None:
        """Close the app's parts, and stop Spark if they started it; a second call does nothing."""
        self._is_closed = True
        self._app.close()

    @contextmanager
    def run(self) -> Iterator[str]:
        """Yield the id of a new run, which is the project's only one until the block ends.

        Raises:
            UsageError: Another thread, or a listener of a run, has the project run something.
        """
        if not self._busy.acquire(blocking=False):
            raise UsageError(
                "the project is running something already",
                remedy="Wait for it, or load the project once more: each Project runs one thing at a time.",
            )
        try:
            self.app.begin_run()
            with quiet_pyspark():
                yield self.app.run_id
        finally:
            self._busy.release()

    @property
    def session(self) -> SparkSession:
        """The caller's session: the given one, else the one that runs in this process, else one of ours."""
        if self.given is not None:
            return self.given
        from pyspark.sql import SparkSession

        own = self.app.lake.spark
        return SparkSession.getActiveSession() or own

    def values(self, values: Mapping[str, object]) -> Mapping[str, object]:
        """Return the values of names that a declaration uses, as a run of the project's jobs has them.

        Raises:
            SpecError, UsageError: A value is not of its parameter's type, or can't be that of a parameter.
        """
        project = self.app.project
        return values_of(project.jobs.values(), project.scope, values)

    def read(self, read: Callable[[App], DataFrame]) -> DataFrame:
        """Return the frame that a function reads, as one of the caller's session."""
        with quiet_pyspark(), warned():
            return frame_in(self.session, read(self.app))


_OURS = str(Path(__file__).parents[1])
_BETWEEN = (_OURS, contextlib.__file__)


@contextlib.contextmanager
def warned() -> Iterator[None]:
    """Issue what this thread logs as a warning in the block as a warning of Python, too, at its end.

    An error that ends the block is reported instead.
    """
    logger, found = logging.getLogger("lakewright"), _Collector()
    logger.addHandler(found)
    try:
        with _enabled(logger):
            yield
    finally:
        logger.removeHandler(found)
    for text in found.texts:
        warn(text)


@contextlib.contextmanager
def _enabled(logger: logging.Logger) -> Iterator[None]:
    """Let a logger pass warnings to its own handlers in the block, whatever level the program has set."""
    if logger.isEnabledFor(logging.WARNING):
        yield
        return
    level, propagates = logger.level, logger.propagate
    logger.setLevel(logging.WARNING)
    logger.propagate = False  # the program has asked for silence in its log
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.propagate = propagates


def warn_of(faults: Iterable[Fault]) -> None:
    """Log faults of a project as warnings, and issue them as warnings of Python."""
    with warned():
        for fault in faults:
            log.warning("%s", fault)


def warn(text: str) -> None:
    """Issue a warning to the caller of the API, with calls for the commands that it names.

    Python shows the line of the caller's program.
    """
    warnings.warn(in_python(text) or text, LakewrightWarning, stacklevel=_level_of_caller())


class _Collector(logging.Handler):
    """Keeps the warnings that the thread which made it logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        self._thread = get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message of a record."""
        if record.thread == self._thread:
            self.texts.append(message_of(record, lambda text: in_python(text) or text))


def _level_of_caller() -> int:
    """Return the level of the first frame outside of the package, counted from the function that asks."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame, level = frame.f_back, level + 1
    return level


def process_entity(opened: Opened, entity: str, slice: str | None = None, **options: Any) -> ProcessResult:
    """Process an entity's pending slices, or one of them, as one run; `process_slices` has the rules."""
    with opened.run():
        return process_slices(opened.app, entity, slice, **options)


_INTERRUPTED = 130
"""The exit code of a run that Ctrl-C has ended."""


def report_end(job: str, phase: str, result: RunResult) -> None:
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
                parameters_text(run.parameters),
                run.status,
                f"{run.started:%Y-%m-%d %H:%M:%S}",
                run.run_id,
            )
            for run in self
        )
        return html_table("Runs", ("job", "phase", "parameters", "status", "started", "run"), rows)


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
        self._lock = Lock()

    def step_started(self, instance: int, step: Step) -> None:
        """Pass on that a step starts."""
        self._pass_on("started", instance, step, "started")

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Pass on the result of a step."""
        why = "" if result.error is None else Phrase(": ", result.error.phrase)
        what = Phrase(f"ended: {result.status.value} in {result.seconds:.1f} s", why)
        self._pass_on("finished", instance, step, what, result)

    def slice_ended(self, report: SliceReport) -> None:
        """Pass on the end of a slice."""
        self._send(RunEvent("slice", self.run_id, None, {}, "BUILD", report.entity, slice=report))

    def _pass_on(
        self,
        kind: Literal["started", "finished"],
        instance: int,
        step: Step,
        what: str,
        result: TargetResult | None = None,
    ) -> None:
        parameters = self.instances[instance] if instance < len(self.instances) else {}
        place = (parameters_text(parameters), step.phase.value, step.target)
        extra = {"run_id": self.run_id, "target": step.target, "phase": step.phase.value}
        level = logging.INFO if result is None else _LEVELS.get(result.status, logging.INFO)
        log.log(level, "%s", self.redact(Phrase.joined(" ", filter(None, (*place, what)))), extra=extra)
        self._send(RunEvent(kind, self.run_id, instance, parameters, *place[1:], result))

    def _send(self, event: RunEvent) -> None:
        if self.on_event is None:
            return
        with self._lock:  # slices end in the threads that process them
            try:
                self.on_event(event)
            except Exception:  # a listener only watches
                log.warning("on_event failed for %s of %s", event.kind, event.target, exc_info=True)

"""While a command runs: its progress, on a terminal or in the log, and the signals that stop it."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

from lakewright.cli.output import Output
from lakewright.cli.page import Span, line, status
from lakewright.due.time_left import TimedSlice, time_left
from lakewright.errors import StoreUnavailable
from lakewright.manifest.lease import LEASE, Lease
from lakewright.spec.words import counted, duration

if TYPE_CHECKING:
    from rich.text import Text

    from lakewright.app import App
    from lakewright.cli.call import Call
    from lakewright.manifest.store import Store
    from lakewright.plan.step import Step
    from lakewright.run.execution import Listener
    from lakewright.run.result import TargetResult
    from lakewright.slices.result import SliceReport
    from lakewright.usecases.due.work_done import Pace


log = logging.getLogger(__name__)

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_A_SECOND = 8
SECONDS_BETWEEN_QUESTIONS = 1.0


@dataclass(slots=True)
class SlicesInProgress:
    """Returns the slices that a run has locked; it reads the manifest at most once a second."""

    store: Store
    run_id: str
    clock: Callable[[], float] = monotonic
    _asked: float = -inf
    _known: tuple[str, ...] = ()

    def __call__(self) -> tuple[str, ...]:
        """Return their items; the last known ones if reading fails."""
        if self.clock() - self._asked >= SECONDS_BETWEEN_QUESTIONS:
            self._asked = self.clock()
            with suppress(StoreUnavailable):
                self._known = tuple(self._ask())
        return self._known

    def _ask(self) -> Iterator[str]:
        from lakewright.targets.lease import leased_resource

        for document in self.store.documents(LEASE):
            lease = Lease.from_document(document)
            if lease.holder.run_id == self.run_id and leased_resource(lease.key) is None:
                yield lease.key


def _short(item: str) -> str:
    """Return the folder and the name of a slice, as `regions/2022-01-01`."""
    return "/".join(item.rstrip("/").split("/")[-2:])


@dataclass(slots=True)
class _Due:
    """The slices of one entity that are due.

    Attributes:
        total: How many there were.
        rest: The bytes of those that have not ended, by their items.
        known: The slices of the entity that were processed last.
        rows: The rows in those that have ended.
        since: When the last one ended, or the first one was begun; None before.
    """

    total: int
    rest: dict[str, int]
    known: list[TimedSlice]
    rows: int = 0
    since: float | None = None

    def text(self, locked: Sequence[str], now: float) -> str:
        """Return which of the slices are processed, how long the rest will take, and the rows so far.

        A narrow terminal cuts the end of it.
        """
        self.since = now if self.since is None else self.since
        first = self.total - len(self.rest) + 1
        last = first + len(locked) - 1
        number = f"slice {first:,}" if first == last else f"slices {first:,} to {last:,}"
        left = round(time_left(self.known, list(self.rest.values()), now - self.since) or 0)
        left_text = f"about {duration(left) if left >= 60 else f'{left} s'} left" if left > 0 else ""
        rows = counted(self.rows, "row") if self.rows else ""
        parts = ", ".join(filter(None, (f"{number} of {self.total:,}", left_text, rows)))
        return f"{parts}: {_short(locked[0])}"


@dataclass
class SlicesDue:
    """The slices that are due, and how long they will take by those that have ended."""

    clock: Callable[[], float] = monotonic
    _by_item: dict[str, _Due] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def expect(self, pace: Pace) -> None:
        """Expect the slices of one entity."""
        due = _Due(len(pace.sizes), dict(pace.sizes), list(pace.known))
        with self._lock:
            self._by_item |= dict.fromkeys(pace.sizes, due)

    def slice_ended(self, report: SliceReport) -> None:
        """Count a slice; slices end in the threads that process them."""
        with self._lock:
            due = self._by_item.get(report.item_id)
            size = None if due is None else due.rest.pop(report.item_id, None)
            if due is None or size is None:
                return
            due.since = self.clock()
            if report.result is not None:
                due.known.append(TimedSlice(size, report.result.summary.seconds))
                due.rows += report.result.summary.records_in_slice

    def texts(self, locked: Sequence[str]) -> list[str]:
        """Return a text for each entity whose slices are locked, and for each slice that was not expected."""
        found: dict[int, tuple[_Due, list[str]]] = {}
        others = []
        with self._lock:
            for item in locked:
                due = self._by_item.get(item)
                if due is None:
                    others.append(f"slice {_short(item)}")
                elif item in due.rest:  # the locks were read up to a second ago
                    found.setdefault(id(due), (due, []))[1].append(item)
            now = self.clock()
            return [*(due.text(items, now) for due, items in found.values()), *others]


def named(step: Step, instances: Sequence[str], instance: int) -> str:
    """Return a step in words, after the number and the parameters of its instance if there are several.

    Example:
        >>> from types import SimpleNamespace
        >>> step = SimpleNamespace(phase="BUILD", target="raw")
        >>> named(step, ["day=2022-01-01", "day=2022-01-02"], 1)
        '[2/2] day=2022-01-02 BUILD raw'
    """
    has_place = len(instances) > 1 and instance < len(instances)
    place = (f"[{instance + 1}/{len(instances)}]", instances[instance]) if has_place else ()
    return " ".join(filter(None, (*place, step.phase, step.target)))


@contextmanager
def watching(
    output: Output,
    app: App,
    instances: Sequence[str] = (),
    due: SlicesDue | None = None,
    **about: str,
) -> Iterator[Listener]:
    """Yield the listener that shows progress on this output; its drawing is removed afterwards.

    Args:
        output: The output of the command.
        app: The project that runs.
        instances: The parameters of each instance, as text.
        due: The slices that are due, where they are known.
        about: Fields that each log line has in addition to the run's id.
    """
    if not output.is_live:
        logged = LoggedProgress({"run_id": app.run_id, **about}, instances)
        with _reporting(app, logged.spark_starting, app.on_slice):
            yield logged
        return
    from rich.live import Live

    due = due or SlicesDue()
    progress = LiveProgress(output, SlicesInProgress(app.store, app.run_id), instances, due)
    with (
        _reporting(app, progress.spark_starting, due.slice_ended),
        output.drawing() as console,
        Live(
            console=console,
            get_renderable=progress.now,
            transient=True,
            refresh_per_second=FRAMES_A_SECOND,
        ),
    ):
        yield progress


@contextmanager
def _reporting(
    app: App, starting: Callable[[], AbstractContextManager[None]], on_slice: Callable[[SliceReport], None]
) -> Iterator[None]:
    """Report the start of Spark and the end of slices in the `with` block."""
    before = app.lake.starting, app.on_slice
    app.lake.starting, app.on_slice = starting, on_slice
    try:
        yield
    finally:
        app.lake.starting, app.on_slice = before


@contextmanager
def working(output: Output, text: str) -> Iterator[None]:
    """Show a text with a spinner on a terminal in the `with` block."""
    if not output.is_live:
        yield
        return
    with output.drawing() as console, console.status(text):
        yield


@dataclass(frozen=True, slots=True)
class LoggedProgress:
    """Logs a line when a step starts and when it ends.

    Attributes:
        about: Fields that each line has.
        instances: The parameters of each instance, as text.
    """

    about: Mapping[str, str]
    instances: Sequence[str] = ()

    @contextmanager
    def spark_starting(self) -> Iterator[None]:
        """Log that Spark starts, and when it has started."""
        begin = monotonic()
        log.info("Spark starts", extra=self.about)
        yield
        log.info("Spark started", extra={**self.about, "seconds": round(monotonic() - begin, 3)})

    def step_started(self, instance: int, step: Step) -> None:
        """Log that a step starts."""
        log.info("%s started", named(step, self.instances, instance), extra=self._extra(instance, step))

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Log the result of a step; a skipped step only with `-vv`."""
        level = logging.INFO if result.status.is_success else logging.WARNING
        if result.status.value == "SKIPPED":
            level = logging.DEBUG
        extra = self._extra(instance, step) | {
            "status": result.status.value,
            "seconds": round(result.seconds, 3),
        }
        log.log(level, "%s ended", named(step, self.instances, instance), extra=extra)

    def _extra(self, instance: int, step: Step) -> dict[str, object]:
        return {**self.about, "instance": instance, "phase": step.phase.value, "target": step.target}


@dataclass
class LiveProgress:
    """Draws one line with the steps in progress; finished steps scroll away above it.

    Attributes:
        slices: Returns the slices that the run has locked.
        instances: The parameters of each instance, as text.
        due: The slices that are due.
    """

    output: Output
    slices: Callable[[], tuple[str, ...]]
    instances: Sequence[str] = ()
    due: SlicesDue = field(default_factory=SlicesDue)
    clock: Callable[[], float] = monotonic
    _in_progress: dict[tuple[int, str], tuple[Step, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: int = 0
    _starting: float | None = None

    def __post_init__(self) -> None:
        self._begin = self.clock()

    @contextmanager
    def spark_starting(self) -> Iterator[None]:
        """Show that Spark starts, and leave a line of its own when it has started."""
        self._starting = self.clock()
        try:
            yield
            length = duration(self.clock() - self._starting)
            self.output.note(line(Span(f"Spark started {length}", "dim")))
        finally:
            self._starting = None

    def step_started(self, instance: int, step: Step) -> None:
        """Show a step as in progress."""
        with self._lock:
            self._in_progress[instance, step.target] = (step, self.clock())

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Remove a step from the line; a step that ran leaves a line of its own."""
        with self._lock:
            was_in_progress = self._in_progress.pop((instance, step.target), None)
            self._ended += 1
        if was_in_progress is not None or result.status.is_failure:
            where = f" {named(step, self.instances, instance)}"
            time = Span(f" {duration(result.seconds)}", "dim")
            self.output.note(line(status(result.status.value), where, time))

    def now(self) -> Text:
        """Return the current line."""
        from rich.text import Text

        now = self.clock()
        frame = FRAMES[int(now * FRAMES_A_SECOND) % len(FRAMES)]
        with self._lock:
            shown = [
                f"{named(step, self.instances, instance)} {duration(now - since)}"
                for (instance, _), (step, since) in self._in_progress.items()
            ]
        if self._starting is not None:
            shown.append(f"starting Spark {duration(now - self._starting)}")
        slices = self.due.texts(self.slices())
        if self._ended or shown:
            shown.insert(0, f"{self._ended} done")
        parts = [
            f"{frame} {duration(now - self._begin)}",
            *(shown + slices or ["checking what there is to do"]),
        ]
        return Text(", ".join(parts), style="cyan", no_wrap=True, overflow="ellipsis")


SIGNALS = (signal.SIGINT, signal.SIGTERM)


HANG_UP = (signal.SIGHUP,)

AT_ONCE = "Stopping at once: Spark is starting, and nothing has run."

AFTER_COMMIT = "Stopping after the current commit; a second signal stops at once."


@dataclass(slots=True)
class Stopper:
    """Remembers the signal that asked a run to stop; see `listening`.

    Attributes:
        signal: The number of the signal, or None.
    """

    announce: Callable[[str], None]
    message: str
    is_starting: Callable[[], bool]
    signal: int | None = None

    def receive(self, number: int, frame: FrameType | None = None) -> None:
        """Handle a signal: remember the first one, stop immediately on the second or while Spark starts.

        Raises:
            KeyboardInterrupt: The command stops at once; its argument is the number of the first signal.
        """
        if self.signal is not None:
            raise KeyboardInterrupt(self.signal)
        self.signal = number
        if self.is_starting():
            self.announce(AT_ONCE)
            raise KeyboardInterrupt(number)
        self.announce(self.message)


def _has_lost_jvm(error: BaseException) -> bool:
    from lakewright.spark.jvm import is_jvm_failure

    return isinstance(error, (ConnectionError, EOFError)) or is_jvm_failure(error)


@contextmanager
def listening(
    announce: Callable[[str], None],
    *,
    extra: Sequence[signal.Signals] = (),
    message: str = AFTER_COMMIT,
    is_starting: Callable[[], bool] = lambda: False,
) -> Iterator[Stopper]:
    """Yield a stopper that receives signals in the `with` block; earlier handlers are restored after it.

    Args:
        announce: Receives the message when the first signal comes.
        extra: Signals to receive besides Ctrl-C and SIGTERM.
        message: What is announced.
        is_starting: Whether Spark is starting, so that there is no commit to wait for.
    """
    stopper = Stopper(announce, message, is_starting)
    if threading.current_thread() is not threading.main_thread():
        yield stopper
        return
    before = {number: signal.signal(number, stopper.receive) for number in (*SIGNALS, *extra)}
    try:
        yield stopper
    except Exception as error:
        if stopper.signal is None or not _has_lost_jvm(error):
            raise
        # The signal went to the whole group of processes, and the JVM ended before this one.
        raise KeyboardInterrupt(stopper.signal) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def listening_to_run(call: Call) -> AbstractContextManager[Stopper]:
    """Return a `with` block for a command that may start Spark; see `listening`."""
    return listening(call.output.note, is_starting=lambda: call.app.lake.is_starting)

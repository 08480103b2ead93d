"""What is seen while a run goes on: a line that moves on a terminal, a log line a step elsewhere."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from lakewright.cli.output import Output
from lakewright.cli.page import Span, line
from lakewright.cli.render.words import seconds, status

if TYPE_CHECKING:
    from rich.text import Text

    from lakewright.plan.step import Step
    from lakewright.run.execute import Listener
    from lakewright.run.result import TargetResult

__all__ = ["LiveProgress", "LoggedProgress", "watching", "working"]

log = logging.getLogger(__name__)

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_A_SECOND = 8


@contextmanager
def watching(output: Output, **about: str) -> Iterator[Listener]:
    """Yield the listener that suits where the command prints; what it draws is gone afterwards.

    Args:
        output: Where it prints.
        about: What each log line carries: `run_id`, `job`.
    """
    if not output.is_live:
        yield LoggedProgress(about)
        return
    from rich.live import Live

    progress = LiveProgress(output)
    with (
        output.drawing() as console,
        Live(
            console=console, get_renderable=progress.now, transient=True, refresh_per_second=FRAMES_A_SECOND
        ),
    ):
        yield progress


@contextmanager
def working(output: Output, text: str) -> Iterator[None]:
    """Show on a terminal that something goes on that can't tell how far it is."""
    if not output.is_live:
        yield
        return
    with output.drawing() as console, console.status(text):
        yield


class LoggedProgress:
    """Logs a line where a step begins and where it ends."""

    def __init__(self, about: Mapping[str, str]) -> None:
        self._about = about

    def step_started(self, instance: int, step: Step) -> None:
        """Log that a step begins."""
        log.info("%s %s started", step.phase, step.target, extra=self._extra(instance, step))

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Log how a step ended; one that had nothing to do is only worth a line with `-vv`."""
        level = logging.INFO if result.status.is_success else logging.WARNING
        if result.status.value == "SKIPPED":
            level = logging.DEBUG
        extra = self._extra(instance, step) | {
            "status": result.status.value,
            "seconds": round(result.seconds, 3),
        }
        log.log(level, "%s %s ended", step.phase, step.target, extra=extra)

    def slice_started(self, target: str, item: str) -> None:
        """Log that a slice begins."""
        log.info("processing a slice", extra={**self._about, "target": target, "item": item})

    def _extra(self, instance: int, step: Step) -> dict[str, object]:
        return {**self._about, "instance": instance, "phase": step.phase.value, "target": step.target}


class LiveProgress:
    """Draws one line with the steps at hand; finished ones scroll away above it."""

    def __init__(self, output: Output, clock: Callable[[], float] = monotonic) -> None:
        self._output = output
        self._clock = clock
        self._begin = clock()
        self._lock = threading.Lock()
        self._at_hand: dict[tuple[int, str], tuple[Step, float]] = {}
        self._slices: dict[str, str] = {}
        self._ended = 0

    def step_started(self, instance: int, step: Step) -> None:
        """Show a step as being at hand."""
        with self._lock:
            self._at_hand[instance, step.target] = (step, self._clock())

    def step_finished(self, instance: int, step: Step, result: TargetResult) -> None:
        """Take a step off; one that did something leaves a line."""
        with self._lock:
            was_at_hand = self._at_hand.pop((instance, step.target), None)
            self._slices.pop(step.target, None)
            self._ended += 1
        if was_at_hand is not None or result.status.is_failure:
            time = Span(f" {seconds(result.seconds)}", "dim")
            self._output.note(line(status(result.status.value), f" {step.phase} {step.target}", time))

    def slice_started(self, target: str, item: str) -> None:
        """Show a slice beside its target."""
        with self._lock:
            self._slices[target] = item.rstrip("/").rpartition("/")[2]

    def now(self) -> Text:
        """Return the line as it is to be drawn now."""
        from rich.text import Text

        now = self._clock()
        frame = FRAMES[int(now * FRAMES_A_SECOND) % len(FRAMES)]
        with self._lock:
            shown = [self._step(step, now - since) for step, since in self._at_hand.values()]
        head = f"{frame} {seconds(now - self._begin)}"
        done = f"{self._ended} done" if self._ended or shown else "planning"
        return Text(", ".join([head, done, *shown]), style="cyan", no_wrap=True, overflow="ellipsis")

    def _step(self, step: Step, length: float) -> str:
        slice_name = self._slices.get(step.target)
        of_slice = f" slice {slice_name}" if slice_name else ""
        return f"{step.phase} {step.target}{of_slice} {seconds(length)}"

"""The `report` and `simpleReport` hooks: a text file that tells what a run did."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field as Declared

from lakewright.run.hooks.call import Call
from lakewright.run.hooks.event import RUNNING, Event, Hook, HookContext
from lakewright.spec.models.base import from_text
from lakewright.spec.models.job import MetricBoard

__all__ = ["FileCall", "ReportHook", "SimpleReportHook"]


@dataclass(frozen=True, slots=True)
class FileCall:
    """Text for a file."""

    path: Path
    text: str = field(repr=False)
    is_new: bool = False

    @property
    def label(self) -> str:
        """The path of the file."""
        return str(self.path)

    def make(self, seconds: float) -> None:
        """Add the text to the file, or begin the file with it.

        Raises:
            OSError: The file can't be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("w" if self.is_new else "a", encoding="utf-8") as file:
            file.write(self.text)


class SimpleReportHook(Hook):
    """Writes a text file with a line for each target and phase that has finished."""

    location: str = Declared(min_length=1, description="Path of the file, relative to the project's folder.")
    mode: Annotated[Literal["overwrite", "append"], from_text(str.lower)] = Declared(
        default="overwrite", description="Whether a run begins the file anew or adds to it."
    )

    def texts(self) -> Iterator[str]:
        """Yield the path."""
        yield self.location

    def calls(self, event: Event, context: HookContext) -> Iterator[Call]:
        """Yield the text of an event: a heading for the run, a line for whatever has finished."""
        path = context.folder / context.render(self.location)
        if event.category == "run" and event.status == RUNNING:
            heading = f"{event.project} {event.job} {event.run_id} {event.at:%Y-%m-%d %H:%M:%S}\n"
            yield FileCall(path, heading, is_new=self.mode == "overwrite")
        elif event.status != RUNNING and event.category in ("target", "job", "run"):
            yield FileCall(path, self.line(event, context) + "\n")

    def line(self, event: Event, context: HookContext) -> str:
        """Return the line for something that has finished."""
        return _line(event, {name: value for name, value in event.metrics.items() if _is_number(value)})


class ReportHook(SimpleReportHook):
    """Writes the same file as `simpleReport`, with the metrics that a board selects."""

    metrics: MetricBoard | None = Declared(
        default=None, description="The metrics to show, with their names; default: those of the targets."
    )

    def texts(self) -> Iterator[str]:
        """Yield the path, and the labels of the metrics."""
        yield from super().texts()
        if self.metrics is not None:
            for labels in (self.metrics.labels, *(metric.labels for metric in self.metrics.metrics)):
                yield from labels.values()

    def line(self, event: Event, context: HookContext) -> str:
        """Return the line with the chosen metrics and their labels."""
        if self.metrics is None:
            return super().line(event, context)
        shown: dict[str, object] = {}
        found = {name: value for name, value in event.metrics.items() if _is_number(value)}
        if event.seconds is not None and event.category in ("job", "target"):
            found[f"{event.category}_runtime"] = round(event.seconds * 1000)
        for chosen in self.metrics.metrics:
            for name, value in found.items():
                if _matches(name, chosen.selector.name) and all(
                    _matches(event.variables().get(key, ""), pattern)
                    for key, pattern in chosen.selector.labels.items()
                ):
                    labels = {**self.metrics.labels, **chosen.labels}
                    inside = ",".join(f"{key}={context.render(text)}" for key, text in labels.items())
                    shown[f"{chosen.name or name}{{{inside}}}" if inside else chosen.name or name] = value
        return _line(event, shown)


def _line(event: Event, metrics: Mapping[str, object]) -> str:
    what = f"target {event.name}" if event.category == "target" else event.category
    parts = [f"{event.at:%Y-%m-%d %H:%M:%S}", event.status, event.phase, what]
    if event.seconds is not None:
        parts.append(f"{event.seconds:.1f} s")
    parts += [f"{name}={value}" for name, value in metrics.items()]
    if event.error is not None:
        parts.append(event.error.message)
    elif event.reasons:
        parts.append("; ".join(event.reasons))
    return " ".join(part for part in parts if part)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _matches(text: str, pattern: str | None) -> bool:
    return pattern is None or re.fullmatch(pattern, text) is not None

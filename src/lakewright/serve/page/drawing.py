"""Drawings of the page, as positions of shapes: bars of slices, the graph of the lineage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from markupsafe import Markup

from lakewright.documentation.document import Ref
from lakewright.documentation.pages.layout import Box, lay_out, shortened, svg_path
from lakewright.lake.row_counts import RowCount
from lakewright.serve.page.render import link
from lakewright.usecases.data_flow import Flows
from lakewright.usecases.entities import SliceEntry

HEIGHT, SECONDS_HEIGHT = 120.0, 36.0
ROWS_HEIGHT = 72.0
STEP, THICK = 14.0, 10.0
COLOURS = {"inserted": "in", "updated": "up", "deleted": "del"}

LETTER, PADDING = 7.4, 34.0


class Segment(NamedTuple):
    """A part of a bar; `kind` is its class."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """What one slice changed, and how long it took."""

    entry: SliceEntry
    x: float
    segments: tuple[Segment, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Bars:
    """The latest slices, the oldest on the left.

    Attributes:
        longest: The seconds of the slice that took longest.
    """

    bars: tuple[Bar, ...]
    width: float
    height: float
    longest: float


def draw_bars(newest_first: Sequence[SliceEntry]) -> Bars:
    """Return the drawing of slices."""
    oldest_first = list(newest_first)[::-1]
    most = max((sum(_counts(each).values()) for each in oldest_first), default=0.0) or 1.0
    longest = max((_seconds(each) for each in oldest_first), default=0.0) or 1.0
    bars = tuple(
        Bar(each, at * STEP, tuple(_segments(each, most)), _seconds(each) / longest * SECONDS_HEIGHT)
        for at, each in enumerate(oldest_first)
    )
    return Bars(bars, max(1, len(bars)) * STEP, HEIGHT, longest)


def _segments(entry: SliceEntry, most: float) -> list[Segment]:
    if entry.verdict.value != "processed":
        return [Segment(entry.verdict.value, HEIGHT - 12.0, 12.0)]
    found: list[Segment] = []
    low = HEIGHT
    for effect, count in _counts(entry).items():
        height = max(1.5, count / most * (HEIGHT - 8)) if count else 0.0
        if height:
            low -= height
            found.append(Segment(COLOURS[effect], low, height))
    return found or [Segment("none", HEIGHT - 2.0, 2.0)]


def _counts(entry: SliceEntry) -> dict[str, float]:
    counts = {effect: _number(entry.metrics.get(effect)) for effect in ("inserted", "updated")}
    return {**counts, "deleted": float(entry.deleted_rows)}


def _seconds(entry: SliceEntry) -> float:
    return _number(entry.metrics.get("seconds"))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


@dataclass(frozen=True, slots=True)
class RowLine:
    """The rows of a table over its latest versions, the oldest on the left.

    Attributes:
        path: The line as an SVG path.
        most: The largest number of rows.
    """

    points: Sequence[RowCount]
    path: str
    width: float
    height: float
    most: int


def draw_rows(oldest_first: Sequence[RowCount]) -> RowLine:
    """Return the drawing of row counts, as a line in steps: a table keeps its rows until the next version."""
    most = max((each.rows for each in oldest_first), default=0)
    heights = [ROWS_HEIGHT - each.rows / (most or 1) * (ROWS_HEIGHT - 6) for each in oldest_first]
    steps = [f"V{height:.1f} H{at * STEP:.1f}" for at, height in enumerate(heights, 1)]
    path = " ".join([f"M0.0 {heights[0]:.1f}", *steps]) if heights else ""
    return RowLine(oldest_first, path, max(1, len(heights)) * STEP, ROWS_HEIGHT, most)


class FlowBox(NamedTuple):
    """The box of an item in the lineage.

    Attributes:
        named: `CATEGORY:NAME`, by which lines and the search refer to it.
        shape: Its rectangle and dot, as SVG. It is only numbers, and written once: a page has hundreds.
        text_at: The position of its label, as attributes.
    """

    ref: Ref
    place: Box
    label: str
    href: str
    named: str
    shape: Markup
    text_at: Markup


class FlowLine(NamedTuple):
    """A line of the lineage, between two boxes.

    Attributes:
        start: The name of the box where it starts.
        end: The name of the box where it ends.
        path: The line as an SVG path.
    """

    start: str
    end: str
    path: Markup


@dataclass(frozen=True, slots=True)
class FlowDrawing:
    """The lineage: boxes, lines between them as SVG paths, and the items that nothing connects."""

    width: float
    height: float
    boxes: tuple[FlowBox, ...]
    lines: tuple[FlowLine, ...]
    alone: tuple[Ref, ...]


@lru_cache(maxsize=4096)
def focus_link(ref: Ref) -> str:
    """Return the address of the lineage around an item."""
    return link("/lineage", focus=_named(ref))


def _named(ref: Ref) -> str:
    return f"{ref.category}:{ref.name}"


def _flow_box(ref: Ref, place: Box) -> FlowBox:
    x, y, width, height = place
    shape = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6"/>'
        f'<circle cx="{x + 13:.1f}" cy="{y + height / 2:.1f}" r="4"/>'
    )
    text_at = f'x="{x + 24:.1f}" y="{y + height / 2 + 4:.1f}"'
    label, href = shortened(ref.name), focus_link(ref)
    return FlowBox(ref, place, label, href, _named(ref), Markup(shape), Markup(text_at))  # noqa: S704


def draw_flows(flows: Flows) -> FlowDrawing:
    """Return the drawing of a flow of data."""
    widths = {ref: len(shortened(ref.name)) * LETTER + PADDING for ref in flows.nodes}
    drawing = lay_out(widths, flows.edges)
    boxes = tuple(_flow_box(ref, place) for ref, place in drawing.boxes.items())
    lines = tuple(
        FlowLine(_named(a), _named(b), Markup(svg_path(way)))  # noqa: S704 - it is only numbers
        for (a, b), way in drawing.lines.items()
    )
    alone = tuple(ref for ref in flows.nodes if ref not in drawing.boxes)
    return FlowDrawing(drawing.width + 20, drawing.height + 20, boxes, lines, alone)

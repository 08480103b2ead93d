"""The lineage of a project as a drawing: a box for each item, a line from each item to those that read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lakewright.documentation.document import Document, Item, Ref
from lakewright.documentation.pages.layout import Box, lay_out
from lakewright.documentation.pages.words import where

__all__ = ["Graph", "GraphBox", "GraphLine", "lineage_graph"]

MOST_BOXES = 300
"""A larger drawing leaves the mappings out."""

LONGEST = 28
LETTER, PADDING, MARGIN = 7.2, 26.0, 10.0

_ROUNDING = {"mapping": 15.0, "target": 2.0}
"""Corner radius in pixels by category; mappings are drawn as pills, half as high as a box."""


class GraphLine(NamedTuple):
    """A line from an item to one that reads it; `path` is the SVG path."""

    start: Ref
    end: Ref
    path: str


class GraphBox(NamedTuple):
    """The box of an item; `title` shows when a pointer rests on it."""

    item: Item
    place: Box
    label: str
    title: str
    rounding: float


@dataclass(frozen=True, slots=True)
class Graph:
    """A drawing, in pixels; width and height include the margin on all sides."""

    width: float
    height: float
    margin: float
    lines: tuple[GraphLine, ...]
    boxes: tuple[GraphBox, ...]


def lineage_graph(document: Document) -> Graph | None:
    """Return the drawing, or None if no item reads another."""
    items = {item.ref: item for item in document.items}
    if len({ref for edge in document.edges() for ref in edge}) > MOST_BOXES:
        document = document.only(lambda ref: ref.category != "mapping")
    widths = {ref: len(_short(ref.name)) * LETTER + PADDING for ref in items}
    drawing = lay_out(widths, document.edges())
    if not drawing.boxes:
        return None
    return Graph(
        drawing.width + 2 * MARGIN,
        drawing.height + 2 * MARGIN,
        MARGIN,
        tuple(GraphLine(a, b, " ".join(_segments(points))) for (a, b), points in drawing.lines.items()),
        tuple(_box(items[ref], place) for ref, place in drawing.boxes.items()),
    )


def _box(item: Item, place: Box) -> GraphBox:
    description = f": {item.description}" if item.description else ""
    title = f"{where(item.ref)} ({item.kind}){description}"
    return GraphBox(item, place, _short(item.ref.name), title, _ROUNDING.get(item.ref.category, 6.0))


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _segments(points: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Yield the commands of an SVG path: straight where two points are level, else a curve."""
    x, y = points[0]
    yield f"M{x:.1f} {y:.1f}"
    for next_x, next_y in points[1:]:
        half = (next_x - x) / 2
        is_level = abs(next_y - y) < 0.5
        yield (
            f"L{next_x:.1f} {next_y:.1f}"
            if is_level
            else f"C{x + half:.1f} {y:.1f} {next_x - half:.1f} {next_y:.1f} {next_x:.1f} {next_y:.1f}"
        )
        x, y = next_x, next_y

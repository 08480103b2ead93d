"""The lineage of a project as an SVG drawing: boxes that lead to their items, lines from what is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from lakewright.documentation.document import Document, Item
from lakewright.documentation.pages.layout import Box, lay_out
from lakewright.documentation.pages.words import anchor, where

__all__ = ["graph_svg"]

MOST_BOXES = 300
"""Of a larger drawing the mappings are left out."""

LONGEST = 28
LETTER, PADDING, MARGIN = 7.2, 26.0, 10.0


def graph_svg(document: Document) -> str:
    """Return the drawing, or an empty text where nothing is joined to anything."""
    items = {item.ref: item for item in document.items}
    if len({ref for edge in document.edges() for ref in edge}) > MOST_BOXES:
        document = document.only(lambda ref: ref.category != "mapping")
    widths = {ref: len(_short(ref.name)) * LETTER + PADDING for ref in items}
    drawing = lay_out(widths, document.edges())
    if not drawing.boxes:
        return ""
    wide, high = drawing.width + 2 * MARGIN, drawing.height + 2 * MARGIN
    lines = "".join(
        f'<path class="line" data-from="{anchor(a)}" data-to="{anchor(b)}" d="{_curve(points)}"/>'
        for (a, b), points in drawing.lines.items()
    )
    boxes = "".join(_box(items[ref], box) for ref, box in drawing.boxes.items())
    return (
        f'<svg class="graph" role="img" aria-label="Lineage" width="{wide:.0f}" height="{high:.0f}" '
        f'viewBox="{-MARGIN:.0f} {-MARGIN:.0f} {wide:.0f} {high:.0f}">{lines}{boxes}</svg>'
    )


def _box(item: Item, box: Box) -> str:
    name = anchor(item.ref)
    rounded = {"mapping": box.height / 2, "target": 2}.get(item.ref.category, 6)
    bad = " bad" if item.is_bad else ""
    return (
        f'<a class="box {item.ref.category}{bad}" href="#{name}" data-name="{name}">'
        f"<title>{escape(_told(item))}</title>"
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{rounded:g}"/>'
        f'<text x="{box.x + box.width / 2:.1f}" y="{box.y + box.height / 2 + 4:.1f}">'
        f"{escape(_short(item.ref.name))}</text></a>"
    )


def _told(item: Item) -> str:
    return f"{where(item.ref)} ({item.kind}){': ' + item.description if item.description else ''}"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _curve(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(_segments(points))


def _segments(points: Sequence[tuple[float, float]]) -> Iterator[str]:
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

"""Watermarks after a rewind: they follow from the slices that the table holds then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lakewright.manifest.watermark import Watermark

if TYPE_CHECKING:
    from lakewright.slices.applied import AppliedSlice
    from lakewright.slices.context import ProcessingContext

__all__ = ["greatest_marks", "watermarks_after", "watermarks_of"]


def watermarks_of(slices: Iterable[AppliedSlice]) -> dict[str, Watermark]:
    """Return the greatest watermark of each column among slices."""
    return {column: Watermark.from_json(mark) for column, mark in greatest_marks(slices).items()}


def watermarks_after(
    context: ProcessingContext, gone: frozenset[str], left: Iterable[AppliedSlice]
) -> dict[str, Any]:
    """Return the watermarks that change: those that came from rewound slices, by the slices that are left.

    A watermark that an operator set, or that came from another slice, stays.

    Args:
        context: The context of the processing.
        gone: Ids of the items that the table does not hold any more, or holds by other commits.
        left: The slices that it holds.
    """
    present = context.ledger.watermarks.all(prefix=f"{context.application}/")
    lost = {each.column for each in present if each.item_id in gone}
    greatest = greatest_marks(left)
    return {column: greatest.get(column) for column in sorted(lost)}


def greatest_marks(slices: Iterable[AppliedSlice]) -> dict[str, dict[str, Any]]:
    """Return the greatest watermark of each column among slices, as JSON with the item that it came from."""
    found: dict[str, dict[str, Any]] = {}
    for each in slices:
        marks: Mapping[str, Any] = each.content.get("watermarks") or {}
        for column, mark in marks.items():
            before = found.get(column)
            if before is None or Watermark.from_json(mark).is_after(Watermark.from_json(before)):
                found[column] = {**mark, "item": each.item_id}
    return found

"""Differences between the columns that there are and those that are expected, in words."""

from __future__ import annotations

from collections.abc import Iterable

from lakewright.schema.diff import Change, Difference, DiffRules, Named, diff

__all__ = ["differences_told"]


def differences_told(actual: Iterable[Named], expected: Iterable[Named], rules: DiffRules) -> tuple[str, ...]:
    """Return a text for each difference of the actual columns from the expected ones."""
    return tuple(map(_text, diff(actual, expected, rules)))


def _text(difference: Difference) -> str:
    own, wanted = (None if each is None else each.ddl for each in (difference.actual, difference.expected))
    texts = {
        Change.MISSING: f"column {difference.path} is missing",
        Change.NEW: f"column {difference.path} is not expected",
        Change.RETYPED: f"column {difference.path} is of type {own}, not {wanted}",
        Change.NULLABLE: f"column {difference.path} {'may' if difference.may_be_null else 'may not'} be null",
        Change.MOVED: f"the columns are in another order: {difference.path}",
    }
    return texts[difference.change]

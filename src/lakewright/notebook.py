"""Tables in HTML, by which notebooks show plans, results and the status of a project. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

__all__ = ["html_table", "values_text"]

MOST_ROWS = 200
"""A notebook keeps what it shows; a plan of a large range has thousands of steps."""


def html_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], notes: Iterable[str] = ()
) -> str:
    """Return a table with a title, and notes below it; rows after the 200th are only counted.

    A table without rows has a title only.

    Example:
        >>> html_table("a<b", ["x"], [["1&2"]])
        '<table><caption>a&lt;b</caption><tr><th>x</th></tr><tr><td>1&amp;2</td></tr></table>'
    """
    listed = list(rows)
    head = _row("th", columns) if listed else ""
    body = "".join(_row("td", row) for row in listed[:MOST_ROWS])
    rest = len(listed) - MOST_ROWS
    more = f'<tr><td colspan="{len(columns)}">{rest} more</td></tr>' if rest > 0 else ""
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<table><caption>{escape(title)}</caption>{head}{body}{more}</table>{below}"


def values_text(values: Mapping[str, object] | None) -> str:
    """Return the values of a row in one line.

    Example:
        >>> values_text({"id": 1, "name": None}), values_text(None)
        ('id=1, name=null', '')
    """
    pairs = (values or {}).items()
    return ", ".join(f"{name}={'null' if value is None else value}" for name, value in pairs)


def _row(tag: str, cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

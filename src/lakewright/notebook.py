"""Tables in HTML, by which notebooks show plans, results and the status of a project."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html_table"]

MOST_ROWS = 200
"""A notebook keeps what it shows; a plan of a large range has thousands of steps."""


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a title; all texts are escaped, and rows after the 200th only counted.

    Example:
        >>> html_table("a<b", ["x"], [["1&2"]])
        '<table><caption>a&lt;b</caption><tr><th>x</th></tr><tr><td>1&amp;2</td></tr></table>'
    """
    listed = list(rows)
    head = _row("th", columns)
    body = "".join(_row("td", row) for row in listed[:MOST_ROWS])
    rest = len(listed) - MOST_ROWS
    more = f'<tr><td colspan="{len(columns)}">{rest} more</td></tr>' if rest > 0 else ""
    return f"<table><caption>{escape(title)}</caption>{head}{body}{more}</table>"


def _row(tag: str, cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

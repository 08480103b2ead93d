"""Tables in HTML, by which notebooks show plans, results and the status of a project. All text is escaped.

Values of rows are written here, too, for notebooks as for commands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from html import escape
from typing import Any

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
    return ", ".join(f"{name}={value_text(value)}" for name, value in pairs)


def value_text(value: object, *, is_nested: bool = False) -> str:
    """Return a value of a row in one line; what has values inside is written like JSON.

    Args:
        value: The value.
        is_nested: Whether it is inside another one: texts then have quotes.

    Example:
        >>> value_text(Decimal("0E-8")), value_text({"name": "a", "prices": [Decimal("1.00"), None]})
        ('0.00000000', '{"name": "a", "prices": [1.00, null]}')
    """
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Mapping):
        pairs = (
            f"{json.dumps(str(name), ensure_ascii=False)}: {value_text(inner, is_nested=True)}"
            for name, inner in value.items()
        )
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(value_text(inner, is_nested=True) for inner in value)}]"
    is_quoted = is_nested and not isinstance(value, int | float)
    return json.dumps(str(value), ensure_ascii=False) if is_quoted else str(value)


def json_value(value: Any) -> Any:
    """Return a value of a row for a JSON document: decimals are text, with all the digits of their type.

    Example:
        >>> json_value({"price": Decimal("1.00"), "lines": [Decimal("0E-8"), 1.5]})
        {'price': '1.00', 'lines': ['0.00000000', 1.5]}
    """
    if isinstance(value, Decimal):
        return value_text(value)
    if isinstance(value, Mapping):
        return {name: json_value(inner) for name, inner in value.items()}
    return [json_value(inner) for inner in value] if isinstance(value, list | tuple) else value


def _row(tag: str, cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

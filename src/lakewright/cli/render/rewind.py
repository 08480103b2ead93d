"""The difference between two states of a table, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lakewright.cli.page import Block, Branch, Span, line
from lakewright.cli.render.words import counted
from lakewright.notebook import values_text

if TYPE_CHECKING:
    from lakewright.slices.rewind.difference import TableDifference

__all__ = ["difference_blocks"]


def difference_blocks(found: TableDifference, gone: str, new: str) -> Iterator[Block]:
    """Yield the counts and samples of a difference.

    Args:
        found: The difference.
        gone: What happens to a row that is only there before, such as `goes`.
        new: What happens to a row that is only there after.
    """
    stay = found.equal + found.seen
    yield Branch(line(f"{counted(stay, 'row')} {'stays' if stay == 1 else 'stay'}{found.seen_words}"))
    for count, rows, word, style in (
        (found.gone, found.gone_rows, gone, "red"),
        (found.new, found.new_rows, new, "green"),
    ):
        if count:
            more = (f"… and {count - len(rows):,} more",) if count > len(rows) else ()
            shown = (*(_row(row) for row in rows), *more)
            said = f"{counted(count, 'row')} {_plural(word, count)}"
            yield Branch(line(said), tuple(Branch(line(Span(text, style))) for text in shown))
    for names, where in ((found.columns_gone, "before"), (found.columns_new, "after")):
        if names:
            yield Branch(line(f"only {where}: {counted(len(names), 'column')} {', '.join(names)}"))
    for column in found.retyped:
        yield Branch(line(f"{column.text}; equal values count as equal"))


def _plural(word: str, count: int) -> str:
    verb, _, rest = word.partition(" ")
    if count != 1:
        verb = {"goes": "go", "comes": "come", "is": "are"}.get(verb, verb)
    return f"{verb} {rest}".strip()


def _row(row: Mapping[str, Any]) -> str:
    return values_text({name: value for name, value in row.items() if value is not None})

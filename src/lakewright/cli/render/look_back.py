"""What slices change and would change, the life of a record, and the difference of two states of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakewright.cli.page import SHORT_ID, Block, Line, Span, labelled, line, table_of
from lakewright.cli.render.run import slice_line
from lakewright.notebook import value_text, values_text
from lakewright.spec.words import counted
from lakewright.usecases.look_back import BEFORE

if TYPE_CHECKING:
    from lakewright.slices.rewind.difference import TableDifference
    from lakewright.usecases.look_back import RecordLife, RecordVersion, RowChange, SliceChanges
    from lakewright.usecases.process_slices import RehearsedSlice


_STYLES = {"inserted": "green", "updated": "yellow", "deleted": "red"}


def changes_page(found: SliceChanges) -> Iterator[Block]:
    """Yield what a slice changed."""
    by = "" if found.run_id is None else f", run {found.run_id[:SHORT_ID]}"
    yield line(Span(found.entity, "bold"), f": slice {found.slice} made version {found.version}{by}")
    yield from (labelled("note", note) for note in found.notes)
    yield from _changes(found.counts, found.rows, "no record changed")


def rehearsal_page(found: RehearsedSlice) -> Iterator[Block]:
    """Yield what a slice would change."""
    table = "no table yet" if found.version is None else f"version {found.version} of the table"
    yield line(Span(found.entity, "bold"), f": rehearsal of {found.slice} ({found.state}) on {table}")
    yield from (labelled("note", note) for note in found.notes)
    if found.metrics is None:
        yield line(Span("it can't be applied", "red"))
    else:
        yield slice_line({**found.metrics, "slice": found.slice})
    yield from (labelled("warning", warning) for warning in found.warnings)
    if found.deletes_text is not None:
        yield line(found.deletes_text)
    if found.counts is not None:
        yield from _changes(found.counts, found.rows, "no record would change")
    yield line(Span("Nothing was written.", "dim"))


def _changes(counts: Mapping[str, int], rows: Sequence[RowChange], none: str) -> Iterator[Block]:
    """Yield the number of records by change, and some of them."""
    text = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
    yield line(text or none)
    yield from map(_row, rows)
    more = sum(counts.values()) - len(rows)
    if more > 0:
        yield line(Span(f"… and {counted(more, 'record')} more; --rows shows more", "dim"))


def _row(row: RowChange) -> Line:
    head = Span(row.change, _STYLES[row.change])
    if row.before is not None and row.after is not None:
        pairs = (
            f"{name}: {value_text(row.before[name])} → {value_text(row.after[name])}" for name in row.before
        )
        return line(head, f" {values_text(row.key)}: ", ", ".join(pairs))
    values = {k: v for k, v in (row.after or row.before or {}).items() if k not in row.key}
    return line(head, f" {values_text(row.key)}", f": {values_text(values)}" if values else "")


def life_page(life: RecordLife) -> Iterator[Block]:
    """Yield each version of a record."""
    yield line(Span(life.entity, "bold"), f" {values_text(life.key)}")
    if not life.versions:
        yield line("the table has no such record")
    else:
        yield table_of([_version(each, life.key) for each in life.versions], "")
    if life.reaches_back_to:
        yield labelled("note", BEFORE.format(life.reaches_back_to))


_ORIGINS = {"history_from": " (history_from)", "foreign": "(another writer)"}


def _version(version: RecordVersion, key: Mapping[str, object]) -> dict[str, object]:
    values = {name: value for name, value in version.values.items() if name not in key}
    return {
        "since": version.since,
        "until": version.until,
        "": "deleted" if version.is_deleted else "",
        "values": Span(values_text(values)),
        "slice": Span(f"{version.slice or ''}{_ORIGINS.get(version.origin, '')}"),
        "run": (version.run_id or "")[:SHORT_ID],
    }


def difference_blocks(found: TableDifference, gone: str, new: str) -> Iterator[Block]:
    """Yield the counts and samples of a difference.

    Args:
        found: The difference.
        gone: What happens to a row that is only there before, such as `goes`.
        new: What happens to a row that is only there after.
    """
    stay = found.equal + found.seen
    yield line(f"{counted(stay, 'row')} {'stays' if stay == 1 else 'stay'}{found.seen_words}")
    for count, rows, word, style in (
        (found.gone, found.gone_rows, gone, "red"),
        (found.new, found.new_rows, new, "green"),
    ):
        if count:
            more = (f"… and {count - len(rows):,} more",) if count > len(rows) else ()
            shown = (*(_values(row) for row in rows), *more)
            said = f"{counted(count, 'row')} {_plural(word, count)}"
            yield line(said, below=(line(Span(text, style)) for text in shown))
    for names, where in ((found.columns_gone, "before"), (found.columns_new, "after")):
        if names:
            yield line(f"only {where}: {counted(len(names), 'column')} {', '.join(names)}")
    for column in found.retyped:
        yield line(f"{column.text}; equal values count as equal")


def _plural(word: str, count: int) -> str:
    verb, _, rest = word.partition(" ")
    if count != 1:
        verb = {"goes": "go", "comes": "come", "is": "are"}.get(verb, verb)
    return f"{verb} {rest}".strip()


def _values(row: Mapping[str, Any]) -> str:
    return values_text({name: value for name, value in row.items() if value is not None})

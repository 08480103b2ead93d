"""Pages of the manifest: items with their verdicts, one item's records, counts, differences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakewright.cli.page import Block, Branch, Line, Span, Table, line, remedy_branches
from lakewright.cli.render.run import slice_line
from lakewright.cli.render.words import ago, counted, status
from lakewright.errors.fault import remedy_of
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.lock import (
    LONGEST_SAID,
    Lock,
    failure_words,
    locked_error,
    stale_advice,
)
from lakewright.manifest.record import Record, State, format_instant
from lakewright.manifest.store import Damage

if TYPE_CHECKING:
    from lakewright.slices.audit import Repair
    from lakewright.usecases.items import ItemHistory, Row

__all__ = [
    "damage_page",
    "difference_page",
    "item_page",
    "record_line",
    "repair_page",
    "rows_page",
    "stale_lock_page",
    "stats_page",
]

MOST_SHOWN = 50


def rows_page(rows: Sequence[Row], now: datetime) -> Iterator[Block]:
    """Yield a table of rows, and how many there are."""
    if rows:
        columns = ("verdict", "entity", "slice", "since", "rev", "item", "note")
        yield Table(columns, tuple(_row(row, now) for row in rows))
    yield line(Span(counted(len(rows), "item"), "dim"))


def _row(row: Row, now: datetime) -> tuple[Line, ...]:
    return (
        line(status(row.verdict.value)),
        line(row.owner),
        line(row.slice),
        line(ago(row.since, now) if row.since else ""),
        line(str(row.item.revision)),
        line(Span(row.item.item_id, "dim")),
        line(_note(row)),
    )


def _note(row: Row) -> str:
    if row.lock is not None:
        return f"stale: {row.lock.stale_reason}" if row.lock.stale_reason else f"held by {row.lock.holder}"
    if (failure := failure_words(row.item)) is not None:
        return failure
    if row.waits_for:
        return f"waits for {row.waits_for}"
    return f"begun by {row.trigger}" if row.trigger else ""


def item_page(found: ItemHistory) -> Iterator[Block]:
    """Yield an item with its verdicts and all its records, in order."""
    yield line(Span(found.item.item_id, "bold"), f" revision {found.item.revision}")
    for row in found.rows:
        note = _note(row)
        yield line("  ", status(row.verdict.value), f" for {row.application}", f": {note}" if note else "")
    for record in found.records:
        yield Branch(_record(record), tuple(_content(record)))
    for typed in dict.fromkeys(row.next_command for row in found.rows if row.next_command):
        yield line(Span("do: ", "dim"), Phrase(typed))


def _record(record: Record) -> Line:
    run = f" run {record.run_id}" if record.run_id else ""
    by = _by(record) + _begun_by(record)
    at = format_instant(record.timestamp)
    whom = f" for {record.application}"
    return line(f"{record.sequence} ", status(record.state.value), f" {at}{whom}{run}", Span(by, "dim"))


def _by(record: Record) -> str:
    """Return who wrote a record; nothing if that is the run that it names."""
    is_of_run = record.run_id is not None and record.author.agent.name == "lakewright"
    return "" if is_of_run else f" by {record.author.agent.name}"


def _begun_by(record: Record) -> str:
    """Return which trigger started the run of a record; nothing if none did."""
    trigger = None if record.is_foreign else record.content.get("trigger")
    return f", begun by {trigger}" if trigger else ""


def _content(record: Record) -> Iterator[Branch]:
    content = record.content
    if record.is_foreign:
        if content:
            yield Branch(line(Span("payload: ", "dim"), json.dumps(content, ensure_ascii=False)))
        return
    if record.state is State.PROCESSED and isinstance(metrics := content.get("metrics"), Mapping):
        yield Branch(slice_line({**metrics, "slice": content.get("slice", "")}))
    error = content.get("error")
    if isinstance(error, Mapping):
        yield Branch(line(Span("error: ", "red"), str(error.get("message"))))
        yield from remedy_branches(remedy_of(error))
    for key in ("reason", "entity", "watermarks", "drift"):
        if content.get(key):
            yield Branch(line(Span(f"{key}: ", "dim"), str(content[key])))


def record_line(record: Record) -> Line:
    """Return a record as one line: its time, state and item, its author and the reason."""
    error, reason = record.content.get("error"), record.content.get("reason")
    said = error.get("message") if isinstance(error, Mapping) else error or reason
    first = next(iter(str(said or "").splitlines()), "")[:LONGEST_SAID]
    run = f", run {record.run_id}" if record.run_id else ""
    return line(
        Span(f"{format_instant(record.timestamp)} ", "dim"),
        status(record.state.value),
        f" {record.item_id} for {record.application}",
        Span(f"{_by(record)}{run}{_begun_by(record)}", "dim"),
        f": {first}" if first else "",
    )


def stale_lock_page(lock: Lock, *, is_taken_over: bool) -> Iterator[Block]:
    """Yield the notice that a lock has become stale, which runs may take over, with its remedy."""
    yield line(Span("stale lock", "bold yellow"), f": {locked_error(lock).message}")
    yield line(Span("  do: ", "dim"), stale_advice(lock, is_taken_over=is_taken_over))


def stats_page(stats: Mapping[str, Mapping[str, int]]) -> Iterator[Block]:
    """Yield the number of items by application and verdict."""
    if not stats:
        yield line("the manifest is empty")
    for application, counts in stats.items():
        numbers = [part for verdict, count in counts.items() for part in (f" {count:,} ", status(verdict))]
        yield line(Span(application, "bold"), ":", *numbers)


def damage_page(damages: Sequence[Damage]) -> Iterator[Block]:
    """Yield one line for each piece of damage."""
    for damage in damages:
        where = damage.item_id if damage.record_id is None else f"{damage.item_id} record {damage.record_id}"
        yield line(status("FAILED"), Phrase(f" {where}: ", damage.problem))
    text = f"{counted(len(damages), 'fault')} found" if damages else "nothing is damaged"
    yield line(Span(text, "bold" if damages else "green"))


def repair_page(repairs: Sequence[Repair], *, is_done: bool) -> Iterator[Block]:
    """Yield one line for each repair that was made, or would be."""
    for repair in repairs:
        yield line(Span("did: " if is_done else "would: ", "dim"), f"{repair.item_id}: {repair.does}")
    if repairs and not is_done:
        yield line(Span("Nothing was written; --repair --yes does this.", "dim"))


def difference_page(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Block]:
    """Yield the differences by kind: new, changed, missing, unrecorded.

    What could not be read is left out: it is told as errors.
    """
    for kind, items in ((kind, found[kind]) for kind in _MEANING):
        what = "" if items else ": none"
        head = line(
            Span(kind, "bold"),
            f" {len(items)}{what}",
            Span(f" {_meaning(kind, items)}", "dim") if items else "",
        )
        shown = [_difference(item) for item in items[:MOST_SHOWN]]
        if len(items) > MOST_SHOWN:
            shown.append(Branch(line(Span(f"{len(items) - MOST_SHOWN} more: see -o json", "dim"))))
        yield Branch(head, tuple(shown))
    done = ("processed", "skipped")
    if found["changed"] or any(each["verdict"] not in done for each in found["missing"]):
        yield line(Span("do: ", "dim"), Phrase(Command("plan"), " shows what is due, and what to decide"))


def _difference(item: Mapping[str, Any]) -> Branch:
    named = " ".join(str(part) for part in (item["entity"], item["slice"]) if part) or "of no known item"
    number = f", commit {item['number']}" if "number" in item else ""
    place = Span(f" {item['item_id']}", "dim") if item["item_id"] else ""
    verdict = item.get("verdict")
    number += f", {verdict}" if verdict else ""
    number += f", to be recorded as {item['recovered']}" if item.get("recovered") else ""
    return Branch(line(f"{named}{number}", place))


def _meaning(kind: str, items: Sequence[Mapping[str, Any]]) -> str:
    recovered = sum(1 for item in items if item.get("recovered"))
    if kind != "new" or not recovered:
        return _MEANING[kind]
    log = "as the table's log tells, without processing them"
    if recovered == len(items):
        return f"recorded now; the next run records what became of them {log}"
    return f"recorded now; the next run records {recovered} of them {log}, and processes the others"


_MEANING = {
    "new": "recorded now; the next run processes them",
    "changed": "have changed since they were recorded",
    "missing": "are recorded, but no longer in bronze",
    "unrecorded": "commits that the manifest does not have; the next run records them",
}

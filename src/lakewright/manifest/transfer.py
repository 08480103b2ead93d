"""Taking a manifest's records out and in as NDJSON, and checking them against what is answered from.

Source: `processing-manifest.md`, "Record"; the form is Snowplow's, whose records of eight keys come in too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, groupby, islice

from lakewright.errors import Fault, LakewrightError, Location, StoreUnavailable
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.ledger import COUNTER
from lakewright.manifest.record import Application, Draft, Record, State
from lakewright.manifest.replay import replay
from lakewright.manifest.store import Append, Damage, Put, Query, Store, Write
from lakewright.manifest.watermark import Watermark, Watermarks

__all__ = ["Imported", "export_records", "fsck", "import_records"]

BATCH = 500
"""Items taken in with one round trip."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import came to.

    Attributes:
        records: How many were added.
        present: How many were there already.
        faults: What was not taken in, each with its line; an item with an illegal record is left out whole.
    """

    records: int
    present: int
    faults: tuple[Fault, ...]


def export_records(store: Store) -> Iterator[str]:
    """Yield each readable record as a line of JSON, by item and sequence."""
    for record in store.scan():
        if isinstance(record, Record):
            yield json.dumps(record.as_json(), ensure_ascii=False)


def import_records(store: Store, lines: Iterable[str], *, source: str = "import") -> Imported:
    """Append the records of NDJSON to a store; those that are there already are left alone.

    Records of an item that stand together are taken in together, in the order of their sequence or, as in
    Snowplow's, time, and numbered anew. Watermarks and the numbers of data commits come along.

    Args:
        store: Where they go.
        lines: One JSON record each; empty ones don't count.
        source: What the lines come from, for faults.
    """
    faults: list[Fault] = []
    importing = _Importing(store)
    groups = groupby(_parsed(lines, source, faults), key=lambda line: line.record.item_id)
    items = (list(group) for _, group in groups)
    while batch := list(chain.from_iterable(islice(items, BATCH))):
        faults += importing.take(batch)
    importing.finish()
    return Imported(importing.added, importing.present, tuple(faults))


def fsck(store: Store) -> Iterator[Damage]:
    """Yield what is wrong with a store: illegal records, and answers that don't follow from the records."""
    listed = store.select(Query())
    answer = next(listed, None)
    tally = _Tally()
    for item_id, records in groupby(store.scan(), key=lambda record: record.item_id):
        item, damages = replay(item_id, records)
        yield from damages
        tally.add(item)
        while answer is not None and answer.item_id < item_id:
            yield Damage(answer.item_id, None, "it is listed, but has no records")
            answer = next(listed, None)
        if answer is None or answer.item_id != item_id:
            yield Damage(item_id, None, "it has records, but isn't listed")
            continue
        if answer != item:
            yield Damage(item_id, None, "it is listed as something else than its records come to")
        answer = next(listed, None)
    for left_over in [] if answer is None else [answer, *listed]:
        yield Damage(left_over.item_id, None, "it is listed, but has no records")
    yield from tally.compare(store)


@dataclass(frozen=True, slots=True)
class _Tally:
    """How many items have each verdict, for each application and for any."""

    by_application: Counter[tuple[Application, Verdict]] = field(default_factory=Counter)
    by_verdict: Counter[Verdict] = field(default_factory=Counter)

    def add(self, item: Item) -> None:
        """Count an item."""
        verdicts = item.verdicts()
        self.by_application.update((Application.named(*a.key), verdict) for a, verdict in verdicts.items())
        self.by_verdict.update(set(verdicts.values()))

    def compare(self, store: Store) -> Iterator[Damage]:
        """Yield where the store counts or lists others."""
        if dict(store.counts()) != self.by_application:
            yield Damage("*", None, "the counts by verdict aren't those of the items")
        for verdict in Verdict:
            listed = sum(1 for _ in store.select(Query(verdicts=frozenset({verdict}))))
            if listed != self.by_verdict[verdict]:
                yield Damage(
                    "*", None, f"{listed} items are listed as {verdict}, not {self.by_verdict[verdict]}"
                )


@dataclass(frozen=True, slots=True)
class _Line:
    record: Record
    location: Location


def _parsed(lines: Iterable[str], source: str, faults: list[Fault]) -> Iterator[_Line]:
    """Yield the readable lines; what is wrong with others goes to `faults`."""
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        location = Location(source, number)
        try:
            yield _Line(Record.from_json(json.loads(text)), location)
        except KeyError as missing:
            faults.append(Fault(f"the record has no {missing.args[0]!r}", location))
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            faults.append(Fault(f"this isn't a record of a manifest: {error}", location))


@dataclass(slots=True)
class _Importing:
    """An import under way.

    Attributes:
        brought: The greatest watermark seen of each application and column, and the item that brought it.
        counters: The greatest number of a data commit seen of each counter.
    """

    store: Store
    added: int = 0
    present: int = 0
    brought: dict[tuple[Application, str], tuple[Watermark, str]] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)

    def take(self, lines: Iterable[_Line]) -> Iterator[Fault]:
        """Take some items in, each wholly or not at all, and yield why not."""
        by_item: dict[str, list[_Line]] = {}
        for line in lines:
            by_item.setdefault(line.record.item_id, []).append(line)
        known = self.store.read(list(by_item))
        fresh = {
            item_id: self._fresh(item_id, of_item, item_id in known) for item_id, of_item in by_item.items()
        }
        writes = (
            Write(
                (Append(item_id, drafts, known[item_id].sequence if item_id in known else 0),)
                if drafts
                else ()
            )
            for item_id, drafts in fresh.items()
        )
        for (item_id, drafts), outcome in zip(fresh.items(), self.store.write_many(writes), strict=True):
            if isinstance(outcome, StoreUnavailable):
                raise outcome
            if isinstance(outcome, LakewrightError):
                yield _fault(by_item[item_id], outcome)
            else:
                self.added += len(drafts)
                self._follow(by_item[item_id])

    def _fresh(self, item_id: str, lines: Sequence[_Line], is_known: bool) -> tuple[Draft, ...]:
        """Return drafts of the records that aren't there yet, in order."""
        there = {record.record_id for record in self.store.records(item_id)} if is_known else set()
        fresh = {line.record.record_id: line.record for line in lines if line.record.record_id not in there}
        self.present += len(lines) - len(fresh)
        return tuple(_draft(record) for record in sorted(fresh.values(), key=_order))

    def _follow(self, lines: Iterable[_Line]) -> None:
        """Take note of the watermarks and numbers of data commits that records bring."""
        for record in (line.record for line in lines):
            content = record.content
            if record.state is State.PROCESSED:
                self._follow_watermarks(record, content.get("watermarks"))
            token, counter = content.get("token"), content.get("counter")
            if record.state is State.PROCESSING and isinstance(token, int) and isinstance(counter, str):
                self.counters[counter] = max(token, self.counters.get(counter, 0))

    def _follow_watermarks(self, record: Record, brought: object) -> None:
        for column, value in brought.items() if isinstance(brought, Mapping) else ():
            try:
                watermark = Watermark.from_json(value)
            except (LakewrightError, KeyError, TypeError):
                continue  # another tool's payload may use the name for something else
            best = self.brought.get((record.application, column))
            if best is None or watermark.is_after(best[0]):
                self.brought[record.application, column] = (watermark, record.item_id)

    def finish(self) -> None:
        """Move watermarks and counters on to where the records taken in have them."""
        watermarks = Watermarks(self.store)
        for (application, column), (watermark, item_id) in self.brought.items():
            puts = watermarks.advances(application, item_id, {column: watermark.as_json()})
            self.store.write(Write(puts=puts))
        for key, last in self.counters.items():
            present = self.store.document(COUNTER, key)
            if present is None or present.value["last"] < last:
                put = Put(COUNTER, key, {"last": last}, present.version if present else 0)
                self.store.write(Write(puts=(put,)))


def _order(record: Record) -> tuple[int, datetime]:
    return (record.sequence, record.timestamp)


def _draft(record: Record) -> Draft:
    return Draft(
        record_id=record.record_id,
        item_id=record.item_id,
        state=record.state,
        application=record.application,
        author=record.author,
        run_id=record.run_id,
        previous_record_id=record.previous_record_id,
        payload=record.payload,
        timestamp=record.timestamp,
    )


def _fault(lines: Sequence[_Line], error: LakewrightError) -> Fault:
    guilty = error.details.get("record_id")
    at = next((line for line in lines if line.record.record_id == guilty), lines[0])
    return Fault(
        error.message, at.location, "The item is left out; mend the file and import it again.", error.code
    )

"""The store in a Delta table.

Each write is one version of the table, written only as the successor of the version that it was computed
from; a writer that was overtaken reads again and retries. So no lock can be left behind and no write is lost,
but writers wait for each other, and each write costs the object storage several round trips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby, islice

from lakewright.manifest.batch import Batch, is_storable, storable, touched
from lakewright.manifest.item import Item
from lakewright.manifest.readiness import BY_ID, Choice, Reading
from lakewright.manifest.record import Record
from lakewright.manifest.replay import folded
from lakewright.manifest.standing import Standing
from lakewright.manifest.store import (
    PAGE,
    Damage,
    Document,
    DocumentKey,
    Outcome,
    Seen,
    Store,
    Write,
    batched,
)
from lakewright.stores.backend import check_version
from lakewright.stores.delta.table import (
    Line,
    Overtaken,
    Table,
    among,
    batch_lines,
    document_of,
    item_line,
    item_of,
    quoted,
    record_of,
    table_exists,
)

_STANDING, _ARRIVAL = (f"split_part(verdicts, chr(9), {part})" for part in (1, 2))
"""The parts of the column by which items are listed."""


VERSION = 3
"""The version of the layout. From an older one, the items are computed again from the records."""


class DeltaStore(Store):
    """A manifest in a Delta table, which is created if it does not exist.

    Args:
        location: A folder, or the URL of a place in object storage.
        clock: Returns the store's time, in UTC. Object storage has no clock, so it is the writer's.
        storage_options: Settings of the object storage, for the `deltalake` package.
    """

    def __init__(
        self,
        location: str,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self._clock = clock
        self._table = Table(location, [_layout(0)], storage_options or {})
        self._migrate()

    @classmethod
    def open_existing(
        cls, location: str, *, storage_options: Mapping[str, str] | None = None
    ) -> Store | datetime:
        """Return the store, or the writer's time if there is no such table."""
        is_there = table_exists(location, storage_options or {})
        return cls(location, storage_options=storage_options) if is_there else datetime.now(UTC)

    def _migrate(self) -> None:
        self._table.refresh()
        present = max((line.number for line in self._table.newest("sort = 'schema'")), default=0)
        check_version(self._table.where, present, VERSION)
        if present < VERSION:
            self.rebuild()

    def now(self) -> datetime:
        return self._clock()

    def look_up(self, item_ids: Sequence[str] = (), keys: Sequence[DocumentKey] = ()) -> Seen:
        self._table.refresh()
        known, wanted = storable(item_ids, keys)
        found = Seen({}, {})
        for start in range(0, max(len(known), len(wanted)), PAGE):
            page = self._find(known[start : start + PAGE], wanted[start : start + PAGE])
            found = Seen({**found.items, **page.items}, {**found.documents, **page.documents})
        return Seen({i: found.items[i] for i in known if i in found.items}, found.documents)

    def _find(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen:
        conditions = [f"sort = 'item' AND {among('name', item_ids)}"] if item_ids else []
        for kind, of_kind in groupby(sorted(keys), key=lambda key: key[0]):
            named = among("name", (key for _, key in of_kind))
            conditions.append(f"sort = 'document' AND under = {quoted(kind)} AND {named}")
        if not conditions:
            return Seen({}, {})
        found = list(self._table.newest(" OR ".join(f"({condition})" for condition in conditions)))
        items = {line.name: item_of(line) for line in found if line.sort == "item"}
        documents = {(line.under, line.name): document_of(line) for line in found if line.sort == "document"}
        return Seen(items, documents)

    def write_many(self, writes: Iterable[Write]) -> Iterator[Outcome]:
        for batch in batched(writes):
            yield from self._write_batch(batch)

    def _write_batch(self, writes: Sequence[Write]) -> Sequence[Outcome]:
        for _ in self._table.attempts():
            at = self._table.refresh()
            seen = self._find(*touched(writes))
            batch = Batch(seen, now=self.now(), taken=self._taken(writes))
            outcomes = [batch.attempt(write) for write in writes]
            lines = batch_lines(batch, at)
            try:
                if lines:
                    self._table.append(lines, at)
            except Overtaken:
                continue
            return outcomes
        raise AssertionError("attempts end by raising StoreBusy")

    def _taken(self, writes: Sequence[Write]) -> set[str]:
        """Return the record ids to be written that existing records already have."""
        ids = {draft.record_id for w in writes for append in w.appends for draft in append.drafts}
        if not ids:
            return set()
        present = self._table.newest(f"sort = 'id' AND {among('name', filter(is_storable, ids))}")
        return {line.name for line in present}

    def candidates(self, choice: Choice, reading: Reading = BY_ID) -> Iterator[str]:
        return (item.item_id for item in self.select(choice, reading))

    def select(self, choice: Choice, reading: Reading = BY_ID) -> Iterator[Item]:
        if not is_storable(choice.prefix):
            return
        self._table.refresh()
        columns = ("name",) if reading.is_by_id else (_ARRIVAL, "name")
        admitted = (each.text for each in self._standings() if choice.admits(each))
        found = self._table.newest(
            f"sort = 'item' AND {_starts_with(choice.prefix)}",
            having=among(_STANDING, admitted),
            order=", ".join(f"{column} DESC" if reading.is_newest_first else column for column in columns),
        )
        items = (item for item in map(item_of, found) if reading.includes(reading.place_of(item)))
        yield from islice(items, reading.limit)

    def standings(self) -> Mapping[Standing, int]:
        self._table.refresh()
        return self._standings()

    def _standings(self) -> Mapping[Standing, int]:
        listed = self._table.rows(
            f"{_STANDING} AS standing, count(*)", "sort = 'item' AND verdicts IS NOT NULL", group=_STANDING
        )
        return {Standing.parse(standing): number for standing, number in listed}

    def find_records(self, places: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Record | Damage]:
        self._table.refresh()
        wanted = set(places)
        found: dict[tuple[str, int], Record | Damage] = {}
        for page in batched(places):
            names = among("name", sorted({item_id for item_id, _ in page}))
            for line in self._table.newest(f"sort = 'record' AND {names}"):
                if (line.name, line.number) in wanted:
                    found[line.name, line.number] = record_of(line)
        return found

    def history(self, item_id: str | None = None) -> Iterator[Record | Damage]:
        if item_id is not None and not is_storable(item_id):
            return iter(())
        self._table.refresh()
        of_item = "" if item_id is None else f" AND name = {quoted(item_id)}"
        return map(record_of, self._table.newest(f"sort = 'record'{of_item}", order="name, number"))

    def documents(
        self, kind: str, *, prefix: str = "", is_newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Document]:
        self._table.refresh()
        lines = self._table.newest(
            f"sort = 'document' AND under = {quoted(kind)} AND {_starts_with(prefix)}",
            order="name DESC" if is_newest_first else "name",
            limit=limit,
        )
        return map(document_of, lines)

    def rebuild(self) -> None:
        for _ in self._table.attempts():
            at = self._table.refresh()
            items = (item_line(item, at) for item in folded(self.history()))
            kept = self._table.newest(
                "sort <> 'item' AND sort <> 'schema'", order="sort, under, name, number"
            )
            try:
                return self._table.replace(chain([_layout(at)], kept, items), at)
            except Overtaken:
                continue
        return None

    def close(self) -> None:
        """Do nothing: there is no connection to release."""


def _layout(at: int) -> Line:
    return Line("schema", "", "", VERSION, at, None, "{}")


def _starts_with(prefix: str) -> str:
    return f"name >= {quoted(prefix)} AND starts_with(name, {quoted(prefix)})" if prefix else "true"

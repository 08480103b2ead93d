"""What holds of a lake whatever has happened to the runs that wrote it, seen from outside, without Spark.

`processing-manifest.md`, "State"; `processing-strategies.md`, "Merge Strategy" and "Historic Strategy".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from deltalake import DeltaTable, QueryBuilder
from tests.chaos.lake import CANARY, ENTITIES, PREFIX, ChaosLake, expected

from lakewright.lake.commit import item_contents
from lakewright.manifest.item import Item
from lakewright.manifest.lease import LEASE, find_lease
from lakewright.manifest.record import Application, Record, State
from lakewright.manifest.store import Query, Store
from lakewright.manifest.watermarks import Watermarks
from lakewright.stores.process import is_dead
from lakewright.strategies.summary import Summary
from lakewright.upkeep.fsck import fsck
from lakewright.upkeep.transfer import export_manifest


@dataclass
class Witness:
    """Looks at one lake again and again.

    Attributes:
        seed: From which the slices follow.
        slices: How many have arrived, of each entity.
        marks: The watermarks last seen: they never move backwards.
    """

    lake: ChaosLake
    store: Store
    seed: int
    slices: int = 0
    marks: dict[str, int] = field(default_factory=dict)

    def complaints(self, *, is_done: bool = False) -> list[str]:
        """Return what doesn't hold; of a lake that is done, also what is left to do."""
        return [
            *(f"manifest: {damage.item_id}: {damage.problem}" for damage in fsck(self.store)),
            *(complaint for entity in ENTITIES for complaint in self._entity(entity, is_done)),
            *self._locks(is_done),
            *self._secrets(),
        ]

    def _entity(self, entity: str, is_done: bool) -> Iterator[str]:
        application = Application.named(f"lakewright/chaos/{entity}", entity)
        processed = self._processed(application)
        path = self.lake.table(entity)
        commits = _commits(path)
        said = [f"{entity}: {each}" for each in self._commits_and_records(commits, processed)]
        yield from said
        if not said:
            yield from (f"{entity}: {each}" for each in self._rows(entity, path, commits))
            yield from (f"{entity}: {each}" for each in self._metrics(entity, processed))
            yield from (f"{entity}: {each}" for each in self._watermark(entity, application, processed))
        if is_done and len(processed) != self.slices:
            yield f"{entity}: {len(processed)} of {self.slices} slices are processed"

    def _processed(self, application: Application) -> list[Record]:
        items = self.store.select(Query(application=application))
        found = (_last_processed(self.store, item) for item in sorted(items, key=lambda i: i.item_id))
        return [record for record in found if record is not None]

    def _commits_and_records(
        self, commits: Sequence[Mapping[str, Any]], processed: Sequence[Record]
    ) -> Iterator[str]:
        """At most one commit a slice, in order, and at most the slices of one that aren't recorded yet."""
        items = [commit["item"] for commit in commits]
        numbers = [commit["number"] for commit in commits]
        if [Path(item).stem for item in items] != [f"{n:03}" for n in range(1, len(items) + 1)]:
            yield f"its commits are of {items}"
        if any(before > after for before, after in pairwise(numbers)):  # slices that are folded share one
            yield f"its commits are numbered {numbers}"
        recorded = [record.item_id for record in processed]
        last = numbers.count(numbers[-1]) if numbers else 0
        if recorded != items[: len(recorded)] or len(recorded) < len(items) - last:
            yield f"committed are {items}, recorded are {recorded}"

    def _rows(self, entity: str, path: Path, commits: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Silver is that of the model, after as many slices as were committed; its files are there."""
        times = {
            datetime.fromisoformat(commit["processingTime"]): 10 * n for n, commit in enumerate(commits, 1)
        }
        model = sorted(map(repr, expected(self.seed, entity, len(commits)).rows))
        rows = _silver(path)
        found = sorted(repr(_row(row, times, is_historic=ENTITIES[entity] == "historic")) for row in rows)
        if found != model:
            surplus, missing = Counter(found) - Counter(model), Counter(model) - Counter(found)
            yield f"after {len(commits)} slices it has {list(surplus)}, it lacks {list(missing)}"
        if ENTITIES[entity] == "historic":
            yield from _intervals(rows)
        for file in _files(path):
            if not file.is_file():
                yield f"{file} is listed, but isn't there"

    def _metrics(self, entity: str, processed: Sequence[Record]) -> Iterator[str]:
        counts = expected(self.seed, entity, len(processed)).counts
        for record, of_model in zip(processed, counts, strict=True):
            told = asdict(Summary.from_json({"strategy": ENTITIES[entity], **record.content["metrics"]}))
            wrong = {name: told[name] for name in of_model if told[name] != of_model[name]}
            if wrong:
                yield f"{record.item_id} tells {wrong} where the model has {of_model}"

    def _watermark(self, entity: str, application: Application, processed: Sequence[Record]) -> Iterator[str]:
        last = Watermarks(self.store).last(application).get("mark")
        value = int(last.value) if last is not None else 0
        marks = expected(self.seed, entity, len(processed)).marks
        if value != max(marks, default=0):
            yield f"its watermark is {value} after {marks}"
        if value < self.marks.get(entity, 0):
            yield f"its watermark went from {self.marks[entity]} back to {value}"
        self.marks[entity] = value

    def _locks(self, is_done: bool) -> Iterator[str]:
        """Where nobody runs, whoever holds a lock is known to be gone; where all is done, nobody does."""
        for item in self.store.select(Query()):
            if item.processing is None:
                continue
            lease = find_lease(self.store, item.item_id)
            if is_done:
                yield f"{item.item_id} is locked still"
            elif lease is not None and not lease.is_expired(self.store.now()) and not is_dead(lease.holder):
                yield f"{item.item_id} is held by {lease.holder}, who is alive"
        if is_done and (left := [document.key for document in self.store.documents(LEASE)]):
            yield f"leases are left: {left}"

    def _secrets(self) -> Iterator[str]:
        if any(CANARY in line for line in export_manifest(self.store)):
            yield "the secret is in a record"
        for kind in ("run", "run_target", LEASE):
            if any(CANARY in json.dumps(dict(found.value)) for found in self.store.documents(kind)):
                yield f"the secret is in a document: {kind}"
        for path in (self.lake.folder / "lake").rglob("_delta_log/*.json"):
            if CANARY in path.read_text(errors="replace"):
                yield f"the secret is in {path}"


def _last_processed(store: Store, item: Item) -> Record | None:
    if not item.processed:
        return None
    return [record for record in store.records(item.item_id) if record.state is State.PROCESSED][-1]


def _commits(path: Path) -> list[dict[str, Any]]:
    """Return what the table's commits were made for, the oldest first."""
    if not any(path.glob("_delta_log/*.json")):
        return []
    texts = (entry.get("userMetadata") for entry in reversed(DeltaTable(path).history()))
    return [dict(each) for text in texts if text for each in item_contents(json.loads(text))]


def _silver(path: Path) -> list[dict[str, Any]]:
    if not any(path.glob("_delta_log/*.json")):
        return []
    table = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t").read_all()
    columns = [table[name].to_pylist() for name in table.schema.names]
    return [dict(zip(table.schema.names, values, strict=True)) for values in zip(*columns, strict=True)]


def _files(path: Path) -> Iterator[Path]:
    for uri in DeltaTable(path).file_uris() if any(path.glob("_delta_log/*.json")) else []:
        yield Path(unquote(urlparse(uri).path) if uri.startswith("file:") else uri)


def _row(row: Mapping[str, Any], times: Mapping[datetime, int], *, is_historic: bool) -> tuple[Any, ...]:
    own = {name.removeprefix(PREFIX): value for name, value in row.items() if name.startswith(PREFIX)}
    return (
        *(row["id"], row["name"], row["size"], row["mark"], own["deleted"]),
        times.get(own["lastSeen"], -1),
        times.get(own["ValidFrom"], -1) if is_historic else None,
        None if not is_historic or own["IsCurrent"] else times.get(own["ValidTo"], -1),
    )


def _intervals(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """At most one current version a key; versions follow each other without overlap, gaps where deleted."""
    by_key: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_key.setdefault(row["id"], []).append(row)
    for key, versions in by_key.items():
        versions.sort(key=lambda row: row[f"{PREFIX}ValidFrom"])
        if sum(bool(row[f"{PREFIX}IsCurrent"]) for row in versions) > 1:
            yield f"key {key} has several current versions"
        for earlier, later in pairwise(versions):
            end, start = earlier[f"{PREFIX}ValidTo"], later[f"{PREFIX}ValidFrom"]
            is_gap = end < start and earlier[f"{PREFIX}deleted"]
            if not (end == start or is_gap):
                yield f"key {key} has a version to {end} and the next from {start}"

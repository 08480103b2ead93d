"""A manifest moves from any back end to any other, and records of the original come in.

`processing-manifest.md`, "Record" and "Challenges" (Single implementation).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from tests.records import AUTHOR, COUNTRIES, REGIONS, claim, found, numbered
from tests.stores.conftest import KINDS

from lakewright.manifest.claim import COUNTER
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.payload import failure
from lakewright.manifest.record import Application, State
from lakewright.manifest.store import Query, Store
from lakewright.manifest.verdict import Verdict
from lakewright.manifest.watermarks import Watermarks
from lakewright.upkeep.fsck import fsck
from lakewright.upkeep.transfer import export_manifest, import_manifest

Settings = dict[str, Any]


def live_in(store: Store) -> None:
    """Leave items of every verdict but invalid, watermarks and a counter."""
    ledger = Ledger(store, AUTHOR, ids=numbered("lived"))
    ledger.discover(found(name) for name in ["a", "b", "c", "d", "é 😀"])
    for day, name in enumerate("ab", 1):
        watermark = {"day": {"type": "date", "value": f"2022-01-0{day}"}}
        ledger.processed(claim(ledger, found(name).item_id), {"watermarks": watermark})
    ledger.failed(claim(ledger, found("c").item_id), failure(ValueError("é\n")))
    ledger.skip(found("d").item_id, "twice", application=COUNTRIES)
    ledger.requeue(found("a").item_id, "again")
    claim(ledger, found("b").item_id, COUNTRIES)


def test_it_is_the_same_in_every_back_end(
    request: pytest.FixtureRequest, opened: Callable[[Settings], Store]
) -> None:
    stores = [opened(request.getfixturevalue(kind)) for kind in KINDS]
    live_in(stores[0])
    lines = list(export_manifest(stores[0]))
    for source, target in zip(stores, [*stores[1:]], strict=False):
        imported = import_manifest(target, export_manifest(source))
        assert (imported.records, imported.documents) == (len(lines) - 2, 2)
        assert (imported.present, imported.faults) == (0, ())
        assert list(export_manifest(target)) == lines
        assert list(target.select(Query())) == list(stores[0].select(Query()))
        assert target.counts() == stores[0].counts()
        assert list(Watermarks(target).all()) == list(Watermarks(stores[0]).all())
        counters = [each.document(COUNTER, "silver/regions") for each in (target, stores[0])]
        assert [counter and counter.value for counter in counters] == [{"last": 4}, {"last": 4}]
        assert list(fsck(target)) == []
        assert import_manifest(target, lines).present == len(lines)


ITEMS = 110
"""Items of a manifest of the original: more than DynamoDB writes in one transaction."""


def original(number: int, state: str, previous: int | None) -> str:
    """A record with the eight keys that the original's has; three make an item."""
    agent = {"name": "rdb-shredder", "version": "0.13.0"}
    record = {
        "itemId": f"s3://acme/shredded/good/run={number // 3:04}/",
        "application": {"agent": agent, "instanceId": None},
        "recordId": str(UUID(int=number)),
        "previousRecordId": None if previous is None else str(UUID(int=previous)),
        "state": state,
        "timestamp": f"2018-01-01T00:00:{number % 3:02}.123Z",
        "author": {"agent": agent, "manifestVersion": "0.1.0"},
        "payload": None,
    }
    return json.dumps(record)


def test_records_of_the_original_come_in(store: Store) -> None:
    lines = []
    for first in range(0, 3 * ITEMS, 3):
        lines += [original(first, "NEW", None), original(first + 1, "PROCESSING", None)]
        lines.append(original(first + 2, "PROCESSED", first + 1))
    imported = import_manifest(store, lines)
    assert (imported.records, imported.faults) == (3 * ITEMS, ())
    items = list(store.select(Query()))
    assert len(items) == ITEMS
    assert {(item.sequence, item.state) for item in items} == {(3, State.PROCESSED)}
    assert store.counts() == {(Application.named("rdb-shredder"), Verdict.PROCESSED): ITEMS}
    assert [record.state for record in store.records(items[-1].item_id)] == ["NEW", "PROCESSING", "PROCESSED"]
    assert list(store.select(Query(REGIONS))) == []

"""Export, import and checking of records: `processing-manifest.md`, "Record"."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.records import COUNTRIES, ITEM, REGIONS, Clock, claim, draft, found, ledger_of, numbered, put_down

from lakewright.manifest.claim import COUNTER
from lakewright.manifest.journal import BUILD, TAINT, Journal, Run
from lakewright.manifest.lease import LEASE, Holder
from lakewright.manifest.payload import failure
from lakewright.manifest.record import Application, Record
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.store import Damage, Put, Write
from lakewright.manifest.verdict import Verdict
from lakewright.manifest.watermarks import Watermark, Watermarks
from lakewright.testing import MemoryStore
from lakewright.upkeep.fsck import fsck
from lakewright.upkeep.transfer import export_manifest, import_manifest

UUIDS = [f"00000000-0000-4000-8000-{number:012}" for number in range(10)]


def lived_in() -> MemoryStore:
    """A store with processed, failed, skipped and requeued items, and watermarks."""
    store = MemoryStore(Clock())
    ledger = ledger_of(store, ids=numbered())
    ledger.discover(found(name) for name in ("a", "b", "c", "d"))
    for day, name in enumerate("ab", 1):
        content = {
            "watermarks": {"day": {"type": "date", "value": f"2022-01-0{day}"}},
            "metrics": {"inserted": 1},
        }
        ledger.processed(claim(ledger, found(name).item_id), content)
    ledger.failed(claim(ledger, found("c").item_id), failure(ValueError("é\n")))
    ledger.skip(found("d").item_id, "twice", application=COUNTRIES)
    ledger.requeue(found("a").item_id, "again")
    return store


def snowplow(
    record_id: int, state: str, previous: int | None, *, second: int, **changes: Any
) -> dict[str, Any]:
    """A record with the eight keys of Snowplow's form."""
    return {
        "itemId": "s3://acme/shredded/good/run=2017-02-15-13-10-30/",
        "application": {"agent": {"name": "rdb-shredder", "version": "0.13.0"}, "instanceId": None},
        "recordId": UUIDS[record_id],
        "previousRecordId": None if previous is None else UUIDS[previous],
        "state": state,
        "timestamp": f"2018-01-01T00:00:{second:02}.123Z",
        "author": {"agent": {"name": "rdb-shredder", "version": "0.13.0"}, "manifestVersion": "0.1.0"},
        "payload": None,
        **changes,
    }


def test_an_export_is_the_same_after_import() -> None:
    store = lived_in()
    lines = list(export_manifest(store))
    copy = MemoryStore()
    imported = import_manifest(copy, lines)
    assert (imported.records, imported.documents) == (len(lines) - 2, 2)
    assert (imported.present, imported.faults) == (0, ())
    assert list(export_manifest(copy)) == lines
    assert copy._items == store._items
    assert copy.counts() == store.counts()
    assert (
        Watermarks(copy).last(REGIONS)
        == Watermarks(store).last(REGIONS)
        == {"day": Watermark("date", "2022-01-02")}
    )
    counters = [each.document(COUNTER, "silver/regions") for each in (copy, store)]
    assert [counter and counter.value for counter in counters] == [{"last": 3}, {"last": 3}]


def test_watermarks_that_an_operator_lowered_or_deleted_are_imported_as_they_are() -> None:
    store = lived_in()
    watermarks = Watermarks(store)
    back = Watermark("date", "2021-12-31")
    ledger_of(store, ids=numbered("c-1")).set_watermark(REGIONS, "day", back, "read it again")
    copy = MemoryStore()
    import_manifest(copy, export_manifest(store))
    assert Watermarks(copy).last(REGIONS) == {"day": back}
    assert list(Watermarks(copy).changes()) == list(watermarks.changes())

    ledger_of(store, ids=numbered("c-2")).set_watermark(REGIONS, "day", None, "from the start")
    copy = MemoryStore()
    import_manifest(copy, export_manifest(store))
    assert Watermarks(copy).last(REGIONS) == {}
    assert len(list(Watermarks(copy).changes())) == 2


def processed_one_more(store: MemoryStore, name: str, day: str) -> None:
    ledger = ledger_of(store, ids=numbered(f"more-{name}"))
    ledger.discover([found(name)])
    content = {"watermarks": {"day": {"type": "date", "value": day}}}
    ledger.processed(claim(ledger, found(name).item_id), content)


def test_a_second_import_updates_a_copy() -> None:
    store, copy = lived_in(), MemoryStore()
    import_manifest(copy, export_manifest(store))
    processed_one_more(store, "x", "2022-05-05")
    import_manifest(copy, export_manifest(store))
    assert Watermarks(copy).last(REGIONS) == {"day": Watermark("date", "2022-05-05")}

    back = Watermark("date", "2021-12-31")
    ledger_of(store, ids=numbered("c-1")).set_watermark(REGIONS, "day", back, "read it again")
    import_manifest(copy, export_manifest(store))
    assert Watermarks(copy).last(REGIONS) == {"day": back}


def test_a_change_made_to_a_copys_watermark_is_kept() -> None:
    store, copy = lived_in(), MemoryStore()
    lines = list(export_manifest(store))
    import_manifest(copy, lines)
    ledger_of(copy, ids=numbered("c-1")).set_watermark(REGIONS, "day", None, "from the start")
    import_manifest(copy, lines)
    assert Watermarks(copy).last(REGIONS) == {}


def test_a_watermark_is_not_imported_without_its_item() -> None:
    lines = [json.loads(line) for line in export_manifest(lived_in())]
    kept = [
        line
        for line in lines
        if "document" in line or (line["itemId"], line["state"]) != (found("b").item_id, "PROCESSING")
    ]
    copy = MemoryStore()
    assert len(import_manifest(copy, map(json.dumps, kept), keep_going=True).faults) == 1
    assert Watermarks(copy).last(REGIONS) == {"day": Watermark("date", "2022-01-01")}


def test_the_history_of_runs_is_exported_and_leases_are_not() -> None:
    store = lived_in()
    holder = Holder(host="bench", pid=1, started="", run_id="run-1")
    journal = Journal(store)
    build = Put(BUILD, "lake/1", {"project": "lake", "target": "regions", "parameters": {}})
    run = journal.start_run(Run("run-1", "lake", "main", "BUILD", {"day": "1"}, store.now(), holder), [build])
    claim(ledger_of(store, ids=numbered("later")), found("d").item_id)
    assert list(store.documents(LEASE))
    copy = MemoryStore()
    import_manifest(copy, export_manifest(store))
    assert [each.as_json() for each in Journal(copy).runs()] == [{**run.as_json(), "status": "ABORTED"}]
    assert [each.value for each in copy.documents(BUILD)] == [build.value]
    assert not list(copy.documents(LEASE))


def test_numbers_of_data_commits_only_grow() -> None:
    store = lived_in()
    lines = list(export_manifest(store))
    present = store.document(COUNTER, "silver/regions")
    assert present is not None
    store.write(Write(puts=(Put(COUNTER, "silver/regions", {"last": 9}, present.version),)))
    import_manifest(store, lines)
    behind = MemoryStore()
    behind.write(Write(puts=(Put(COUNTER, "silver/regions", {"last": 1}, 0),)))
    import_manifest(behind, lines)
    found_last = [each.document(COUNTER, "silver/regions") for each in (store, behind)]
    assert [each and each.value["last"] for each in found_last] == [9, 3]


def test_records_are_exported_with_the_manifests_names() -> None:
    record = json.loads(next(export_manifest(lived_in())))
    assert list(record) == [
        "recordId",
        "itemId",
        "application",
        "author",
        "runId",
        "state",
        "previousRecordId",
        "timestamp",
        "payload",
        "sequence",
    ]
    assert Record.from_json(record).as_json() == record


def test_importing_again_changes_nothing() -> None:
    store = lived_in()
    lines = list(export_manifest(store))
    before = dict(store._items)
    imported = import_manifest(store, lines)
    assert (imported.records, imported.present) == (0, len(lines))
    assert store._items == before


def test_import_continues_a_known_item() -> None:
    lines = list(export_manifest(lived_in()))
    copy = MemoryStore()
    import_manifest(copy, lines[:3])
    imported = import_manifest(copy, lines)
    assert Watermarks(copy).last(REGIONS) == {"day": Watermark("date", "2022-01-02")}
    # A watermark and a counter followed from the first three.
    assert (imported.records, imported.present, imported.faults) == (len(lines) - 2 - 3, 3 + 2, ())


def test_snowplow_records_are_imported_in_the_order_of_their_time() -> None:
    records = [
        snowplow(2, "PROCESSED", 1, second=3),
        snowplow(0, "NEW", None, second=1),
        snowplow(1, "PROCESSING", None, second=2),
    ]
    store = MemoryStore()
    assert import_manifest(store, map(json.dumps, records)).records == 3
    item_id = records[0]["itemId"]
    stored = store.records(item_id)
    assert [(record.state, record.sequence, record.run_id) for record in stored] == [
        ("NEW", 1, None),
        ("PROCESSING", 2, None),
        ("PROCESSED", 3, None),
    ]
    assert stored[0].as_json()["timestamp"] == "2018-01-01T00:00:01.123000Z"
    shredder, loader = Application.named("rdb-shredder"), Application.named("rdb-loader", "db")
    item = store.read([item_id])[item_id]
    assert (item.verdict(shredder), item.verdict(loader)) == (Verdict.PROCESSED, Verdict.READY)


def test_an_item_with_an_illegal_record_is_left_out_and_named() -> None:
    spoilt = [
        snowplow(0, "NEW", None, second=1),
        snowplow(1, "PROCESSING", None, second=2),
        snowplow(2, "FAILED", None, second=3),
    ]
    good = snowplow(3, "NEW", None, second=1, itemId="s3://acme/good/")
    store = MemoryStore()
    lines = [json.dumps(record) for record in [*spoilt, good]]
    refused = import_manifest(store, lines, source="dump.ndjson")
    assert (refused.records, refused.is_refused) == (0, True)
    assert not store._items
    imported = import_manifest(store, lines, source="dump.ndjson", keep_going=True)
    assert imported.records == 1
    assert [fault.message for fault in refused.faults] == [fault.message for fault in imported.faults]
    assert [str(fault.location) for fault in imported.faults] == ["dump.ndjson:3"]
    assert "FAILED follows the open PROCESSING" in imported.faults[0].message
    assert store.records(spoilt[0]["itemId"]) == ()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "neither a record nor a document"),
        ("[]", "neither a record nor a document"),
        ("7", "neither a record nor a document"),
        ('{"recordId": "x"}', "has no 'author'"),
        (json.dumps(snowplow(0, "DONE", None, second=1)), "neither a record nor a document"),
        (json.dumps(snowplow(0, "NEW", None, second=1, timestamp="soon")), "neither a record nor a document"),
        (json.dumps(snowplow(0, "NEW", None, second=1, application=None)), "neither a record nor a document"),
        (json.dumps(snowplow(0, "NEW", None, second=1, payload=[1])), "neither a record nor a document"),
        ("[" * 100_000, "neither a record nor a document"),
        ('{"document": {"kind": "lease", "key": "x", "value": {}}}', "of the kind 'lease'"),
        ('{"document": {"kind": "watermark", "key": "x", "value": {}}}', "has no 'application'"),
        ('{"document": {"kind": "run", "key": "x"}}', "has no 'value'"),
        ('{"document": 1}', "neither a record nor a document"),
        ('{"document": {"kind": "counter", "key": "x", "value": {"last": "3"}}}', "has the value '3'"),
        ('{"document": {"kind": "counter", "key": "x", "value": {"last": 1e400}}}', "has the value inf"),
        ('{"document": {"kind": "taint", "key": "x", "value": {}}}', "has no 'reason'"),
        ('{"document": {"kind": "run_key", "key": "x", "value": {}}}', "has no 'key'"),
    ],
)
def test_invalid_lines_are_named_and_the_others_imported_if_wanted(line: str, message: str) -> None:
    """A10: without `keep_going` nothing is imported, also what stands before the line."""
    good = json.dumps(snowplow(3, "NEW", None, second=1, itemId="s3://acme/good/"))
    store = MemoryStore()
    assert import_manifest(store, iter(["", good, line])).is_refused
    assert not store._items
    imported = import_manifest(store, ["", line, good], keep_going=True)
    assert imported.records == 1
    assert [str(fault.location) for fault in imported.faults] == ["import:2"]
    assert message in imported.faults[0].message


def test_a_record_id_of_two_items_is_found_before_anything_is_imported() -> None:
    """A10: the check sees records that the same file would add."""
    one, other = (snowplow(0, "NEW", None, second=1, itemId=f"s3://acme/{name}/") for name in "ab")
    first = snowplow(1, "NEW", None, second=1, itemId="s3://acme/c/")
    later = snowplow(2, "PROCESSING", None, second=2, itemId="s3://acme/c/")
    store = MemoryStore()
    assert import_manifest(store, map(json.dumps, [one, other])).is_refused
    assert not store._items
    assert import_manifest(store, map(json.dumps, [first, one, later])).records == 3


def test_many_items_are_imported_in_batches() -> None:
    records = [
        snowplow(0, "NEW", None, second=1, itemId=f"s3://acme/{n}/", recordId=f"r{n}") for n in range(1_201)
    ]
    store = MemoryStore()
    assert import_manifest(store, map(json.dumps, records)).records == 1_201


def test_watermarks_of_other_tools_are_ignored() -> None:
    payload = {"schema": "x", "data": {"watermarks": {"day": "yesterday"}}}
    records = [
        snowplow(1, "PROCESSING", None, second=2),
        snowplow(2, "PROCESSED", 1, second=3, payload=payload),
    ]
    store = MemoryStore()
    assert import_manifest(store, map(json.dumps, records)).faults == ()
    assert list(Watermarks(store).all()) == []


class TestFsck:
    def test_finds_nothing_in_a_sound_store(self) -> None:
        assert list(fsck(lived_in())) == []

    def test_reports_derived_data_that_does_not_match_the_records(self) -> None:
        store = lived_in()
        a, b, c, d = (found(name).item_id for name in "abcd")
        store._records[b][1] = draft("odd", "PROCESSED", "x", item=b).recorded(sequence=2, now=Clock().time)
        del store._records[c]
        del store._items[d]
        damages = list(fsck(store))
        of_items = [damage for damage in damages if damage.item_id != "*"]
        assert [(damage.item_id, damage.record_id, damage.problem) for damage in of_items] == [
            (b, "odd", "PROCESSED follows the open PROCESSING"),
            (b, None, "it is listed in another state than its records give"),
            (c, None, "it is listed, but has no records"),
            (d, None, "it has records, but isn't listed"),
        ]
        of_all = {damage.problem for damage in damages if damage.item_id == "*"}
        assert "the counts by verdict differ from the items" in of_all
        assert "items listed as ready: 1 instead of 2" in of_all
        assert a not in {damage.item_id for damage in damages}

    def test_names_items_at_the_end_without_records(self) -> None:
        store = MemoryStore()
        put_down(store, draft("new", "NEW"))
        store._records.clear()
        damage = Damage(ITEM, None, "it is listed, but has no records")
        assert damage in list(fsck(store))


def test_secrets_in_imported_payloads_are_removed() -> None:
    """Issue 12: as from payloads that are written here; what later runs read is kept."""
    redactor = Redactor(frozenset({"hunter2!"}))
    theirs = {
        "schema": "iglu:com.acme/load/jsonschema/1-0-0",
        "data": {"dsn": "pg://me:x@db", "db_password": "x"},
    }
    ours = failure(ValueError("login hunter2! failed"), fingerprint="hunter2!")
    lines = [
        snowplow(0, "NEW", None, second=1),
        snowplow(1, "PROCESSING", None, second=2),
        snowplow(2, "FAILED", 1, second=3, payload={"schema": "lakewright/failed/1", "data": ours}),
        snowplow(3, "NEW", None, second=1, itemId="s3://acme/b/", payload=theirs),
        snowplow(4, "NEW", None, second=1, itemId="s3://acme/c/", payload={"note": "hunter2!"}),
    ]
    store = MemoryStore()
    assert import_manifest(store, map(json.dumps, lines), redactor=redactor).faults == ()
    (failed,) = [record for record in store.records(lines[0]["itemId"]) if record.state == "FAILED"]
    assert failed.content["error"]["message"] == "login *** failed"
    assert failed.content["fingerprint"] == "hunter2!"
    (loaded,), (noted,) = (store.records(f"s3://acme/{name}/") for name in "bc")
    assert loaded.payload == {**theirs, "data": {"dsn": "pg://***@db", "db_password": "***"}}
    assert noted.payload == {"note": "***"}


def test_secrets_in_imported_runs_and_watermarks_are_removed() -> None:
    """Issue 12: also from the parameters and facts of runs, the results of targets and operators' reasons."""
    store = MemoryStore(Clock())
    journal = Journal(store)
    run = Run(
        "r1", "lake", "daily", "BUILD", {"token": "abc", "day": "1"}, store.now(), Holder("h", 1, "", "r1")
    )
    build = {"project": "lake", "target": "t", "parameters": {"day": "hunter2!"}}
    taint = {"place": {**build, "phase": "BUILD"}, "reason": "failed"}
    journal.start_run(run, [Put(BUILD, "lake/1", build), Put(TAINT, "lake/2", taint)])
    journal.record_targets(run, {0: {"name": "t", "instance": {"token": "abc"}, "error": "hunter2!"}})
    mark = Watermark.from_json({"type": "date", "value": "2022-01-01"})
    ledger_of(store, ids=numbered("c1")).set_watermark(COUNTRIES, "day", mark, "hunter2!")
    copy = MemoryStore()
    redactor = Redactor(frozenset({"hunter2!"}))
    assert import_manifest(copy, export_manifest(store), redactor=redactor).faults == ()
    assert "hunter2!" not in "".join(export_manifest(copy))
    imported = next(Journal(copy).runs())
    assert (imported.run_id, imported.parameters) == ("r1", {"token": "***", "day": "1"})
    assert import_manifest(MemoryStore(), export_manifest(copy)).faults == ()

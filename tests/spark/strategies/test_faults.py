"""Slices that can't be processed: each has its own error and leaves all else as it was.

Headings are those of `processing-strategies.md` and `processing-manifest.md`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, hours, pa, pq, table_of

from lakewright.errors import (
    DeleteBrakeError,
    ItemFailed,
    LateSliceError,
    SchemaDriftError,
    SliceError,
    SpecError,
    TargetError,
    UsageError,
)
from lakewright.manifest.verdict import Verdict
from lakewright.slices.pending_slices import find_pending

ROWS = [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def overwrite(file: Path) -> None:
    file.write_bytes(b"PAR1" + b"x" * 5000 + b"PAR1")


def test_a_damaged_slice_fails_and_leaves_the_table(lake: SmallLake) -> None:
    """ "Error Handling"; "State" (Failed)."""
    crm = entity()
    lake.load(crm, "s1", ROWS)
    before = lake.version(crm)
    for number, damage in enumerate((cut, empty, overwrite), start=2):
        damage(lake.put(crm, f"s{number}", ROWS))

        error = lake.process(crm).error

        assert isinstance(error, SliceError), damage
        assert f"s{number}" in error.message
        assert lake.version(crm) == before
        (item,) = [item for item in lake.items() if item.item_id.endswith(f"s{number}")]
        assert item.verdict(lake.bench(crm).application) is Verdict.FAILED
        assert lake.store.records(item.item_id)[-1].content["error"]["class"] == "SliceError"
        lake.put_aside()


def test_a_damaged_page_is_noticed_by_its_checksum(lake: SmallLake) -> None:
    crm = entity()
    file = lake.put(crm, "s1", ROWS)
    table = table_of([{"id": n, "v": "x" * 50} for n in range(1000)])
    pq.write_table(table, file, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray(file.read_bytes())
    content[3000] ^= 1
    file.write_bytes(bytes(content))

    assert isinstance(lake.process(crm).error, SliceError)


def test_a_slice_that_vanished_or_changed_fails(lake: SmallLake) -> None:
    crm = entity()
    file = lake.put(crm, "s1", ROWS)
    find_pending(lake.bench(crm), crm)
    file.unlink()
    assert isinstance(lake.process(crm).error, SliceError)

    lake.put(crm, "s1", [*ROWS, {"id": 3, "v": "c"}])
    assert isinstance(lake.process(crm).error, ItemFailed)
    (item,) = lake.items()
    lake.ledger.resolve(item.item_id, "it is back")
    assert "changed" in str(lake.process(crm).error)

    from lakewright.slices.discovery import find_slice

    found = find_slice(entity().places(lake.lake.settings).slices, "s1", lake.lake)
    assert found is not None
    lake.ledger.resolve(item.item_id, "right as it is", fingerprint=found.fingerprint)
    assert lake.process(crm).slices[0].summary.inserted == 3


def test_a_changed_slice_is_told_and_no_run_takes_it_a2(lake: SmallLake) -> None:
    crm = entity()
    lake.load(crm, "s1", [{"id": 1, "v": "a"}])
    lake.load(crm, "s2", [{"id": 2, "v": "b"}])
    lake.put(crm, "s1", [{"id": 1, "v": "corrected"}, {"id": 2, "v": "older"}])

    told = lake.process(crm)

    assert (told.slices, told.errors) == ((), ())
    assert told.warning is not None
    assert "s1" in told.warning.message
    assert lake.rows(crm, "id", "v") == [(1, "a"), (2, "b")]
    left = lake.process(entity(settings={"changed_slices": "take"}))
    assert left.slices == ()
    assert left.warning is not None
    assert lake.rows(crm, "id", "v") == [(1, "a"), (2, "b")]


def test_a_failed_slice_holds_back_those_after_it_and_no_others(lake: SmallLake) -> None:
    """ "State" (Failed blocks until Resolved); other entities go on."""
    crm, other = entity(), entity(name="other")
    lake.load(crm, "s1", ROWS)
    empty(lake.put(crm, "s2", ROWS))
    lake.put(crm, "s3", [{"id": 3, "v": "c"}])

    first = lake.process(crm)
    again = lake.process(crm)

    assert (first.failed, first.waiting) == (("s2",), ("s3",))
    assert isinstance(again.error, ItemFailed)
    assert again.waiting == ("s3",)
    assert lake.load(other, "s1", ROWS).inserted == 2
    (item,) = [item for item in lake.items() if item.item_id.endswith("s2")]
    lake.ledger.resolve(item.item_id, "skip it")
    lake.ledger.skip(item.item_id, "damaged")
    assert [done.name for done in lake.process(crm).slices] == ["s3"]


def test_a_late_slice_is_refused_or_applied_as_the_entity_says(lake: SmallLake) -> None:
    """ "Processing Time Override", "Caution"."""
    crm = entity("historic")
    lake.load(crm, "s2", [{"id": 1, "v": "new"}])
    lake.put(crm, "s1", [{"id": 1, "v": "old"}])
    lake.put(crm, "s3", [{"id": 2, "v": "x"}])

    result = lake.process(crm)

    assert isinstance(result.error, LateSliceError)
    assert [done.name for done in result.slices] == ["s3"]
    (item,) = [item for item in lake.items() if item.item_id.endswith("s1")]
    lake.ledger.requeue(item.item_id, "apply it", allow_late=True)
    assert lake.process(crm).slices[0].summary.updated == 1

    applying = entity("historic", settings={"late_slices": "end"})
    assert lake.load(applying, "s0", [{"id": 2, "v": "y"}]).updated == 1


@pytest.mark.parametrize("goes_on", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_too_many_inferred_deletes_fail_the_slice(lake: SmallLake, goes_on: bool) -> None:
    """A4: delete inference has a brake, whose two limits the error names."""
    stock = entity(settings={"delete_missing": True, "delete_scope": "full", "max_delete_ratio": 0.1})
    lake.load(stock, "s1", [{"id": n, "v": "x"} for n in range(900)])

    error = lake.fail(stock, "s2", [{"id": 1, "v": "x"}])

    assert isinstance(error, DeleteBrakeError)
    assert error.message == (
        "899 of the 900 rows in the slice's window are missing from it and would be soft-deleted; "
        "max_delete_ratio allows 10%, and delete_floor 20 rows whatever their share"
    )
    limits = {"max_delete_ratio": 0.1, "delete_floor": 20}
    assert error.details.items() >= {"inferred": 899, "rows": 900, **limits}.items()
    if not goes_on:
        return
    lake.put_aside()
    assert lake.load(stock, "s3", [{"id": n, "v": "x"} for n in range(820)]).inferred_deletes == 80
    lax = stock.model_copy(update={"settings": stock.settings.model_copy(update={"delete_floor": 819})})
    assert lake.load(lax, "s4", [{"id": 1, "v": "x"}]).inferred_deletes == 819


@pytest.mark.parametrize(
    ("expression", "told", "verdict"),
    [
        ("no_such_function(id)", "no_such_function", Verdict.READY),
        ("100 / (id - 2)", "Division by zero", Verdict.FAILED),
        # test_a_configured_cast_that_fails_names_column_and_value has such a value
        pytest.param("cast(v as int)", "CAST_INVALID_INPUT", Verdict.FAILED, marks=pytest.mark.nightly),
    ],
)
def test_a_failing_expression_is_named_with_its_column_and_fails_the_slice_for_its_values_only_b2(
    lake: SmallLake, expression: str, told: str, verdict: Verdict
) -> None:
    """ "Common Processing Pipeline": add calculated columns."""
    crm = entity(
        columns=[{"name": "id", "fieldroles": ["businesskey"]}, {"name": "calc", "expression": expression}]
    )

    error = lake.fail(crm, "s1", ROWS)

    assert isinstance(error, TargetError if verdict is Verdict.FAILED else SpecError)
    assert lake.version_or_none(crm) is None
    assert [item.verdict(lake.bench(crm).application) for item in lake.items()] == [verdict]
    assert "'calc'" in error.message
    assert expression in error.message
    assert told in error.message
    assert lake.version_or_none(crm) is None


def test_an_expression_over_a_column_fails_the_slice_only_if_earlier_ones_had_it_b2(lake: SmallLake) -> None:
    keyed = {"name": "id", "fieldroles": ["businesskey"]}
    mistyped = entity(columns=[keyed, {"name": "calc", "expression": "no_such_column + 1"}])
    error = lake.fail(mistyped, "s1", ROWS)
    assert "no_such_column" in error.message
    assert [item.failed for item in lake.items()] == [None]

    right = entity(columns=[keyed, {"name": "calc", "expression": "concat(v, 'x')"}])
    assert lake.process(right).slices[0].summary.inserted == 2
    lake.fail(right, "s2", [{"id": 1, "w": "a"}])
    assert [item.failed is not None for item in lake.items()] == [False, True]


@pytest.mark.parametrize("strategy", ["historic", pytest.param("full", marks=pytest.mark.nightly)])
def test_a_configured_cast_that_fails_names_column_and_value(lake: SmallLake, strategy: str) -> None:
    """ "Common Processing Pipeline": cast columns."""
    typed = entity(
        strategy,
        columns=[{"name": "id", "fieldroles": ["businesskey"]}, {"name": "v", "datatype": "integer"}],
    )
    error = lake.fail(typed, "s1", [{"id": 1, "v": "7"}, {"id": 2, "v": "seven"}])
    assert isinstance(error, SchemaDriftError)
    (bad,) = error.details["rows"]
    assert (bad["key"], bad["reason"]) == (
        {"id": 2},
        "column 'v': the value 'seven' doesn't fit the type int",
    )
    assert [error.details[name] for name in ("column", "type", "sample")] == ["v", "int", "seven"]
    assert lake.version_or_none(typed) is None


def test_configured_columns_must_be_there(lake: SmallLake) -> None:
    """ "Schema Drift"."""
    crm = entity(columns=[{"name": "id", "fieldroles": ["businesskey"]}, {"name": "gone"}, {"name": "lost"}])

    error = lake.fail(crm, "s1", ROWS)

    assert isinstance(error, SchemaDriftError)
    assert "'gone', 'lost'" in error.message


def test_a_column_fails_the_slice_only_if_earlier_slices_had_it_b2(lake: SmallLake) -> None:
    """A typo in the declaration needs no `resolve`."""
    keyed = {"name": "id", "fieldroles": ["businesskey"]}
    mistyped = entity(columns=[keyed, {"name": "vv", "newname": "w"}])
    result = [lake.fail(mistyped, "s1", ROWS), lake.process(mistyped).error]
    assert all(isinstance(error, SchemaDriftError) for error in result)

    right = entity(columns=[keyed, {"name": "v", "newname": "w"}])
    assert lake.process(right).slices[0].summary.inserted == 2
    lake.put(right, "s2", [{"id": 1}])
    ended = lake.process(right)

    assert (ended.failed, ended.waiting) == (("s2",), ())
    assert isinstance(lake.process(right).error, ItemFailed)


@pytest.mark.nightly
def test_a_broken_constraint_is_named_and_nothing_is_written(lake: SmallLake) -> None:
    crm = entity()
    lake.load(crm, "s1", ROWS)
    location = crm.places(lake.lake.settings).silver.sql
    lake.spark.sql(f"ALTER TABLE {location} ADD CONSTRAINT short_v CHECK (length(v) < 5)")
    before = lake.version(crm)

    error = lake.fail(crm, "s2", [{"id": 1, "v": "much too long"}])

    assert isinstance(error, TargetError)
    assert "short_v" in error.message
    assert lake.version(crm) == before


NAMES = ["a b%20c", "x:y.parquet", "h#1?.parquet", "[a]{b}*", "é😀", "_no", ".no", "z" * 200]


@pytest.mark.parametrize(
    "names",
    [
        ["a b%20c:#1?[a]{b}*é😀.parquet", "_no", ".no"],
        pytest.param(NAMES, marks=pytest.mark.nightly, id="one by one"),
    ],
)
def test_names_of_slices_are_names_whatever_they_hold(lake: SmallLake, names: list[str]) -> None:
    """Slices: names with spaces, percent signs, patterns, colons and signs beyond ASCII."""
    crm = entity()
    for number, name in enumerate(names):
        lake.put(crm, name, [{"id": number, "v": name}])

    result = lake.process(crm)

    assert result.error is None
    found = lake.rows(crm, "v", "dlf_source_filename")
    assert found == sorted(((name, name) for name in names if name[0] not in "._"), key=repr)


def test_a_folder_is_one_slice_and_its_files_come_together_by_name(lake: SmallLake) -> None:
    crm = entity()
    folder = lake.put(crm, "s1", ROWS).parent / "batch:1"
    folder.mkdir()
    pq.write_table(table_of([{"id": 3, "v": "c"}]), folder / "part-1")
    pq.write_table(table_of([{"w": 1.5, "id": 4}]), folder / "part-2")
    (folder / "_SUCCESS").touch()

    result = lake.process(crm)

    assert [done.name for done in result.slices] == ["batch:1", "s1"]
    assert lake.rows(crm, "id", "v", "w") == [(1, "a", None), (2, "b", None), (3, "c", None), (4, None, 1.5)]


def test_columns_of_any_name_arrive_and_clashing_ones_are_refused(lake: SmallLake) -> None:
    """ "Common Processing Pipeline": normalize column names."""
    odd = "a`; DROP TABLE x --"
    crm = entity(columns=[{"name": "the id", "fieldroles": ["businesskey"]}, {"name": "b.c", "newname": "d"}])
    lake.load(crm, "s1", [{"the id": 1, odd: "x", "b.c": 2, "größe 😀": 3, "s": {"net price": 4}}])
    lake.load(crm, "s2", [{"the id": 1, odd: "y", "b.c": 2, "größe 😀": 3, "s": {"net price": 5}}])
    assert lake.rows(crm, "theid", "a`DROPTABLEx", "d", "größe😀") == [(1, "y", 2, 3)]
    assert lake.table(crm).selectExpr("s.netprice").first() == (5,)

    # The other names that clash are in the unit test of column names.
    error = lake.fail(entity(name="clash"), "s1", pa.table([[1]] * 3, names=["id", "net price", "netprice"]))
    assert isinstance(error, SchemaDriftError)
    assert "netprice" in error.message


def test_values_of_all_types_arrive_as_they_are_and_twice_without_change(lake: SmallLake) -> None:
    from datetime import UTC, date, datetime
    from decimal import Decimal

    row: dict[str, Any] = {
        "id": 1,
        "n": Decimal("123456789012345678.000000000000000001"),
        "day": date(1500, 1, 1),
        "at": datetime(1600, 2, 3, 4, 5, 6, 7, tzinfo=UTC),
        "local": datetime(2024, 3, 31, 2, 30),
        "b": b"\x00\xff",
        "t": " trailing \x00 ",
        "list": [1, None],
        "pairs": [("k", 1), ("j", None)],
        "inner": {"x": None, "y": "z"},
    }
    schema = [
        ("id", pa.int64()),
        ("n", pa.decimal128(38, 18)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("b", pa.binary()),
        ("t", pa.string()),
        ("list", pa.list_(pa.int32())),
        ("pairs", pa.map_(pa.string(), pa.int64())),
        ("inner", pa.struct([("x", pa.int64()), ("y", pa.string())])),
        ("none", pa.null()),
    ]
    history = entity("historic")
    lake.load(history, "s1", [row, {"id": 2}], schema)

    turned = {**row, "pairs": row["pairs"][::-1]}
    again = lake.load(history, "s2", [turned, {"id": 2, "inner": None}], schema)

    assert (again.unchanged, again.delta_version) == (2, None)
    columns = [name for name, _ in schema if name not in {"at", "none"}]
    found: Any = lake.table(history).where("id = 1").select(*columns).first()
    assert {**found.asDict(recursive=True), "b": bytes(found["b"])} == {
        **{name: row[name] for name in columns},
        "pairs": {"k": 1, "j": None},
    }
    assert lake.load(history, "s3", [row, {"id": 2, "inner": {}}], schema).unchanged == 2


def test_a_slice_may_be_named_if_it_is_there_and_not_done(lake: SmallLake) -> None:
    crm = entity()
    lake.put(crm, "s1", ROWS)
    lake.put(crm, "s2", ROWS)
    result = lake.process(crm, "s1", processing_time=hours(3).isoformat())
    assert [done.name for done in result.slices] == ["s1"]
    assert [item.verdict(lake.bench(crm).application) for item in lake.items()] == [
        Verdict.PROCESSED,
        Verdict.READY,
    ]
    for name in ("s1", "s7"):
        with pytest.raises(UsageError, match=name):
            lake.process(crm, name)

"""A12, B1, A6: rows that cannot be used are named, or put aside; bytes that do not decode fail the slice."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, pa

from lakewright.errors import BadRowsError, NullKeyError, SchemaDriftError, SliceError
from lakewright.slices.pending_slices import find_pending
from lakewright.slices.quarantine import quarantine_folder
from lakewright.slices.validation import preview_next_slice
from lakewright.spec.models.entity import Entity

ID = {"name": "id", "datatype": "integer", "fieldroles": ["businesskey"]}
COLUMNS = [ID, {"name": "price", "datatype": "decimal(6,2)"}]


def put(lake: SmallLake, things: Entity, name: str, content: bytes | str) -> None:
    folder = Path(things.places(lake.lake.settings).bronze)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def error_of(lake: SmallLake, things: Entity) -> Any:
    error = lake.process(things).error
    assert error is not None
    lake.put_aside()
    return error


def aside(lake: SmallLake, things: Entity, name: str) -> list[dict[str, Any]]:
    """Return the rows of a slice that were put aside."""
    file = Path(quarantine_folder(lake.lake, things, name)) / "rows.json"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_errors_name_the_file_and_line_or_the_key_of_bad_rows(lake: SmallLake) -> None:
    """B1, A12: what is wrong is found without opening the files."""
    lines = entity(name="lines", columns=COLUMNS, settings={"format": "json"})
    put(lake, lines, "s1.json", '{"id": 1, "price": 1}\n{"id": 2, "pri\n{"id": 3, "price": 2}\n{"id": \n')
    error = error_of(lake, lines)
    assert isinstance(error, SliceError)
    assert error.message == (
        "the slice s1.json of lines has rows that can't be read: s1.json, line 2: the row does not parse; "
        "s1.json, line 4: the row does not parse"
    )

    sheet = entity(name="sheet", columns=COLUMNS, settings={"format": "csv"})
    put(lake, sheet, "s1.csv", "id,price\n1,2\n2,3,4\n")
    assert "s1.csv, line 3: the row does not parse" in error_of(lake, sheet).message
    put(lake, sheet, "s2.csv", "id,price\n1,2\n2,x\n3,1.005\n")
    error = error_of(lake, sheet)
    assert isinstance(error, SchemaDriftError)
    assert (
        "column 'price': the value 'x' doesn't fit the type decimal(6,2), in id=2; further rows:"
        in error.message
    )
    assert "id=3: column 'price': the value '1.005' doesn't fit" in error.message
    put(lake, sheet, "s3.csv", "id,price\n1,2\n,3\n")
    error = error_of(lake, sheet)
    assert isinstance(error, NullKeyError)
    assert 's3.csv, {"price":"3"}: column \'id\' of the business key is null' in error.message
    put(lake, sheet, "s4.csv", "id,prize,name\n1,2,a\n")
    error = lake.process(sheet).error
    assert "lacks the configured column 'price'; it has 'id', 'prize', 'name'" in str(error)


@pytest.mark.parametrize("kind", ["csv", pytest.param("json", marks=pytest.mark.nightly)])
def test_bad_rows_are_put_aside_and_counted(lake: SmallLake, kind: str) -> None:
    """A12: the other rows are processed, the identities hold, and a rerun replaces the folder."""
    settings = {"format": kind, "on_bad_rows": "quarantine", "max_bad_rows": 4}
    infers = {"delete_missing": True, "delete_scope": "full"} if kind == "json" else {}
    strategy = "historic" if kind == "csv" else "merge"
    things = entity(strategy, name=kind, columns=COLUMNS, settings=settings | infers)
    rows = [("1", "1"), ("2", "x"), (None, "3"), ("4", "4.00"), ("y", "5")]

    def text(cut: str, *rows: tuple[str | None, str]) -> str:
        if kind == "csv":
            return "id,price\n" + "".join(f"{id_ or ''},{price}\n" for id_, price in rows) + cut
        return "".join(json.dumps({"id": id_, "price": p}) + "\n" for id_, p in rows) + cut

    cut = "7,8,9\n" if kind == "csv" else '{"id": 7, "pr\n'
    put(lake, things, "s1", text("", ("1", "1"), ("9", "9")))
    put(lake, things, "s2", text(cut, *rows))
    first, second = (done.summary for done in lake.process(things).slices)
    assert (first.quarantined, second.records_in_slice, second.quarantined, second.inserted) == (0, 6, 4, 1)
    assert second.inferred_deletes == 0
    assert [(id_, str(price)) for id_, price in lake.rows(things, "id", "price")] == [
        (1, "1.00"),
        (4, "4.00"),
        (9, "9.00"),
    ]
    found = aside(lake, things, "s2")
    assert aside(lake, things, "s1") == []
    assert sorted((row["reason"], str(row["key"])) for row in found) == [
        ("column 'id' of the business key is null", "None"),
        ("column 'id': the value 'y' doesn't fit the type int", "{'id': 'y'}"),
        ("column 'price': the value 'x' doesn't fit the type decimal(6,2)", "{'id': '2'}"),
        ("the row does not parse", "None"),
    ]
    (unparsed,) = [row for row in found if row["reason"] == "the row does not parse"]
    assert (unparsed["line"], unparsed["record"]) == (7 if kind == "csv" else 6, cut.strip())
    (warning,) = [text for text in lake.warnings if "4 bad rows were put aside in" in text]
    assert warning.endswith(" and 1 more")
    assert warning.count("; ") == 2

    # The slice is delivered again without them, then with too many.
    item = next(item for item in lake.items() if item.item_id.endswith("/s2"))
    put(lake, things, "s2", text("", ("1", "1"), ("2", "2")))
    lake.ledger.requeue(item.item_id, "corrected", fingerprint={})
    assert lake.process(things).slices[0].summary.quarantined == 0
    assert not Path(quarantine_folder(lake.lake, things, "s2")).exists()
    put(lake, things, "s3", text("", ("1", "1"), *[(str(n), "x") for n in range(5)]))
    error = error_of(lake, things)
    assert isinstance(error, BadRowsError)
    assert error.message.startswith("the slice has more than 4 bad rows, which is max_bad_rows: id=0: column")
    hint = "Check the type of column 'price': no bad row fits decimal(6,2), which is declared; the table has"
    assert str(error.remedy).startswith(f"{hint} decimal(6,2).")
    assert aside(lake, things, "s3") == []

    # Or without any other row.
    put(lake, things, "s4", text("", ("1", "x")))
    error = error_of(lake, things)
    assert error.message == (
        "every row of the slice is bad: id=1: column 'price': the value 'x' doesn't fit the type decimal(6,2)"
    )
    typed = [f"lakewright manifest {verb} {kind}/s4" for verb in ("resolve", "skip")]
    assert all(f"`{each}`" in str(error.remedy) for each in typed), error.remedy
    assert aside(lake, things, "s4") == []


def test_values_that_do_not_fit_the_table_are_put_aside(lake: SmallLake) -> None:
    """A12: the types of the table count too, and records that arrive deleted may have any values."""
    things = entity(
        columns=[{**ID, "datatype": "long"}, {"name": "twice", "expression": "id * 2"}],
        settings={"on_bad_rows": "quarantine", "delete_missing": True, "delete_scope": "full"},
    )
    lake.load(things, "s1", [{"id": 1, "v": 1}, {"id": 2, "v": 2}])
    rows = [
        {"id": 1, "v": "x", "dlf_deleted": False},
        {"id": 2, "v": "y", "dlf_deleted": True},
        {"id": 3, "v": "7", "dlf_deleted": False},
    ]
    lake.put(things, "s2", rows)
    pending = find_pending(lake.bench(things), things)
    assert preview_next_slice(lake.bench(things), things, pending) == (
        "s2 has 1 bad row that would be put aside, so that it infers no deletes"
    )

    (done,) = lake.process(things).slices

    assert (done.summary.quarantined, done.summary.inserted, done.summary.deleted) == (1, 1, 1)
    assert lake.rows(things, "id", "v", "dlf_deleted") == [(1, 1, False), (2, 2, True), (3, 7, False)]
    (row,) = aside(lake, things, "s2")
    assert (row["key"], row["reason"]) == (
        {"id": 1},
        "column 'v': the value 'x' doesn't fit the type bigint of the table",
    )
    # Neither calculated nor system columns are part of the record.
    assert json.loads(row["record"]) == {"id": 1, "v": "x", "dlf_deleted": False}


def test_the_key_of_a_bad_row_has_the_digits_of_its_type(lake: SmallLake) -> None:
    things = entity(
        columns=[{"name": "id", "fieldroles": ["businesskey"]}, {"name": "n", "datatype": "integer"}],
        settings={"on_bad_rows": "quarantine"},
    )
    number = Decimal("1234567890123456.1234")

    assert (
        lake.load(things, "s1", [{"id": number, "n": "x"}, {"id": Decimal("1.5000"), "n": "1"}]).quarantined
        == 1
    )

    (row,) = aside(lake, things, "s1")
    assert row["key"] == {"id": str(number)}


def test_the_record_of_a_bad_row_says_whether_it_is_a_delete(lake: SmallLake) -> None:
    things = entity(
        columns=[
            {"name": "id", "fieldroles": ["businesskey"]},
            {"name": "n", "datatype": "integer"},
            {"name": "gone", "newname": "dlf_deleted"},
        ],
        settings={"on_bad_rows": "quarantine"},
    )

    lake.load(things, "s1", [{"id": 1, "n": "x", "gone": True}, {"id": 2, "n": "1", "gone": False}])

    (row,) = aside(lake, things, "s1")
    assert json.loads(row["record"]) == {"id": 1, "n": "x", "gone": True}


def test_encodings_and_signs_of_csv(lake: SmallLake) -> None:
    """A6: bytes that do not decode fail the slice, with `quarantine` too; signs can be set."""
    plain = entity(name="plain", settings={"format": "csv"})
    latin = entity(name="latin", settings={"format": {"kind": "csv", "encoding": "latin-1"}})
    content = "id,name\n1,Zoë\n".encode("latin-1")
    for things in (plain, latin):
        put(lake, things, "s1.csv", content)
    aside_too = entity(name="aside", settings={"format": "json", "on_bad_rows": "quarantine"})
    put(lake, aside_too, "s1.json", b'{"id": "1"}\n{"id": "\xeb"}\n')

    error = error_of(lake, plain)
    assert isinstance(error, SliceError)
    assert "s1.csv, line 2: there are bytes that are not UTF-8" in error.message
    assert "s1.json, line 2: there are bytes that are not UTF-8" in error_of(lake, aside_too).message
    assert lake.process(latin).error is None
    assert lake.rows(latin, "id", "name") == [("1", "Zoë")]

    signs = {"kind": "csv", "separator": ";", "quote": "'", "escape": "\\", "encoding": "utf-16"}
    wide = entity(name="wide", settings={"format": signs})
    put(lake, wide, "s1", "id;name\n1;'a;b\\'c'\n".encode("utf-16"))
    bare = entity(
        name="bare",
        columns=[{"name": "_c0", "newname": "id", "fieldroles": ["businesskey"]}],
        settings={"format": {"kind": "csv", "separator": "tab", "header": "false"}},
    )
    put(lake, bare, "s1", '1\t"two\nlines"\n2\t"a\tb"\n')
    for things in (wide, bare):
        assert lake.process(things).error is None
    assert lake.rows(wide, "id", "name") == [("1", "a;b'c")]
    assert lake.rows(bare, "id", "_c1") == [("1", "two\nlines"), ("2", "a\tb")]


@pytest.mark.nightly
def test_fields_in_another_order_are_no_drift(lake: SmallLake) -> None:
    """B9: JSON has no order of fields."""
    pair = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.struct([("a", pa.int64()), ("b", pa.int64())])))])
    turned = pa.struct(
        [("y", pa.list_(pa.struct([("b", pa.int64()), ("a", pa.int64())]))), ("x", pa.int64())]
    )
    things = entity()
    row = {"id": 1, "p": {"x": 1, "y": [{"a": 2, "b": 3}]}}
    lake.load(things, "s1", [row], [("id", pa.int64()), ("p", pair)])

    summary = lake.load(things, "s2", [row, {**row, "id": 2}], [("id", pa.int64()), ("p", turned)])

    assert (summary.inserted, summary.changed, lake.warnings) == (1, 0, [])
    assert lake.rows(things, "id", "p") == [(1, row["p"]), (2, row["p"])]


def test_nested_fields_and_descriptions(lake: SmallLake) -> None:
    """D5, D4: `customer.id` is a field as well as a column's name; descriptions become comments."""
    columns = [
        {"name": "customer.id", "newname": "id", "fieldroles": ["businesskey"], "description": "Who's it"},
        {"name": "Customer.Address.city", "newname": "city", "datatype": "varchar(9)"},
        {"name": "a.b", "newname": "ab"},
    ]
    things = entity(columns=columns, settings={"sequence_by": "customer.n"})
    customer = {"id": 1, "n": 5, "address": {"city": "Ede"}}
    lake.load(things, "s1", [{"customer": customer, "a.b": "plain"}])

    assert lake.rows(things, "id", "city", "ab", "customern") == [(1, "Ede", "plain", 5)]
    comments = {field.name: field.metadata.get("comment") for field in lake.table(things).schema.fields}
    assert (comments["id"], comments["city"]) == ("Who's it", None)
    error = lake.fail(things, "s2", [{"customer": {"id": 1, "n": 6}, "a.b": "plain"}])
    assert "lacks the configured column 'Customer.Address.city'; it has 'customer', 'a.b'" in error.message


def test_a_crash_leaves_no_wrong_count_of_rows_put_aside(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A12: rows are written before the commit, counted with it, and replaced by the next attempt."""
    things = entity(columns=COLUMNS, settings={"format": "csv", "on_bad_rows": "quarantine"})
    put(lake, things, "s1", "id,price\n1,1\n2,x\n")
    for point, has_commit in (("after_quarantine", False), ("after_commit", True)):
        with monkeypatch.context() as patch:
            patch.setenv("LAKEWRIGHT_FAILPOINT", f"{point}:raise")
            assert "failpoint" in str(lake.process(things).error)
        (item,) = lake.items()
        assert (item.processed, lake.version_or_none(things)) == ((), 0 if has_commit else None)
        assert [row["key"] for row in aside(lake, things, "s1")] == [{"id": "2"}]
        lake.ledger.resolve(item.item_id, "again")

    (done,) = lake.process(things).slices

    assert done.is_adopted
    assert (done.summary.records_in_slice, done.summary.quarantined) == (2, 1)
    (item,) = lake.items()
    assert item.processed[0].note == {"quarantined": 1}
    assert [row["key"] for row in aside(lake, things, "s1")] == [{"id": "2"}]


@pytest.mark.nightly  # test_odd_shapes_of_json_are_put_aside_in_a_fold_too has such rows
def test_json_of_another_shape_than_the_table_is_put_aside_row_by_row(lake: SmallLake) -> None:
    """A12: `"lines": "none"` where the table has a list is a bad row, not a slice that fails."""
    key = {**ID, "datatype": "long"}
    settings = {"format": "json", "on_bad_rows": "quarantine"}
    things = entity(columns=[key], settings=settings)

    def line(number: int, lines: str, buyer: str = '{"name": "Ada", "tags": ["x"]}') -> str:
        return f'{{"id": {number}, "lines": {lines}, "buyer": {buyer}, "price": 1}}\n'

    put(lake, things, "s1.json", line(1, '[{"sku": "a"}]'))
    assert lake.process(things).error is None
    lists = ['"none"', "{}", "7", "true", '["a"]', "[[]]", '""']
    buyers = ['"none"', "[]", "7", '{"name": "B", "tags": "x"}', '{"name": "B", "tags": {"a": 1}}']
    rows = [line(2, '[{"sku": "b"}]'), line(3, "[]"), line(4, "null"), line(5, '[{"sku": "c"}]')]
    rows += [line(100 + number, shape) for number, shape in enumerate(lists)]
    rows += [line(200 + number, "[]", shape) for number, shape in enumerate(buyers)]
    rows.append('{"id": 300, "lines": [], "buyer": null, "price": {"amount": 1}}\n')
    put(lake, things, "s2.json", "".join(rows))

    result = lake.process(things)

    assert result.error is None
    put_aside = aside(lake, things, "s2.json")
    ids = [json.loads(row["record"])["id"] for row in put_aside]
    assert sorted(ids) == [*range(100, 107), *range(200, 205), 300]
    assert result.slices[0].summary.quarantined == len(ids)
    # The text as it was delivered, with its line.
    assert '{"id": 106, "lines": "", "buyer": {"name": "Ada", "tags": ["x"]}, "price": 1}' in [
        row["record"] for row in put_aside if row["line"] == 11
    ]
    found = lake.table(things).selectExpr("id", "to_json(lines)").orderBy("id").collect()
    kept = {1: '[{"sku":"a"}]', 2: '[{"sku":"b"}]', 3: "[]", 4: None, 5: '[{"sku":"c"}]'}
    assert {row[0]: row[1] for row in found} == kept

"""Columns that are declared `optional`, so that slices may lack them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity
from tests.spark.strategies.rewinding import rebuild_in
from tests.spark.strategies.test_bad_rows import put

from lakewright.errors import LakewrightError, SchemaDriftError
from lakewright.slices.rehearsal import rehearsed
from lakewright.strategies.summary import Summary

ID = {"name": "id", "datatype": "long", "fieldroles": ["businesskey"]}
PRICE = {"name": "price", "newname": "cost", "datatype": "decimal(8,2)", "optional": True}
NOTE = {"name": "note", "optional": True}
EMAIL = {"name": "customer.email", "newname": "email", "datatype": "string", "optional": True}
TWICE = {"name": "twice", "expression": "coalesce(price, 0) * 2"}
SHOUT = {"name": "shout", "expression": "upper(customer.email)"}
JSON = {"format": "json"}

SLICES = (
    '{"id": 1}\n{"id": 2}\n',
    '{"id": 1, "price": null, "note": null, "customer": null}\n{"id": 2, "customer": {}}\n',
    '{"id": 1, "price": 1.5, "note": "a", "customer": {"email": "x@y", "tier": 3}}\n{"id": 2}\n',
    '{"id": 1, "customer": {"tier": 3}}\n{"id": 2}\n',
)
"""The optional columns are absent, null, present, and absent again."""


def loaded(lake: SmallLake, things: Any, name: str, content: str) -> Summary:
    """Process one more slice; return its metrics; fail if anything is told of a column it lacks."""
    lake.warnings.clear()
    put(lake, things, name, content)
    result = lake.process(things)
    assert result.error is None, result.error
    assert not [each for each in lake.warnings if "lacks" in each or "missing" in each], lake.warnings
    return result.slices[-1].summary


@pytest.mark.parametrize("strategy", ["historic", pytest.param("merge", marks=pytest.mark.nightly)])
def test_slices_may_lack_optional_columns(lake: SmallLake, strategy: str) -> None:
    """`processing-strategies.md`, "Schema Drift": an optional column is null in a slice without it."""
    things = entity(strategy, columns=[ID, PRICE, NOTE, EMAIL, TWICE, SHOUT], settings=JSON)
    loaded(lake, things, "s1.json", SLICES[0])
    kinds = {field.name: field.dataType.simpleString() for field in lake.table(things).schema.fields}
    assert (kinds["cost"], kinds["email"], kinds["twice"]) == ("decimal(8,2)", "string", "double")
    assert "note" not in kinds, "it has no type before a slice brings one"
    assert "customer" not in kinds

    again = loaded(lake, things, "s2.json", SLICES[1])
    assert again.changed == 0, "a value that is absent is one that is null"
    third = loaded(lake, things, "s3.json", SLICES[2])
    assert third.changed == 1, "the record without values has the same hash"
    wanted = ("cost", "note", "email", "shout", "twice")
    assert lake.current(things, "id", *wanted) == [
        (1, Decimal("1.50"), "a", "x@y", "X@Y", 3.0),
        (2, None, None, None, None, 0.0),
    ]
    fourth = loaded(lake, things, "s4.json", SLICES[3])
    assert fourth.changed == 1
    expected = [(1, None, None, None, None, 0.0), (2, None, None, None, None, 0.0)]
    assert lake.current(things, "id", *wanted) == expected

    names = [name for name in lake.arrow(things).column_names if name not in {"dlf_lastSeen", "customer"}]
    rows = lake.rows(things, *names)
    lake.warnings.clear()
    rebuild_in(lake, things)
    assert not [each for each in lake.warnings if "lack" in each or "missing" in each]
    assert lake.rows(things, *names) == rows
    if strategy == "historic":  # a slice is rehearsed in the same way with each strategy
        return
    with rehearsed(lake.bench(things), things, "s4.json") as (found, _):
        assert not [each for each in found.warnings if "lacks" in each or "missing" in each]
        assert found.error is None


@pytest.mark.nightly  # the test above has JSON without the columns
def test_full_and_csv_and_quarantine_and_drift_that_fails(lake: SmallLake) -> None:
    """A header without the column is one with nulls; drift is told of other columns only."""
    text = {"name": "text", "expression": "coalesce(price, 'none')"}
    sheet = entity("full", name="sheet", columns=[ID, PRICE, NOTE, text], settings={"format": "csv"})
    loaded(lake, sheet, "s1.csv", "id,price,note\n1,2.5,a\n")
    loaded(lake, sheet, "s2.csv", "id,note\n1,b\n")
    assert lake.current(sheet, "id", "cost", "note", "text") == [(1, None, "b", "none")]
    put(lake, sheet, "s3.csv", "id;price\n1;2\n")
    error = lake.process(sheet).error
    assert error is not None
    assert 'separator: ";"' in str(error.remedy)

    strict = {"format": "json", "schema_drift": "fail", "on_bad_rows": "quarantine"}
    orders = entity(name="orders", columns=[ID, PRICE, EMAIL], settings=strict)
    loaded(lake, orders, "s1.json", '{"id": 1, "price": 1, "customer": {"email": "a", "tier": 1}}\n')
    loaded(
        lake, orders, "s2.json", '{"id": 2, "customer": {"tier": 1}}\n{"id": 3, "customer": {"tier": 2}}\n'
    )
    loaded(lake, orders, "s3.json", "[]")
    expected = [(1, Decimal("1.00"), "a"), (2, None, None), (3, None, None)]
    assert lake.current(orders, "id", "cost", "email") == expected
    # Declared since: a table that gets no columns goes on without it.
    later = entity(
        name="orders", columns=[ID, PRICE, EMAIL, {**PRICE, "name": "tax", "newname": ""}], settings=strict
    )
    loaded(lake, later, "s4.json", '{"id": 5}\n')
    assert "tax" not in lake.arrow(later).column_names


def test_transformations_refer_to_optional_columns(lake: SmallLake) -> None:
    """A list of expressions finds a column that the slice lacks, and may make another one."""
    steps = [["*", "price * 2 as twice", "net as tax", "upper(customer.email) as shout"]]
    tax = {"name": "tax", "datatype": "double", "optional": True}
    things = entity(columns=[ID, PRICE, tax, EMAIL], transformations=steps, settings=JSON)
    loaded(lake, things, "s1.json", '{"id": 1, "net": 2.5}\n')
    loaded(lake, things, "s2.json", '{"id": 2, "net": 1.5, "price": 2, "customer": {"email": "x"}}\n')
    loaded(lake, things, "s3.json", '{"id": 3, "net": 1.5, "customer": {"tier": 1}}\n')
    assert lake.current(things, "id", "twice", "tax", "shout", "email") == [
        (1, None, 2.5, None, None),
        (2, 4.0, 1.5, "X", "x"),
        (3, None, 1.5, None, None),
    ]


def test_other_columns_must_be_there(lake: SmallLake) -> None:
    """The error names them alone, and the setting that names a column which is not declared."""
    must = {"name": "kind", "datatype": "string"}
    loud = {"name": "loud", "expression": "upper(kind)"}  # which is not at fault
    things = entity(columns=[ID, PRICE, must, loud], settings=JSON)
    put(lake, things, "s1.json", '{"id": 1}\n')
    error = lake.process(things).error
    assert isinstance(error, SchemaDriftError)
    assert "lacks the configured column 'kind'; it has 'id'" in error.message
    assert error.remedy is not None
    assert error.remedy.startswith(
        "Correct the slice; declare the column with `optional: true` if slices may lack it; or remove it "
        "from the entity's `columns`."
    )
    keyless = entity(name="keyless", columns=[ID, PRICE], settings=JSON)
    put(lake, keyless, "s1.json", '{"price": 1}\n')
    error = lake.process(keyless).error
    assert error is not None
    assert str(error.remedy).startswith(
        "Correct the slice, or remove the column from the entity's `columns`."
    )

    ordered = entity(name="ordered", columns=[ID], settings={**JSON, "sequence_by": "change_at"})
    put(lake, ordered, "s1.json", '{"id": 1}\n')
    error = lake.process(ordered).error
    assert error is not None
    assert (
        "the slice lacks the column 'change_at', which `sequence_by` of the entity names; it has 'id'"
        in error.message
    )
    assert str(error.remedy).startswith("Correct the slice, or the entity's `sequence_by`.")
    marked = entity(
        name="marked",
        columns=[ID],
        watermark=[{"column_name": "seen", "expression": "${last_value}"}],
        settings=JSON,
    )
    put(lake, marked, "s1.json", '{"id": 1}\n')
    assert "which `watermark` of the entity names" in str(lake.process(marked).error)


@pytest.mark.nightly  # a rare combination
@pytest.mark.parametrize("on_bad_rows", [pytest.param("fail", marks=pytest.mark.nightly), "quarantine"])
def test_a_rebuild_tells_whose_type_a_value_does_not_fit(lake: SmallLake, on_bad_rows: str) -> None:
    """The table that users see may have another type than the one that the slices give it anew."""
    settings = {**JSON, "on_bad_rows": on_bad_rows}
    things = entity(columns=[ID, {"name": "v", "datatype": "string"}], settings=settings)
    put(lake, things, "s1.json", '{"id": 1, "v": 7}\n')
    put(lake, things, "s2.json", '{"id": 2, "v": "y"}\n')
    assert lake.process(things).error is None
    with pytest.raises(LakewrightError, match="cannot be applied again") as raised:
        rebuild_in(lake, entity(columns=[ID], settings=settings))
    whose = "bigint, the type that the earlier slices give the column"
    assert f"the value 'y' doesn't fit {whose}" in raised.value.message
    assert "of the table" not in f"{raised.value.message} {raised.value.remedy}"
    if on_bad_rows == "quarantine":
        assert f"no bad row fits {whose}. Correct the slice" in str(raised.value.remedy)


@pytest.mark.nightly  # a rare combination
def test_past_versions_keep_an_optional_column_that_the_first_slice_lacks(lake: SmallLake) -> None:
    """`rewind.md`, "history_from": the columns are those of the first slice, and the optional ones."""
    past = lake.root / "past"
    past.mkdir()
    rows = '{"id": 1, "price": 2, "since": "2023-01-01T00:00:00Z", "fax": "f", "customer": {"email": "x"}}\n'
    (past / "e1.json").write_text(rows)
    (past / "e2.json").write_text('{"id": 2, "since": "2023-01-02T00:00:00Z"}\n')
    history = {"folder": str(past), "valid_from": "since"}
    things = entity("historic", columns=[ID, PRICE, NOTE, EMAIL], settings={**JSON, "history_from": history})
    put(lake, things, "s1.json", '{"id": 1}\n{"id": 2}\n')
    result = lake.process(things)
    assert result.error is None, result.error
    past_rows = [row for row in lake.rows(things, "id", "cost", "email", "dlf_IsCurrent") if not row[-1]]
    assert past_rows == [(1, Decimal("2.00"), "x", False)]
    assert "note" not in " ".join(lake.warnings)
    assert lake.current(things, "id", "cost", "email") == [(1, None, None), (2, None, None)]

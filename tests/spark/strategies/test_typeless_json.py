"""Nulls, empty lists and empty objects in JSON, which are no values."""

from __future__ import annotations

import pytest
from tests.spark.strategies.bench import SmallLake, entity
from tests.spark.strategies.test_bad_rows import put

KEY = {"name": "id", "datatype": "long", "fieldroles": ["businesskey"]}


@pytest.mark.parametrize("on_bad_rows", ["fail", pytest.param("quarantine", marks=pytest.mark.nightly)])
def test_nulls_and_empty_lists_in_json_have_the_tables_type_or_none_yet(
    lake: SmallLake, on_bad_rows: str
) -> None:
    """ "Schema Drift": a slice without values does not decide a type, at any depth."""
    settings = {"format": "json", "on_bad_rows": on_bad_rows}
    things = entity(name="nested", columns=[KEY], settings=settings)
    slices = [
        '{"id": 1, "lines": [], "coupon": null, "buyer": {"name": "Ada", "home": null, "tags": []}}',
        '{"id": 2, "lines": [{"sku": "a", "qty": 1}], "coupon": {"pct": 5}, '
        '"buyer": {"name": "Bo", "home": {"city": "Oslo"}, "tags": [7]}}',
        '{"id": 3, "lines": [], "coupon": null, "buyer": {"name": "Cy", "home": null, "tags": []}}',
        '{"id": 3, "lines": [], "coupon": {"pct": null}, "buyer": {"name": "Cy", "home": null, "tags": []}}',
    ]
    for number, content in enumerate(slices, 1):
        put(lake, things, f"s{number}.json", content + "\n")
        lake.warnings.clear()
        result = lake.process(things)
        assert result.error is None, result.error
        if number == 1:
            kinds = {field.name: field.dataType.simpleString() for field in lake.table(things).schema.fields}
            assert "lines" not in kinds
            assert "coupon" not in kinds
            assert kinds["buyer"] == "struct<name:string>"
        elif number > 2:
            assert lake.warnings == []
    columns = ("id", "to_json(lines)", "to_json(coupon)", "to_json(buyer)")
    rows = [tuple(row) for row in lake.table(things).selectExpr(*columns).orderBy("id").collect()]
    assert rows == [
        (1, None, None, '{"name":"Ada"}'),
        (2, '[{"qty":1,"sku":"a"}]', '{"pct":5}', '{"name":"Bo","home":{"city":"Oslo"},"tags":[7]}'),
        (3, None, None, '{"name":"Cy"}'),
    ]


def test_kinds_that_mix_are_texts_and_what_is_absent_inside_is_no_drift(lake: SmallLake) -> None:
    """ "Inference": columns of several kinds are texts, at any depth; a slice of one kind fits them."""
    columns = [
        KEY,
        {"name": "twice", "expression": "n * 2"},
        {"name": "long", "expression": "lpad(code, 4, '0')"},
        {"name": "code", "datatype": "string"},
    ]
    settings = {"format": "json", "schema_drift": "fail"}
    things = entity(name="mixed", columns=columns, settings=settings)
    slices = [
        '{"id": 1, "code": "a", "n": 1.5, "m": 7, "o": {"p": [1,"x"],"q": {"r": 0.1, "s": true}, "t": [5]}}\n'
        '{"id": 2, "code": 12, "n": 2, "m": {"k": [1]}, "o": {"p": null, "t": []}}',
        '{"id": 3, "code": 7, "n": 3, "m": 8, "o": {"p": [2], "t": []}}',
    ]
    for number, content in enumerate(slices, 1):
        put(lake, things, f"s{number}.json", content + "\n")
        result = lake.process(things)
        assert result.error is None, result.error
        fields = {field.name: field for field in lake.table(things).schema.fields}
        kinds = {name: field.dataType.simpleString() for name, field in fields.items()}
        assert kinds["m"] == kinds["code"] == "string"
        assert (kinds["n"], kinds["twice"]) == ("double", "double")
        assert kinds["o"] == "struct<p:array<string>,q:struct<r:double,s:boolean>,t:array<bigint>>"
        assert not any(field.metadata for field in fields.values())
    names = ("id", "code", "long", "twice", "m", "to_json(o)")
    rows = [tuple(row) for row in lake.table(things).selectExpr(*names).orderBy("id").collect()]
    assert rows == [
        (1, "a", "000a", 3.0, "7", '{"p":["1","x"],"q":{"r":0.1,"s":true},"t":[5]}'),
        (2, "12", "0012", 4.0, '{"k":[1]}', '{"t":[]}'),
        (3, "7", "0007", 6.0, "8", '{"p":["2"]}'),
    ]


@pytest.mark.nightly  # test_reading_json.py reads files without records
def test_a_slice_of_json_without_rows_is_an_empty_slice(lake: SmallLake) -> None:
    """It lacked the columns of the key, and the remedy was to remove these from the declaration."""
    typeless = {"name": "id", "fieldroles": ["businesskey"]}
    unknown = entity(name="unknown", columns=[typeless], settings={"format": "json"})
    put(lake, unknown, "s1.json", "[]")
    refused = lake.process(unknown)
    assert refused.error is not None
    assert "lacks the configured column 'id'" in refused.error.message

    things = entity(name="emptied", columns=[KEY], settings={"format": "json"})
    for number, content in enumerate(("[]", '[{"id": 1, "n": 2}]', "[]"), 1):
        put(lake, things, f"s{number}.json", content)
        result = lake.process(things)
        assert result.error is None, result.error
    rows = [tuple(row) for row in lake.table(things).select("id", "n").orderBy("id").collect()]
    assert rows == [(1, 2)]

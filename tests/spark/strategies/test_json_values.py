"""Numbers of JSON, of which Spark infers another type in each slice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity
from tests.spark.strategies.test_bad_rows import aside, put

COLUMNS = [
    {"name": "id", "datatype": "long", "fieldroles": ["businesskey"]},
    {"name": "price", "datatype": "decimal(10,2)"},
    {"name": "total", "datatype": "decimal(38,18)"},
    {"name": "code", "datatype": "string"},
]
JSON = {"format": "json"}
LONG = "12345678901234567890.123456789012345678"


def test_equal_numbers_are_no_change_and_keep_their_digits(lake: SmallLake) -> None:
    """ "Common Processing Pipeline", Compute source hash: a number is the same in a slice of whole ones."""
    things = entity("historic", columns=COLUMNS, settings=JSON)
    whole = '{"id": 2, "price": 10, "total": 1, "code": 8, "rate": 2, "lines": [{"q": 1}]}'
    other = (
        '{"id": ID, "price": 10.5, "total": LONG, "code": 7, "rate": 1.5, "lines": [{"q": 1}, {"q": 0.5}]}'
    )
    other = other.replace("LONG", LONG)
    slices = [f"{other.replace('ID', '1.0')}\n{whole}\n", whole, other.replace("ID", "1")]
    for number, content in enumerate(slices, 1):
        put(lake, things, f"s{number}.json", content)
    result = lake.process(things)
    assert result.error is None, result.error
    for name in ("s2.json", "s3.json"):
        (summary,) = (each.summary for each in result.slices if each.name == name)
        assert (summary.inserted, summary.changed) == (0, 0), name
    rows = lake.rows(things, "id", "price", "total", "code")
    assert rows == [
        (1, Decimal("10.50"), Decimal(LONG), "7"),
        (2, Decimal("10.00"), Decimal(1), "8"),
    ]


def test_a_table_of_files_with_types_takes_json_without_a_change(lake: SmallLake) -> None:
    """ "Common Processing Pipeline", Compute source hash: the format of a slice is no part of its values."""
    columns = COLUMNS[:2]
    before = entity("historic", columns=columns)
    lake.load(before, "s1", [{"id": 1, "price": 10.5}, {"id": 2, "price": 9.0}])
    things = entity("historic", columns=columns, settings=JSON)
    put(lake, things, "s2", '{"id": 1, "price": 10.5}\n{"id": 2, "price": 9.0}\n')
    result = lake.process(things)
    assert result.error is None, result.error
    assert [each.summary.changed for each in result.slices] == [0]


def test_declared_structs_are_matched_by_name_and_objects_become_maps(lake: SmallLake) -> None:
    """Spark reads the fields of JSON in the order of their names, whatever order is declared."""
    columns = [
        COLUMNS[0],
        {"name": "s", "datatype": "struct<b: string, a: string>"},
        {"name": "l", "datatype": "array<struct<t: timestamp, flags: array<string>>>"},
        {"name": "tags", "datatype": "map<string, string>"},
    ]
    things = entity("merge", columns=columns, settings=JSON)
    first = (
        '{"id": 1, "s": {"a": "A", "b": "B"}, "l": [{"t": "2024-05-01T00:00:00Z", "flags": ["x"]}], '
        '"tags": {"k": "v"}}'
    )
    put(lake, things, "s1.json", f'{first}\n{{"id": 2, "tags": {{}}}}\n')
    result = lake.process(things)
    assert result.error is None, result.error
    rows = {row["id"]: row for row in lake.arrow(things).to_pylist()}
    assert rows[1]["s"] == {"b": "B", "a": "A"}
    assert [(each["t"].isoformat()[:10], each["flags"]) for each in rows[1]["l"]] == [("2024-05-01", ["x"])]
    assert [dict(rows[number]["tags"]) for number in (1, 2)] == [{"k": "v"}, {}]
    assert rows[2]["s"] is None


NESTED = [
    *COLUMNS,
    {"name": "size", "datatype": "int"},
    {"name": "rate", "datatype": "double"},
    {"name": "net.eur", "newname": "eur", "datatype": "decimal(20,6)"},
    {"name": "lines", "datatype": "array<struct<q:double>>"},
]
SPELLINGS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "price": (("10", "7", "-3"), ("10", "10.0", "10.50", "7.25", "1e1")),
    "total": (("0", "1", "5"), ("1.0", LONG, "0.000000000001")),
    "code": (("5", '"5"', '"a"', "true", "null"), ("5", "1.50", '"1.50"', "null")),
    "size": (("7", "250", "0"), ("7", "7.0", "2.5e2")),
    "rate": (("1", "2"), ("1", "1.0", "2.5")),
    "eur": (("1", "3", "null"), ("1.0", "3.25", "123456789012.123456", "null")),
    "lines": (("[]", '[{"q": 1}]', "null"), ('[{"q": 1.0}]', '[{"q": 1.5}, {"q": 2}]', "[]")),
}
"""How values of a column are written: in slices of whole numbers, and in others."""


def _spelled(chance: Random, number: int, *, is_whole: bool) -> str:
    """Return a record as a source may write it."""
    chosen = {name: chance.choice(forms[0 if is_whole else 1]) for name, forms in SPELLINGS.items()}
    eur = chosen.pop("eur")
    parts = [f'"{name}": {text}' for name, text in chosen.items()]
    return f'{{"id": {number}, {", ".join(parts)}, "net": {{"eur": {eur}}}}}'


def _values(record: str) -> dict[str, Any]:
    """Return the values of a record, as its columns hold them."""
    found = json.loads(record, parse_float=Decimal, parse_int=Decimal)
    code, lines = found["code"], found["lines"]
    if isinstance(code, Decimal):
        code = f"{code.normalize():f}"
    return {
        "price": found["price"],
        "total": found["total"],
        "code": json.dumps(code) if isinstance(code, bool) else None if code is None else str(code),
        "size": int(found["size"]),
        "rate": float(found["rate"]),
        "eur": found["net"]["eur"],
        "lines": [float(line["q"]) for line in lines] if lines else None,
    }


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_however_numbers_are_written_the_rows_are_those_of_the_model(lake: SmallLake, seed: int) -> None:
    chance = Random(seed)
    strategy = chance.choice(["merge", "historic"])
    on_bad_rows = chance.choice(["fail", "quarantine"])
    things = entity(
        strategy, name=f"json{seed}", columns=NESTED, settings={**JSON, "on_bad_rows": on_bad_rows}
    )
    is_folded = chance.random() < 0.5
    model: dict[int, list[dict[str, Any]]] = {}
    for number in range(5):
        is_whole = chance.random() < 0.5
        numbers = chance.sample(range(6), chance.randint(2, 6))
        records = {each: _spelled(chance, each, is_whole=is_whole) for each in numbers}
        put(lake, things, f"s{number}.json", "\n".join(records.values()) + "\n")
        for each, record in records.items():
            versions, values = model.setdefault(each, []), _values(record)
            if not versions or versions[-1] != values:
                model[each] = [*versions, values] if strategy == "historic" else [values]
        if not is_folded or number == 4:
            result = lake.process(things)
            assert result.error is None, (result.error, records)
    table = lake.table(things)
    ordered = table.orderBy([name for name in table.columns if name.endswith("ValidFrom")] or ["id"])
    found: dict[int, list[dict[str, Any]]] = {}
    for row in ordered.collect():
        values = {name: row[name] for name in SPELLINGS}
        values["lines"] = [line["q"] for line in row["lines"]] if row["lines"] else None
        found.setdefault(row["id"], []).append(values)
    assert found == model


AGED = [COLUMNS[0], {"name": "age", "datatype": "int"}, {"name": "price", "datatype": "decimal(10,2)"}]
GOOD = """{"id": 1, "age": 20, "price": 2, "rate": 3, "ok": true, "n": 1}
{"id": 2, "age": 30.0, "price": 4.5, "rate": 4, "ok": false, "n": 2}
"""
BAD = {
    '"id": 3, "age": "old"': "column 'age': the value 'old' doesn't fit the type int",
    '"id": 4, "age": true': "column 'age': the value 'true' doesn't fit the type int",
    '"id": 5, "age": {"a": 1}': """column 'age': the value '{"a":1}' doesn't fit the type int""",
    '"id": 6, "price": "1.555"': "column 'price': the value '1.555' doesn't fit the type decimal(10,2)",
    '"id": 7, "rate": "high"': "column 'rate': the value 'high' doesn't fit the type bigint of the table",
    '"id": 8, "n": 1.5': "column 'n': the value '1.5' doesn't fit the type bigint of the table: "
    "not without loss",
    '"id": 9, "ok": "maybe"': "column 'ok': the value 'maybe' doesn't fit the type boolean of the table",
    '"id": "x"': "column 'id': the value 'x' doesn't fit the type bigint",
}


@pytest.mark.parametrize("strategy", ["historic", pytest.param("merge", marks=pytest.mark.nightly)])
def test_a_bad_value_does_not_change_how_others_are_read(lake: SmallLake, strategy: str) -> None:
    """ "Common Processing Pipeline", Compute source hash: a row that is put aside changes no other record."""
    settings = {**JSON, "on_bad_rows": "quarantine", "fold": False}
    things = entity(strategy, columns=AGED, settings=settings)
    bad = "".join(f"{{{row}}}\n" for row in BAD)
    gone = '{"id": 99, "rate": "unknown", "dlf_deleted": true}\n'
    for number, content in enumerate((GOOD, f"{GOOD}{bad}[{bad.splitlines()[0]}, {{broken\n{gone}", GOOD), 1):
        put(lake, things, f"s{number}.json", content)
    result = lake.process(things)
    assert result.error is None, result.error
    assert [each.summary.changed for each in result.slices] == [0, 0, 0]
    assert [each.summary.quarantined for each in result.slices] == [0, len(BAD) + 1, 0]
    rows = aside(lake, things, "s2.json")
    assert sorted(row["reason"] for row in rows) == sorted([*BAD.values(), "the row does not parse"])
    (row,) = (row for row in rows if row["key"] == {"id": 8})
    assert json.loads(row["record"])["n"] == 1.5


@pytest.mark.nightly  # the test above has bad values beside others
def test_a_text_that_fits_is_read_as_before_beside_a_bad_value(lake: SmallLake) -> None:
    """Slices whose numbers are partly texts keep the hashes of texts, which they have without the bad row."""
    settings = {**JSON, "on_bad_rows": "quarantine", "fold": False}
    things = entity("historic", columns=AGED[:2], settings=settings)
    texts = '{"id": 1, "age": 20}\n{"id": 2, "age": "30"}\n'
    for number, content in enumerate((texts, f'{texts}{{"id": 3, "age": "old"}}\n', texts), 1):
        put(lake, things, f"s{number}.json", content)
    result = lake.process(things)
    assert [each.summary.changed for each in result.slices] == [0, 0, 0]

"""JSON is read without a guess and without a loss: each value is the one that Python's parser finds.

Source: the rules of reading, "Two steps" and "Inference, where nothing is declared".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reading import local_reading

from lakewright.errors import SliceError
from lakewright.lake.paths import FileEntry
from lakewright.reader.json import read_json
from lakewright.reader.source import Form, KnownColumns, Source
from lakewright.schema.types import StructField
from lakewright.spec.models.type_text import parse_sql_type
from lakewright.transform.typed_columns import INFERRED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[..., "DataFrame"]
LONG = "1234567890123456789012345678901234567890"


@pytest.fixture
def read(spark: SparkSession, tmp_path: Path) -> Read:
    """Returns the records of JSON text, or of several files of it."""

    def read(*texts: str | bytes, types: Mapping[str, str] | None = None, **options: Any) -> DataFrame:
        files = {f"part{number}.json": text for number, text in enumerate(texts)}
        for name, text in files.items():
            (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        for path in {path.name for path in tmp_path.glob("*.json")} - set(files):
            (tmp_path / path).unlink()
        kinds = {name: parse_sql_type(text) for name, text in (types or {}).items()}
        source = Source(
            "the slice s",
            str(tmp_path),
            tuple(FileEntry(name, len(text)) for name, text in files.items()),
            "json",
            given=options.pop("options", {}),
        )
        known = KnownColumns(
            "UTC",
            type_of=lambda name: kinds.get(name.lower()),
            without_rows=options.pop("empty", ()),
        )
        return read_json(local_reading(spark, source, Form("json"), known, **options))

    return read


def kinds(frame: DataFrame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def inferred(frame: DataFrame) -> dict[str, str]:
    return {
        each.name: each.metadata.get(INFERRED, each.dataType.simpleString()) for each in frame.schema.fields
    }


def is_absent(value: Any) -> bool:
    """Return whether a value is none: null, empty, or has only such values inside."""
    if isinstance(value, dict):
        return all(map(is_absent, value.values()))
    return value is None or (isinstance(value, list) and all(map(is_absent, value)))


def plain(value: Any) -> Any:
    """Return a value of a row as Python's parser of JSON gives it."""
    if hasattr(value, "toPython"):
        return plain(value.toPython())
    if hasattr(value, "asDict"):
        return {name: plain(each) for name, each in value.asDict().items()}
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return Decimal(repr(value)) if isinstance(value, float) else value


def is_same(found: Any, expected: Any, *, is_mixed: bool = False) -> bool:
    """Return whether a raw value is one of JSON. Numbers may be kept as they are written.

    A value of a mixed column is a variant, which holds numbers of more than 38 digits as doubles.
    """
    if isinstance(found, str) and isinstance(expected, dict | list | bool):
        found = json.loads(found, parse_float=Decimal)  # as it is written, beside others
    if is_absent(expected):
        return is_absent(found)
    if isinstance(expected, dict):
        keys = {*expected, *found} if isinstance(found, dict) else set()
        return bool(keys) and all(
            is_same(found.get(key), expected.get(key), is_mixed=is_mixed) for key in keys
        )
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(found) == len(expected)
            and all(is_same(*each, is_mixed=is_mixed) for each in zip(found, expected, strict=True))
        )
    if isinstance(expected, bool | str):
        return type(found) is type(expected) and found == expected
    if isinstance(found, bool) or not isinstance(found, int | Decimal | str):
        return False
    number = Decimal(found)
    return number == expected or (is_mixed and float(number) == float(expected))


def parsed(text: str) -> list[dict[str, Any]]:
    return [json.loads(line, parse_float=Decimal) for line in text.splitlines()]


def check(frame: DataFrame, text: str) -> None:
    expected = parsed(text)
    mixed = {name for name, kind in kinds(frame).items() if "variant" in kind}
    rows = [{name: plain(each) for name, each in row.asDict().items()} for row in frame.collect()]
    assert len(rows) == len(expected)
    for row, record in zip(rows, expected, strict=True):
        for name in {*row, *record}:
            assert is_same(row.get(name), record.get(name), is_mixed=name in mixed), (name, row, record)


def written(fields: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in fields.items()) + "}"


INFERENCE = [
    (["1", "-0", "9223372036854775807"], "bigint", "bigint"),
    (["1", "18446744073709551615"], "decimal(20,0)", "decimal(20,0)"),
    (["9007199254740993.5", "1"], "decimal(21,1)", "decimal(21,1)"),
    (["1", "1.5"], "decimal(21,1)", "double"),
    (["1.0", "20.00"], "double", "double"),
    (["1", "1.0"], "decimal(20,0)", "double"),
    (["0.30000000000000004", "1234.5678"], "decimal(21,17)", "double"),
    (["0.123456789012345678"], "decimal(18,18)", "decimal(18,18)"),
    (["1e5", "-2.5E-3", "7"], "string", "double"),
    ([LONG, "7.5"], "string", "double"),
    (["1e400", "1e-400"], "string", "double"),
    (["true", "false", "null"], "boolean", "boolean"),
    (['"1"', '"true"', '"2024-01-01"', '"\\ud83d\\ude00\\u0000é"'], "string", "string"),
    (["1", '"x"', "1.5", "true", '{"a": [1]}', "null"], "variant", "string"),
    (["null", "[]", "[[], null]"], "void", "void"),
    (["null", "{}", '{"a": null, "b": [{}]}'], "void", "void"),
    (['{"a": 1, "b": {}}', '{"a": 2, "c": []}', "{}"], "struct<a:bigint>", "struct<a:bigint>"),
    (["[[1, 2], [], null]", "[[1.5]]"], "array<array<decimal(21,1)>>", "array<array<double>>"),
    (['[{"q": 1}, {"q": "x"}, {"r": {}}]'], "array<struct<q:variant>>", "array<struct<`q`: string>>"),
]


def test_values_are_kept_and_types_are_inferred_by_value(read: Read) -> None:
    records = [
        {f"c{n}": values[row] for n, (values, _, _) in enumerate(INFERENCE) if row < len(values)}
        for row in range(max(len(values) for values, _, _ in INFERENCE))
    ]
    text = "\n".join(map(written, records))
    frame = read(text)
    check(frame, text)
    assert kinds(frame) == {f"c{n}": raw for n, (_, raw, _) in enumerate(INFERENCE)}
    assert inferred(frame) == {f"c{n}": told for n, (_, _, told) in enumerate(INFERENCE)}
    notes: list[str] = []
    listed = read(f"[{', '.join(text.splitlines())}]", note=notes.append)
    assert len(notes) == sum("variant" in kind for kind in kinds(frame).values())
    assert inferred(listed) == inferred(frame)
    check(listed, text)


NAMES = [
    "a.b",
    "we`ird",
    'q"t',
    "it's",
    "k:v",
    "<x>",
    "s p,",
    "é",
    "_metadata",
    "_corrupt_record",
    "_lakewright_text",
]


def test_a_column_may_have_any_name(read: Read) -> None:
    text = json.dumps({name: {name: number} for number, name in enumerate(NAMES)})
    frame = read(text)
    check(frame, text)
    assert sorted(frame.columns) == sorted(NAMES)
    bad = read(f"{text}\n5\n", corrupt="bad").where("bad is null").drop("bad")
    check(bad, text)


@pytest.mark.parametrize("levels", [240, pytest.param(100, marks=pytest.mark.nightly)])
def test_what_is_nested_deeply_is_read(read: Read, levels: int) -> None:
    text = '{"a": ' * levels + "[1.5]" + "}" * levels
    check(read(text), text)


@pytest.mark.parametrize("levels", [300, 990, 20_000])
def test_what_is_nested_too_deeply_is_a_bad_record(read: Read, levels: int) -> None:
    with pytest.raises(SliceError):
        read('{"a": ' * levels + "1" + "}" * levels)


@pytest.mark.nightly  # a large number
@pytest.mark.parametrize("columns", [500, pytest.param(2_000, marks=pytest.mark.nightly)])
def test_records_of_many_columns_are_read(read: Read, columns: int) -> None:
    text = "\n".join(
        json.dumps({f"c{number}": number + row for number in range(columns)}) for row in range(3)
    )
    check(read(text), text)


@pytest.mark.nightly  # a large number
def test_more_columns_than_a_table_can_have_are_an_error(read: Read) -> None:
    with pytest.raises(SliceError, match="20000 columns"):
        read(json.dumps({f"c{number}": number for number in range(20_000)}))


def test_numbers_that_are_none_are_kept_as_they_are_written(read: Read) -> None:
    text = '{"v": NaN}\n{"v": -Infinity}\n{"v": 1}\n'
    assert [row["v"] for row in read(text, types={"v": "string"}).collect()] == ["NaN", "-Infinity", "1"]
    assert [str(row["v"]) for row in read(text).collect()] == ["NaN", "-Infinity", "1"]


def test_types_of_whole_records_are_found_fast(read: Read) -> None:
    """Where the bytes show them (rules of reading, "Safe and fast")."""
    good = '{"a":1,"b":1.5,"c":true,"d":"x, \\"y\\": z","e":{"f":"1","g":2.5e-3}}\n'
    types = {"a": "bigint", "b": "double", "c": "boolean", "d": "string", "e": "struct<f:string,g:double>"}
    assert kinds(read(good * 2)) == types
    check(read(good * 2), good * 2)
    mixed = {"d": "variant", "e": "struct<f:variant,g:double>"}
    for other, changed in (
        ('{"a":1,"d":7,"e":{"f":"1"}}', {"d": "variant"}),
        ('{"a":1,"d":7,"e":{"f":8}}', mixed),
        ('{"a":1.25,"b":1234567890123456}', {"a": "double", "b": "decimal(21,1)"}),
        ('{"a":1,"v":{}}', {"v": "void"}),
        ('{"a":1,"v":null,"w":"x"}', {"v": "void", "w": "string"}),
        ('{"a":1,"A":null}', {}),
        ('{"a":1,"v" :"x","d" :7}', {"v": "string", "d": "variant"}),
        ('{"a":null,"d":null,"v":null}', {"v": "void"}),
    ):
        text = good + other + "\n"
        assert kinds(read(text)) == types | changed, other
        check(read(text), text)
    all_bad = ['{"a":1,"a":2}', '{"d":"\\ud83d"}', '{"a":1},{"a":2}', '{"l":[1]},{"l":[2]}', "7"]
    for bad in all_bad:
        with pytest.raises(SliceError):
            read(good + bad + "\n" + good)
    frame = read("\n".join([good.strip(), *all_bad, good]), corrupt="bad")
    assert [row["bad"] for row in frame.where("bad is not null").collect()] == all_bad


KNOWN = [
    ("string", ["1", "1.5", "true", '"x"', '{"a": 1}'], "variant"),
    ("string", ["1", LONG], "string"),
    ("string", ['"1"', '"x"'], "string"),
    ("variant", ["1", '{"a": 1, "A": 2}'], "variant"),
    ("map<string, int>", ['{"a": 1, "A": 2}', '{"k": null}', "{}"], "map<string,bigint>"),
    ("map<string, string>", ['{"a": 1, "A": "x"}'], "map<string,variant>"),
    ("map<string, array<int>>", ['{"a": [], "b": [null]}', '{"c": [1]}'], "map<string,array<bigint>>"),
    ("array<map<string, double>>", ['[{"a": 1, "A": 1.5}, {}]'], "array<map<string,decimal(21,1)>>"),
    ("struct<a: string, b: int>", ['{"a": 1, "c": 1}'], "struct<a:variant,c:bigint>"),
]


def test_a_known_type_decides_how_values_are_kept(read: Read) -> None:
    records = [
        {f"c{n}": values[row] for n, (_, values, _) in enumerate(KNOWN) if row < len(values)}
        for row in range(max(len(values) for _, values, _ in KNOWN))
    ]
    text = "\n".join(map(written, records))
    frame = read(text, types={f"c{n}": known for n, (known, _, _) in enumerate(KNOWN)})
    assert kinds(frame) == {f"c{n}": raw for n, (_, _, raw) in enumerate(KNOWN)}
    check(frame, text)


def test_fields_whose_names_differ_only_by_case_are_one_unless_both_have_values(read: Read) -> None:
    text = (
        '{"Id": 1, "l": [{"q": 1}, {"Q": 2.5}, null], "o": {"x": 1}}\n'
        '{"ID": 2, "id": null, "o": {"X": [1]}}\n'
    )
    frame = read(text)
    assert kinds(frame) == {
        "ID": "bigint",
        "l": "array<struct<Q:decimal(21,1)>>",
        "o": "struct<X:variant>",
    }
    rows = [{name: plain(each) for name, each in row.asDict().items()} for row in frame.collect()]
    first, second = rows
    assert first == {"ID": 1, "l": [{"Q": 1}, {"Q": Decimal("2.5")}, None], "o": {"X": 1}}
    assert second == {"ID": 2, "l": None, "o": {"X": [1]}}
    for text, names in (
        ('{"a": 1, "A": 2}', "'A' and 'a'"),
        ('{"l": [{"q": 1, "Q": []}, {"q": 1, "Q": 2}]}', "'Q' and 'q'"),
    ):
        with pytest.raises(SliceError, match=re.escape(names)) as caught:
            read('{"z": 1}', text)
        assert "part1.json" in caught.value.message


BAD = [
    "5",
    '"text"',
    "null",
    "{broken",
    '{"id": 1, "id": 2}',
    '{"id": 1, "o": {"x": 1, "x": 1}}',
    '{"id": "\\ud800"}',
]


def test_what_is_no_record_fails_or_is_put_aside_and_changes_no_other(read: Read) -> None:
    good = '{"id": 1, "v": 1.5, "o": {"x": 1}, "t": 1.10}\n[{"id": 2, "v": 3e1, "t": "x"}]\n'
    for bad in BAD:
        with pytest.raises(SliceError):
            read(good + bad)
    found = read("\n".join([good, *BAD, '[{"id": 3}, 7, [{"id": 4}]]']), corrupt="bad")
    aside = [row["bad"] for row in found.where("bad is not null").collect()]
    assert aside == [*BAD, "7", '[{"id":4}]']
    assert [row["id"] for row in found.where("bad is null").collect()] == [1, 2, 3]
    alone = read(good)
    assert inferred(found.drop("bad")) == inferred(alone)
    values = ("id", "cast(v as double)", "to_json(o)", "to_json(t)")
    assert found.where("id < 3").selectExpr(*values).collect() == alone.selectExpr(*values).collect()
    assert read("5\nnull", corrupt="bad").columns == ["bad"]
    assert "bad" not in read(good, corrupt="bad").columns


def test_several_values_in_a_line_are_a_bad_record(read: Read) -> None:
    """Spark's reader skips all but the first."""
    good = '{"id": 1, "o": {"x": "}"}}'
    more = [
        '{"id": 2} {"id": 3}',
        '{"id": 2}{"id": 3}',
        '{"id": 2}, {"id": 3}',
        '{"id": 2},',
        '[{"id": 2}] [{"id": 3}]',
        '{"id": 2} x',
    ]
    for line in more:
        with pytest.raises(SliceError, match="bad record"):
            read(f"{good}\n{line}\n")
    found = read("\n".join([good, *more, '[{"id": 4}, {"id": 5}]', '{"id": 6, "s": "} {"}']), corrupt="bad")
    assert [row["bad"] for row in found.where("bad is not null").collect()] == more
    assert [row["id"] for row in found.where("bad is null").collect()] == [1, 4, 5, 6]
    assert [row["id"] for row in read(f'{good}\n\n{{"id": 2, "s": "}} {{"}}').collect()] == [1, 2]


@pytest.mark.parametrize("text", ["[]", "[]\n\n[]\n", " \n"])
def test_files_without_records_have_the_columns_that_are_known(read: Read, text: str) -> None:
    empty = (StructField("id", parse_sql_type("bigint")), StructField("a b", parse_sql_type("array<int>")))
    frame = read(text, empty=empty)
    assert kinds(frame) == {"id": "bigint", "a b": "array<int>"}
    assert frame.collect() == []
    assert read(text).columns == []


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "windows-1252"])
def test_files_are_read_in_their_encoding(spark: SparkSession, read: Read, encoding: str) -> None:
    text = '{"id": 1, "name": "Zoë"}\n{"id": 2, "name": "Åsa"}\n'
    options = {} if encoding == "utf-8-sig" else {"encoding": encoding.replace("-le", "LE"), "lineSep": "\n"}
    spark.conf.set("spark.sql.legacy.javaCharsets", "true")
    try:
        frame = read(text.encode(encoding), options=options)
        check(frame, text)
    finally:
        spark.conf.unset("spark.sql.legacy.javaCharsets")


NUMBERS = st.sampled_from(
    "0 -0 1 -7 42 1.0 2.50 1e5 -2.5E-3 0.1 0.30000000000000004 9007199254740993 9223372036854775807 "
    f"-9223372036854775809 18446744073709551615 123456789.123456789 1234567890123456.25 {LONG}".split()
)
VALUES = st.recursive(
    st.sampled_from(["null", "true", "false", "[]", "{}"])
    | NUMBERS
    | st.text(st.characters(codec="utf-8"), max_size=4).map(json.dumps),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda each: f"[{', '.join(each)}]")
        | st.dictionaries(st.sampled_from(["a", "b", *NAMES[:7]]), inner, max_size=3).map(written)
    ),
    max_leaves=6,
)


@settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(st.dictionaries(st.sampled_from(["a", "v", *NAMES]), VALUES, max_size=4), min_size=1, max_size=6)
)
def test_any_values_are_those_of_pythons_parser(read: Read, records: list[dict[str, str]]) -> None:
    text = "\n".join(map(written, records))
    check(read(text), text)
    check(read(f"[{', '.join(text.splitlines())}]"), text)


def test_long_numbers_of_mixed_columns_are_kept_as_they_are_written(read: Read) -> None:
    text = f'{{"v": {LONG}, "w": {{"x": {LONG}.5}}}}\n{{"v": "x", "w": {{"x": [1.50]}}}}\n'
    for types in ({}, {"v": "string", "w": "struct<x: string>"}):
        rows = read(text, types=types).collect()
        assert [row["v"] for row in rows] == [LONG, "x"]
        assert [row["w"]["x"] for row in rows] == [f"{LONG}.5", "[1.50]"]
    with pytest.raises(SliceError, match="more than 38 digits can't be read beside bad records"):
        read(text + "7\n", corrupt="bad")

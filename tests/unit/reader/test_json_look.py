"""The kind of JSON records that their bytes show, and where they show none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakewright.lake.paths import FileEntry
from lakewright.reader.json_look import look_at
from lakewright.reader.json_types import merged
from lakewright.reader.source import Source
from lakewright.schema.types import TEXT, Array, Decimal, Scalar, Struct, StructField, Type

Json = object


def look(
    folder: Path, text: str, *, size: int | None = None, options: Mapping[str, str] | None = None
) -> str | None:
    """Return the kind of a file, which has its own size unless another one is given."""
    file = folder / "a.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    entry = FileEntry(file.name, len(text) if size is None else size)
    found = look_at(Source("the slice a", str(file), (entry,), "json", is_folder=False), options or {})
    return None if found is None else found.ddl


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a":1,"b":"x"}\n{"a":2,"b":"y"}\n', "struct<`a`: bigint, `b`: string>"),
        ('{"b": 1.5, "a": true}\r\n\n{"b": 2.5}', "struct<`a`: boolean, `b`: decimal(15,15)>"),
        ('{"a":null}\n{"a":1}\n{"b":null}\n', "struct<`a`: bigint, `b`: void>"),
        ('{"a":1}\n{"a":"x"}\n', "struct<`a`: variant>"),
        ('{"a":1}\n{"a":1.5}\n', "struct<`a`: decimal(35,15)>"),
        ('{"a":[]}\n{"a":[1,null]}\n', "struct<`a`: array<bigint>>"),
        ('{"a":{}}\n{"a":{"b":[{"c":1}]}}\n', "struct<`a`: struct<`b`: array<struct<`c`: bigint>>>>"),
        ('{ "a" :1 , "b": [ 2e-3 , {  } ] }\n', "struct<`a`: bigint, `b`: array<variant>>"),
        ('{"a":1}\n{"c":1}\n{"b":1}\n{"a":1,"b":1,"c":1}\n', "struct<`a`: bigint, `b`: bigint, `c`: bigint>"),
        ('{"a":1.5}\n{"a":1E+3}\n', "struct<`a`: double>"),
        ('{"é":"\\u00e9 \\\\ {"}\n', "struct<`é`: string>"),
        ('{"a":1,"A":"x"}\n', "struct<`A`: string, `a`: bigint>"),
    ],
)
def test_the_kind_that_the_bytes_show(tmp_path: Path, text: str, found: str) -> None:
    assert look(tmp_path, text) == found


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1} {"a":2}\n',
        '{"a":1}\n{"a":2}{"a":3}\n',
        '{"a":1}\n{"a":2',
        '{"a":1}\n{"a":1,}\n',
        '{"a":1}\n{,"a":1}\n',
        '{"a":1,"a":2}\n',
        '{"a":1}\n{"a":2,"a":2}\n',
        '{"a":1,"b":2}\n{"b":2,"a":1}\n',
        '{"a":0.12345678901234567}\n',
        '{"a":1234567890123456e1}\n',
        '{"a":1}\n{"a":1e500}\n',
        '{"a":"\\ud83d"}\n',
        '{"a":1}\n{"a":01}\n',
        '{"a":1}\n{"a":1234567890123456}\n',
        '{"a":1}\n{"a":NaN}\n',
        '{"a":1}\n{"a":tru}\n',
        '{"a":"x"}\n{"a":"\x01"}\n',
        '{"a":"x"}\n{"a":"\\x"}\n',
        '{"\\u0061":1}\n',
        '{"":1}\n',
        '[{"a":1},{"a":2}]\n',
        '{"a":1}\n5\n',
        "\ufeff{}\n",
        '{"a":"\udcff","\udcff":1}\n',
        '{"a":' + "[" * 60 + "]" * 60 + "}\n",
        "\n\n",
        "",
    ],
)
def test_lines_of_other_forms_show_nothing(tmp_path: Path, text: str) -> None:
    assert look(tmp_path, text) is None


def test_the_look_is_bounded(tmp_path: Path) -> None:
    """ "Safe and fast": no file is read twice but for a bounded probe."""
    assert look(tmp_path, '{"a":1}\n', size=1 << 31) is None
    names = "".join(f'{{"n{number}":1}}\n' for number in range(20_000))
    assert look(tmp_path, names) is None


@pytest.mark.parametrize("option", [{"multiLine": "true"}, {"allowComments": "true"}, {"encoding": "UTF-16"}])
def test_options_that_only_spark_knows(tmp_path: Path, option: Mapping[str, str]) -> None:
    assert look(tmp_path, '{"a":1}\n', options=option) is None


LEAVES = (
    st.none()
    | st.booleans()
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.integers(-(10**15) + 1, 10**15 - 1)
    | st.integers().map(lambda n: n / 8)
)
RECORDS = st.dictionaries(
    st.sampled_from("abcdef"),
    st.recursive(
        LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("xyz"), inner), max_leaves=6
    ),
)


def kind_of(value: Json) -> Type:
    """Return the kind of a value by plain recursion."""
    if value is None:
        return Scalar("void")
    if isinstance(value, dict):
        return Struct(tuple(StructField(name, kind_of(value[name])) for name in sorted(value)))
    if isinstance(value, list):
        return Array(merged(map(kind_of, value)))
    if isinstance(value, float):
        return Scalar("double") if "e" in repr(value) else Decimal(15, 15)
    names: dict[type, Type] = {bool: Scalar("boolean"), str: TEXT, int: Scalar("bigint")}
    return names[type(value)]


def is_shown(value: Json, *, is_ascii: bool) -> bool:
    """Return whether a value is written in a form that shows its kind."""
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return all(is_shown(each, is_ascii=is_ascii) for each in inside)
    if isinstance(value, str):
        return not is_ascii or all(ord(character) <= 0xFFFF for character in value)
    digits, _, exponent = repr(value).partition("e")
    is_short = len(digits.strip("-")) <= (15 if exponent else 16) and len(exponent.strip("+-")) <= 2
    return is_short if isinstance(value, float) else True


@given(st.lists(RECORDS, min_size=1), st.booleans(), st.booleans())
@example([{"a": 1}, {"c": 1}, {"a": 1, "c": 1}], True, True)
@example([{"a": "\U0001f600"}, {"b": 0.12345678901234568}], True, False)
def test_a_kind_that_is_shown_is_the_kind_of_all_records(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Json]], is_dense: bool, is_ascii: bool
) -> None:
    separators = (",", ":") if is_dense else (", ", ": ")
    lines = [
        json.dumps(record, separators=separators, ensure_ascii=is_ascii, sort_keys=True) for record in records
    ]
    found = look(tmp_path_factory.getbasetemp(), "\n".join(lines))
    are_shown = all(is_shown(record, is_ascii=is_ascii) for record in records)
    assert found == (merged(map(kind_of, records)).ddl if are_shown else None)

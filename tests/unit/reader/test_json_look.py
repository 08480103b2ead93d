"""The kind of JSON records that their bytes show, and where they show none."""

from __future__ import annotations

import decimal
import json
import re
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
    return None if found is None else found.kind.ddl + ("" if found.is_exact else ", doubles may lose digits")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a":1,"b":"x"}\n{"a":2,"b":"y"}\n', "struct<`a`: bigint, `b`: string>"),
        ('{"b": 1.5, "a": true}\r\n\n{"b": 2.5}', "struct<`a`: boolean, `b`: decimal(2,1)>"),
        ('{"a":null}\n{"a":1}\n{"b":null}\n', "struct<`a`: bigint, `b`: void>"),
        ('{"a":1}\n{"a":"x"}\n', "struct<`a`: variant>"),
        ('{"a":1}\n{"a":1.5}\n', "struct<`a`: decimal(2,1)>"),
        ('{"a":[]}\n{"a":[1,null]}\n', "struct<`a`: array<bigint>>"),
        ('{"a":{}}\n{"a":{"b":[{"c":1}]}}\n', "struct<`a`: struct<`b`: array<struct<`c`: bigint>>>>"),
        ('{ "a" :1 , "b": [ 2e-3 , {  } ] }\n', "struct<`a`: bigint, `b`: array<variant>>"),
        ('{"a":1}\n{"c":1}\n{"b":1}\n{"a":1,"b":1,"c":1}\n', "struct<`a`: bigint, `b`: bigint, `c`: bigint>"),
        ('{"a":1.5}\n{"a":1E+3}\n', "struct<`a`: double>"),
        ('{"a":0.30000000000000004}\n{"a":12.50}\n{"a":7}\n', "struct<`a`: decimal(37,17)>"),
        ('{"a":0.30000000000000004}\n{"a":1e-5}\n', "struct<`a`: double>, doubles may lose digits"),
        ('{"a":1.2345678901234567e-05}\n', "struct<`a`: double>, doubles may lose digits"),
        ('{"a":1234567890123456789}\n{"a":-1}\n', "struct<`a`: bigint>"),
        ('{"a":"\\ud83d\\ude00"}\n', "struct<`a`: string>"),
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
        '{"a":1}\n{"a":1e500}\n',
        '{"a":9.' + "9" * 38 + "}\n",
        '{"a":9223372036854775808}\n',
        '{"a":"\\ud83d"}\n',
        '{"a":"\\ud83d\\ud83d"}\n',
        '{"a":1}\n{"a":01}\n',
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
        '{"a":"x"}\n{"a":"\udcff"}\n',
        '{"a":"x"}\n{"a":"\udced\udca0\udc80"}\n',
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


NUMBERS = (
    st.integers(1 - 9 * 10**18, 9 * 10**18 - 1).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.decimals(-(10**9), 10**9, places=3).map(str)
    | st.decimals(-1, 1, places=20).map("{:f}".format)
)
LEAVES = st.none() | st.booleans() | st.text(st.characters(exclude_categories=["Cs"])) | st.integers(-99, 99)
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
    names: dict[type, Type] = {bool: Scalar("boolean"), str: TEXT, int: Scalar("bigint")}
    return names[type(value)]


@given(st.lists(RECORDS, min_size=1), st.booleans(), st.booleans())
@example([{"a": 1}, {"c": 1}, {"a": 1, "c": 1}], True, True)
@example([{"a": "\U0001f600"}, {"a": '\\ " \ue000 \U0010ffff'}], True, True)
def test_the_kind_is_that_of_all_records(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Json]], is_dense: bool, is_ascii: bool
) -> None:
    separators = (",", ":") if is_dense else (", ", ": ")
    lines = [
        json.dumps(record, separators=separators, ensure_ascii=is_ascii, sort_keys=True) for record in records
    ]
    assert look(tmp_path_factory.getbasetemp(), "\n".join(lines)) == merged(map(kind_of, records)).ddl


def kind_of_number(text: str) -> Type:
    """Return the kind of a number by its digits."""
    if "e" in text:
        return Scalar("double")
    if "." not in text:
        return Scalar("bigint")
    exact = decimal.Decimal(text).normalize(decimal.Context(prec=60)).as_tuple()
    scale = max(0, -int(exact.exponent))
    return Decimal(max(len(exact.digits) + max(0, int(exact.exponent)), scale, 1), scale)


def without_zeros(text: str) -> str:
    """Return a number without zeros at the end of its fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


@given(st.lists(NUMBERS, min_size=1))
@example(["0.00000000000000000001", "0.0"])
@example(["0.5"] * 200 + ["0.0", "-0.5"])
def test_the_kind_of_numbers(tmp_path_factory: pytest.TempPathFactory, numbers: list[str]) -> None:
    """A double is said to hold numbers only if each has at most 15 digits."""
    found = look(tmp_path_factory.getbasetemp(), "\n".join(f'{{"n": {text}}}' for text in numbers))
    kind = merged(map(kind_of_number, numbers))
    lossy = ", doubles may lose digits"
    if found is None:
        digits = [text.strip("-").partition("e") for text in numbers]
        before = max(len(number.partition(".")[0]) for number, _, _ in digits)
        after = max(len(number.partition(".")[2]) for number, _, _ in digits)
        assert before + after > 38 or any(len(exponent.strip("+-")) > 2 for _, _, exponent in digits)
    elif isinstance(kind, Decimal) and re.search(r"decimal\((\d|1[0-5]),", found):
        assert all(sum(map(str.isdigit, text)) <= 15 for text in map(without_zeros, numbers))
    else:
        assert found.removesuffix(lossy) == f"struct<`n`: {kind.ddl}>"
        are_exact = all(decimal.Decimal(repr(float(text))) == decimal.Decimal(text) for text in numbers)
        assert kind != Scalar("double") or are_exact or found.endswith(lossy)

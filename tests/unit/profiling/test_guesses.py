"""What single files show: forms, types, keys, and what must be asked."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.model.convert import MISFIT, converted
from tests.unit.profiling.landing import csv, json_lines, only, parquet, profile, write

from lakewright.profiling.project_text import project_text
from lakewright.profiling.reason import QUESTIONS as ASKED
from lakewright.profiling.reason import Code, question_text
from lakewright.profiling.tables import FIRST
from lakewright.profiling.types import type_of_texts
from lakewright.schema.rules import ValueRules
from lakewright.schema.types import TEXT, Scalar

PEOPLE = "id,name\n1,Ada\n2,Bob\n"


@pytest.mark.parametrize(
    ("values", "ddl", "code"),
    [
        ({"1", "-20", "0"}, "bigint", "all_fit"),
        ({"007", "10"}, "string", "leading_zero"),
        ({"1", "2", "3", "n/a"}, "string", "mixed"),
        ({"1,5", "2"}, "string", "decimal_comma"),
        ({"1.234,50", "2,00"}, "string", "decimal_comma"),
        ({"1.50", "20.00"}, "decimal(18,2)", "all_fit"),
        ({"1.5", "20.25", "3"}, "double", "all_fit"),
        ({"48.70402145385742", "2.1"}, "double", "all_fit"),
        ({"0.1234567890123456789", "2.1"}, "string", "long_number"),
        ({"12345678901234567890"}, "string", "long_number"),
        ({"1e5", "2"}, "double", "all_fit"),
        ({"3.402823466e+38"}, "double", "all_fit"),
        ({"true", "false"}, "boolean", "all_fit"),
        ({"yes", "no"}, "string", "all_fit"),
        ({"0", "1"}, "bigint", "all_fit"),
        ({"2024-05-01"}, "date", "all_fit"),
        ({"2024-02-30"}, "string", "all_fit"),
        ({"2024-05-01T06:00:00Z", "2024-05-01 06:00"}, "timestamp", "all_fit"),
        ({"2024-05-01T06:00:00.1234567"}, "string", "all_fit"),
        ({"01.05.2024"}, "date", "form_of_dates"),
        ({"13/05/2024"}, "date", "form_of_dates"),
        ({"01.05.2024 06:30"}, "timestamp", "form_of_dates"),
        ({"03/04/2024"}, "string", "day_or_month"),
        ({" 1"}, "string", "all_fit"),
        ({"-0", "1"}, "double", "all_fit"),
        (set[str](), "string", "no_values"),
    ],
)
def test_types_by_value(values: set[str], ddl: str, code: str) -> None:
    guess = type_of_texts(values)
    assert (guess.type.ddl, str(guess.reason.code)) == (ddl, code)


_KINDS = (
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(lambda number: f"{number:f}"),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.dates().map(str),
    st.datetimes().map(lambda time: time.isoformat(sep=" ")),
    st.dates().map(lambda day: f"{day:%d.%m.%Y}"),
    st.booleans().map(lambda flag: str(flag).lower()),
    st.from_regex(r"[-+0-9.,eE:TZ /]{1,8}", fullmatch=True),
    # A file with many control characters is binary.
    st.text(
        st.characters(codec="utf-8", exclude_characters='",', exclude_categories=["Cc"]),
        min_size=1,
        max_size=5,
    ),
)
_VALUES = st.one_of(_KINDS)
_COLUMNS = st.sampled_from(_KINDS).flatmap(
    lambda kind: st.lists(st.one_of(kind, kind, _VALUES), min_size=1, max_size=6)
)


@given(_COLUMNS)
def test_each_text_can_be_read_back_from_the_guessed_type(values: list[str]) -> None:
    guess = type_of_texts(set(values))
    rules = ValueRules("UTC", format=guess.format)
    for value in values:
        if guess.format is None:
            made = converted(value, TEXT, guess.type, rules)
            assert made is not MISFIT
            assert _is_same(value, made), (value, guess)


def _is_same(text: str, made: Any) -> bool:
    """Return whether a value is what the text says."""
    if isinstance(made, bool):
        return text.lower() == str(made).lower()
    if isinstance(made, float):
        return Decimal(repr(made)) == Decimal(text)
    if isinstance(made, (int, Decimal)):
        return Decimal(text) == made
    return text == made or converted(text, TEXT, Scalar("timestamp"), ValueRules("UTC")) is not MISFIT


@given(st.lists(st.tuples(*[_VALUES] * 3), min_size=1, max_size=8))
def test_declared_types_hold_every_value_of_a_file(
    tmp_path_factory: Any, rows: list[tuple[str, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("landing")
    quoted = (",".join(f'"{value}"' if "," in value else value for value in row) for row in rows)
    entity = only(write(folder, {"a.csv": csv("alpha,beta,gamma", quoted)}))
    for place, name in enumerate(("alpha", "beta", "gamma")):
        guess = entity.types[name]
        if guess.format is None:
            for row in rows:
                assert converted(row[place], TEXT, guess.type, ValueRules("UTC")) is not MISFIT


FORMS: Mapping[str, tuple[bytes, dict[str, Any]]] = {
    "semicolons and decimal commas": (b"id;price\n1;1,50\n2;20,00\n", {"kind": "csv", "separator": ";"}),
    "tabs": (b"id\tname\n1\tAda\n", {"kind": "csv", "separator": "tab"}),
    "pipes with commas inside": (b"id|name\n1|Ada, B\n2|Bob\n", {"kind": "csv", "separator": "|"}),
    "single quotes": (b"id,name\n1,'Ada, B'\n2,'Bob, C'\n", {"kind": "csv", "quote": "'"}),
    "quotes after a backslash": (b'id,name\n1,"Ada \\"B\\""\n', {"kind": "csv", "escape": "\\"}),
    "Latin-1": ("id,name\n1,Jürgen\n".encode("latin-1"), {"kind": "csv", "encoding": "ISO-8859-1"}),
    "Windows": ("id,name\n1,50 €\n".encode("cp1252"), {"kind": "csv", "encoding": "windows-1252"}),
    "UTF-16": ("id,name\n1,Ada\n".encode("utf-16"), {"kind": "csv", "encoding": "UTF-16"}),
    "no header": (b"1,Ada,2024-05-01\n2,Bob,2024-05-02\n", {"kind": "csv", "header": False}),
    "a byte order mark": ("\ufeffid,name\n1,Ada\n".encode(), {}),
    "line breaks in quotes": (b'id,name\n1,"Ada\nB"\n2,Bob\n', {}),
    "CR LF": (b"id,name\r\n1,Ada\r\n", {}),
    "one column": (b"name\nAda\nBob\n", {}),
}


@pytest.mark.parametrize("form", FORMS)
def test_how_a_file_is_written(form: str, tmp_path: Path) -> None:
    content, expected = FORMS[form]
    entity = only(write(tmp_path, {"people.csv": content}))
    assert dict(entity.form) == expected
    assert entity.looked_at == 1


def test_the_first_name_has_no_byte_order_mark(tmp_path: Path) -> None:
    entity = only(write(tmp_path, {"people.csv": FORMS["a byte order mark"][0]}))
    assert list(entity.types) == ["id", "name"]


ROWS = range(30)
KEYS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "id before other unique columns": (csv("name,id", (f"n{n},{n}" for n in ROWS)), ("id",), "unique"),
    "its own key before that of another": (
        csv("customer_id,people_id", (f"{n + 7},{n}" for n in ROWS)),
        ("people_id",),
        "unique",
    ),
    "two columns": (csv("shop,number", (f"{n // 10},{n % 10}" for n in ROWS)), ("shop", "number"), "unique"),
    "no number that measures": (csv("town,amount", (f"t{n % 9},{n}" for n in ROWS)), (), "no_key"),
    "no nulls": (csv("id,code", (f"{n or ''},c{n}" for n in ROWS)), ("code",), "unique"),
    "versions of a record": (
        csv("id,name,updated_at", (f"{n % 10},Ada,2024-05-01T06:00:{n:02}" for n in ROWS)),
        ("id",),
        "several_versions",
    ),
    "no key": (csv("town,size", ("Bonn,1" for _ in ROWS)), (), "no_key"),
}


@pytest.mark.parametrize("case", KEYS)
def test_keys(case: str, tmp_path: Path) -> None:
    content, columns, code = KEYS[case]
    key = only(write(tmp_path, {"people.csv": content})).key
    assert (key.columns, str(key.reason.code)) == (columns, code)


def test_a_key_is_unique_in_all_files_of_a_slice(tmp_path: Path) -> None:
    files = {
        f"2024-05-0{day}/plant={plant}/a.csv": csv("id,name", (f"{n},n{n}{plant}" for n in ROWS))
        for day in (1, 2)
        for plant in ("007", "008")
    }
    entity = only(write(tmp_path, files))
    assert entity.key.columns == ("id", "plant")
    assert entity.types["plant"].reason.code == "leading_zero"
    assert entity.deletes == "snapshot"


def test_files_that_were_not_looked_at_are_said(tmp_path: Path) -> None:
    files = {f"a/2024-05-{day:02}.csv": csv("id,zip", ["1,50100"]) for day in range(1, 10)}
    text = project_text("p", profile(write(tmp_path, files)), tmp_path)
    assert "all values in 5 files of 9 fit" in text


def test_versions_of_a_record_in_one_slice_are_ordered(tmp_path: Path) -> None:
    settings = only(write(tmp_path, {"people.csv": KEYS["versions of a record"][0]})).settings
    assert (settings["order_by"], settings["duplicates"]) == ("updated_at", "latest")


def rows(*numbers: int) -> str:
    return csv("id,name", (f"{n},Ada" for n in numbers))


LOADS: Mapping[str, tuple[Mapping[str, str], str, str | None, str]] = {
    "the same keys": (
        {"a_1.csv": rows(1, 2, 3), "a_2.csv": rows(1, 2, 3, 4)},
        "merge",
        "snapshot",
        "snapshot",
    ),
    "other keys": ({"a_1.csv": rows(1, 2), "a_2.csv": rows(3, 4)}, "merge", None, "increment"),
    "half of the keys": ({"a_1.csv": rows(1, 2), "a_2.csv": rows(2, 3)}, "merge", None, "overlap"),
    "one slice": ({"a_1.csv": rows(1, 2)}, "merge", None, "one_slice"),
    "dates": (
        {"a_2024-05-01.csv": rows(1, 2), "a_2024-05-02.csv": rows(1, 2)},
        "historic",
        "snapshot",
        "snapshot",
    ),
    "no key": ({"a_1.csv": "x,y\n1,1\n1,1\n", "a_2.csv": "x,y\n2,2\n2,2\n"}, "full", None, "increment"),
}


@pytest.mark.parametrize("case", LOADS)
def test_strategies(case: str, tmp_path: Path) -> None:
    files, strategy, deletes, load = LOADS[case]
    entity = only(write(tmp_path, files))
    assert (entity.strategy, entity.deletes, str(entity.why_load.code)) == (strategy, deletes, load)


QUESTIONS: Mapping[str, tuple[Mapping[str, str | bytes], set[str]]] = {
    "a name twice": ({"a.csv": csv("id,x,X", (f"{n},1,2" for n in ROWS))}, {"doubled_name", "one_slice"}),
    "no name": ({"a.csv": csv("id,,x", (f"{n},1,2" for n in ROWS))}, {"nameless", "one_slice"}),
    "too few fields": ({"a.csv": csv("id,x", [*(f"{n},1" for n in ROWS), "31"])}, {"ragged", "one_slice"}),
    "an empty slice": ({"a_1.csv": rows(*ROWS), "a_2.csv": ""}, {"faulty_file", "not_compared"}),
    "a damaged slice": (
        {"a_1.parquet": parquet({"id": list(ROWS)}), "a_2.parquet": b"PAR1"},
        {"faulty_file", "not_compared"},
    ),
    "no key": ({"a.csv": KEYS["no key"][0]}, {"no_key"}),
    "rows that would be lost": (
        {"a_1.csv": "x,y\n1,1\n1,1\n", "a_2.csv": "x,y\n2,2\n2,2\n"},
        {"lost_rows"},
    ),
    "a key by chance": ({"a.csv": "town,x\nBonn,1\nUlm,2\n"}, {"unsure_key", "one_slice"}),
    "snapshots without dates": ({"a_1.csv": rows(*ROWS), "a_2.csv": rows(*ROWS)}, {"no_dates"}),
    "commas in numbers": ({"a.csv": csv("id;x", (f"{n};1,5" for n in ROWS))}, {"decimal_comma", "one_slice"}),
    "day or month": (
        {"a.csv": csv("id,x", (f"{n},03/04/2024" for n in ROWS))},
        {"day_or_month", "one_slice"},
    ),
    "no type": (
        {"a.parquet": parquet({"id": list(ROWS), "x": pa.array([1.0] * len(ROWS), pa.float16())})},
        {"no_type", "one_slice"},
    ),
    "other columns": (
        {"a_1.csv": rows(*ROWS), "a_2.csv": csv("id,name,x", (f"{n},A,1" for n in ROWS))},
        {"other_columns", "no_dates"},
    ),
    "dates that do not sort": (
        {"a_03.05.2024.csv": rows(*ROWS), "a_04.05.2024.csv": rows(*ROWS)},
        {"other_dates", "no_dates"},
    ),
    "values that can't be seen": ({"a.orc": b"ORC..."}, {"not_looked_into"}),
}


@pytest.mark.parametrize("case", QUESTIONS)
def test_what_files_do_not_show_is_asked(case: str, tmp_path: Path) -> None:
    files, expected = QUESTIONS[case]
    found = profile(write(tmp_path, files))
    assert {str(question.reason.code) for question in found.questions} == expected
    text = project_text("a", found, tmp_path)
    assert set(yaml.safe_load(text)) == {"name", "entities"}
    for question in found.questions:
        assert question_text(question.reason) in text


@pytest.mark.parametrize("more", [-1, 0, 1, 100, 1 << 15, 1 << 17])
def test_a_row_is_looked_at_once_however_long_the_file_is(more: int, tmp_path: Path) -> None:
    """The beginning and the end that are read have no byte in common."""
    lines = [f"{n},{'x' * 1000}" for n in range(FIRST // 1000 + 200)]
    content = csv("id,note", lines)[: FIRST + more].rpartition("\n")[0] + "\n"
    padding = FIRST + more - len(content) - len("999999,\n")
    whole = f"{content}999999,{'y' * padding}\n" if padding >= 0 else content
    assert only(write(tmp_path, {"people.csv": whole})).key.columns == ("id",)


def test_at_most_ten_questions_are_asked(tmp_path: Path) -> None:
    files = {f"t{letter}.csv": csv(f"town,{letter}", ["Bonn,1"] * 2) for letter in "abcdefghijkl"}
    found = profile(write(tmp_path, files))
    assert (len(found.questions), found.further) == (10, 2)


def test_mixed_kinds_in_json_stay_text(tmp_path: Path) -> None:
    records = [{"id": 1, "x": 1, "zip": "007"}, {"id": 2, "x": "a", "zip": "1"}]
    entity = only(write(tmp_path, {"a.json": json_lines(records)}))
    assert {name: guess.type.ddl for name, guess in entity.types.items()} == {
        "id": "bigint",
        "x": "string",
        "zip": "string",
    }
    assert entity.types["x"].reason.code == "mixed"


def test_texts_of_digits_in_json_stay_texts_beside_numbers_of_any_length(tmp_path: Path) -> None:
    records = [{"id": n, "big": 10**25 + n, "no": str(n), "mixed": str(n) if n else n} for n in ROWS]
    entity = only(write(tmp_path, {"a.json": json_lines(records)}))
    assert {name: str(guess.reason.code) for name, guess in entity.types.items()} == {
        "id": "all_fit",
        "big": "kind",
        "no": "kind",
        "mixed": "mixed",
    }
    assert entity.types["mixed"].reason.params["example"] in [f'"{n}"' for n in range(1, 10)]


def test_a_list_of_records_in_a_line_is_read(tmp_path: Path) -> None:
    entity = only(write(tmp_path, {"a.json": '[{"id": 1}, {"id": 2}]\n'}))
    assert entity.key.columns == ("id",)


def test_every_skipped_file_has_words(tmp_path: Path) -> None:
    for skipped in profile(write(tmp_path, {"a.zip": "x", "b.json": "{", "c.csv": ""})).skipped:
        assert skipped.reason.text


@pytest.mark.parametrize("name", ["x: y", "on", "x #y", "#", "a\nb", "${x}", "- a", "ä b", "'", '"'])
def test_any_name_of_a_column_can_be_written(name: str, tmp_path: Path) -> None:
    quoted = name.replace('"', '""')
    found = profile(write(tmp_path, {"a.csv": csv(f'id,"{quoted}"', (f"{n},{n}" for n in ROWS))}))
    declared = yaml.safe_load(project_text("a", found, tmp_path))["entities"]["a"]["columns"]
    assert declared == {"id": "bigint", name: "bigint"}


_ENDINGS = st.sampled_from(["csv", "json", "txt", "parquet", "avro", "orc", "csv.gz"])
_SIGNS = st.text(st.sampled_from("ab10.,;:|\t\r\n\"'\\{}[] \ufeff-é"), max_size=60)


@given(st.lists(st.tuples(_ENDINGS, _SIGNS | st.binary()), max_size=3))
def test_no_file_ends_it_with_an_error(tmp_path_factory: Any, files: list[tuple[str, str | bytes]]) -> None:
    folder = tmp_path_factory.mktemp("landing")
    found = profile(write(folder, {f"a_{n}.{ending}": content for n, (ending, content) in enumerate(files)}))
    declared = yaml.safe_load(project_text("a", found, folder))["entities"] or {}
    assert list(declared) == [each.name for each in found.entities]
    assert [each["strategy"] for each in declared.values()] == [each.strategy for each in found.entities]


@given(st.integers(0, 10**6), st.binary(max_size=4))
def test_no_damage_of_a_parquet_file_ends_it_with_an_error(
    tmp_path_factory: Any, at: int, other: bytes
) -> None:
    content = parquet({"id": list(ROWS), "x": [[1]] * len(ROWS)})
    at %= len(content)
    changed = content[:at] + other + content[at + len(other) :]
    profile(write(tmp_path_factory.mktemp("landing"), {"a.parquet": changed}))


def test_every_code_has_words() -> None:
    assert {each for each in Code if not each.template} <= {*ASKED, Code.KIND}


HOSTILE: Mapping[str, bytes] = {
    "json of many levels": b'{"a": ' * 100_000,
    "a quote that never closes": b'id,name\n1,"' + b"x" * 300_000,
    "many columns": b",".join(b"c%d" % n for n in range(10_000)) + b"\n" + b",".join([b"1"] * 10_000),
    "a long line": b"x" * 3_000_000,
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("ending", ["csv", "json", "txt"])
def test_hostile_files_end_in_a_profile_or_a_reason(case: str, ending: str, tmp_path: Path) -> None:
    found = profile(write(tmp_path, {f"a.{ending}": HOSTILE[case]}))
    assert found.entities or found.skipped

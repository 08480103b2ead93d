"""A12: values inside structs, lists and maps that do not fit are put aside, and change no other record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, pa
from tests.spark.strategies.test_bad_rows import aside, put

ID = {"name": "id", "datatype": "long", "fieldroles": ["businesskey"]}
QUARANTINE = {"on_bad_rows": "quarantine", "fold": False}
JSON = {**QUARANTINE, "format": "json"}


def reasons(lake: SmallLake, things: Any, name: str) -> dict[Any, str]:
    """Return why rows of a slice were put aside, by their key."""
    return {int(each["key"]["id"]): each["reason"] for each in aside(lake, things, name)}


GOOD = """{"id": 1, "t": {"price": 12.5, "n": 3, "s": 1.10}, "items": [{"q": 1, "p": 2.5}], "tags": [1, 2]}
{"id": 2, "t": {"price": 7, "n": 4, "s": "x"}, "items": [{"q": 2, "p": 3}, {"q": null}], "tags": []}
{"id": 3, "t": null, "items": null, "tags": [null, 3], "net": {"eur": 1}, "size": {"a": 1}}
{"id": 4, "t": {"n": 5}, "items": [], "net": {"eur": 2.5}, "size": {"a": 2, "b": 7}}
{"id": 5, "d": {"l": [{"w": 1}, {"w": 2}, {}]}, "u": {"price": "30"}}
{"id": 6, "u": {"price": 20}, "k": {"1": 5}}
"""
BAD = {
    '"t": {"price": "bad", "n": 4}': ("t.price", "bad", "double of the table"),
    '"t": {"price": {"x": 1}}': ("t.price", '{"x":1}', "double of the table"),
    '"items": [{"q": 1}, {"q": "many"}]': ("items.q", "many", "bigint of the table"),
    '"items": [{"q": 1.5}]': ("items.q", "1.5", "bigint of the table"),
    '"tags": [1, "two"]': ("tags", "two", "bigint of the table"),
    '"net": {"eur": "1.5x"}': ("net.eur", "1.5x", "decimal(20,6) of the table"),
    '"size": {"a": "wide"}': ("size", "wide", "int"),
    '"d": {"l": [{"w": 1}, {"w": "heavy"}]}': ("d.l.w", "heavy", "decimal(6,2)"),
    '"k": {"a": 1}': ("k key", "a", "int"),
    '"u": {"price": "bad"}': ("u.price", "bad", "double"),  # beside a text that fits, which stays a text
}


def reason(column: str, value: str, kind: str) -> str:
    return f"column '{column}': the value '{value}' doesn't fit the type {kind}"


@pytest.mark.nightly  # test_json_values.py has one that is not nested
def test_a_bad_value_inside_json_does_not_change_how_others_are_read(lake: SmallLake) -> None:
    """ "Common Processing Pipeline", Compute source hash: a row that is put aside changes no other record."""
    columns = [
        ID,
        {"name": "net.eur", "newname": "eur", "datatype": "decimal(20,6)"},
        {"name": "size", "datatype": "map<string, int>"},
        {"name": "d", "datatype": "struct<l: array<struct<w: decimal(6,2)>>>"},
        {"name": "u", "datatype": "struct<price: double>"},
        {"name": "k", "datatype": "map<int, int>"},
    ]
    things = entity("historic", columns=columns, settings=JSON)
    bad = "".join(f'{{"id": {number}, {row}}}\n' for number, row in enumerate(BAD, 10))
    gone = '{"id": 99, "t": {"price": "unknown"}, "dlf_deleted": true}\n'
    for number, content in enumerate((GOOD, f"{GOOD}{bad}{gone}"), 1):
        put(lake, things, f"s{number}.json", content)
    result = lake.process(things)
    assert result.error is None, result.error
    assert [each.summary.changed for each in result.slices] == [0, 0]
    assert [each.summary.quarantined for each in result.slices] == [0, len(BAD)]
    assert reasons(lake, things, "s2.json") == {
        number: reason(*each) for number, each in enumerate(BAD.values(), 10)
    }
    (found,) = (each for each in aside(lake, things, "s2.json") if each["key"] == {"id": 10})
    assert json.loads(found["record"])["t"] == {"price": "bad", "n": 4}


TEXT, WHOLE = pa.string(), pa.int64()
NUMBERS = pa.struct([("price", pa.float64()), ("n", WHOLE)])
TEXTS = pa.struct([("n", TEXT), ("price", TEXT)])
COUNTS = {"of": pa.map_(WHOLE, pa.list_(WHOLE)), "in": pa.map_(TEXT, pa.list_(TEXT))}


def test_values_inside_others_that_do_not_fit_are_put_aside(lake: SmallLake) -> None:
    """Those of the columns `t`, `items` and `m` do not fit the table, of the others not the declared type."""
    columns = [
        ID,
        {"name": "dt", "datatype": "struct<price: double, n: long>"},
        {"name": "ditems", "datatype": "array<struct<price: double, n: long>>"},
        {"name": "dm", "datatype": "map<long, array<long>>"},
    ]
    things = entity("historic", columns=columns, settings=QUARANTINE)
    good = {"t": {"price": 1.5, "n": 2}, "items": [{"price": 2.5, "n": 3}, None], "m": [(1, [4, None])]}
    lake.load(things, "s1", [row(1, good)], schema(NUMBERS, COUNTS["of"]))
    sound: dict[str, Any] = {
        "t": {"price": "1.5", "n": "2"},
        "items": [{"price": "2.5", "n": "3"}, None],
        "m": [("1", ["4", None])],
    }
    bad: dict[str, tuple[Any, tuple[str, str, str]]] = {
        "t": ({"price": "bad", "n": "1"}, (".price", "bad", "double")),
        "items": ([*sound["items"], {"price": "1", "n": "many"}], (".n", "many", "bigint")),
        "m": ([("1", ["1"]), ("2", ["3", "4x"])], ("", "4x", "bigint")),
    }
    rows, expected = [row(2, sound), row(3, dict.fromkeys(sound))], dict[int, str]()
    for prefix, end in (("", " of the table"), ("d", "")):
        for name, (value, (path, shown, kind)) in bad.items():
            number = len(rows) + 2
            expected[number] = reason(f"{prefix}{name}{path}", shown, f"{kind}{end}")
            rows.append({**row(number, sound), f"{prefix}{name}": value})
    rows.append({**row(99, sound), "m": [("one", ["1"])]})
    expected[99] = reason("m key", "one", "bigint of the table")

    summary = lake.load(things, "s2", rows, schema(TEXTS, COUNTS["in"]))

    assert (summary.quarantined, summary.inserted) == (len(expected), 2)
    assert reasons(lake, things, "s2") == expected
    (found,) = (each for each in lake.arrow(things).to_pylist() if each["id"] == 2)
    assert {name: found[name] for name in good} == good
    assert {name: found[f"d{name}"] for name in good} == good


def row(id_: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with each value in two columns, of which one is declared."""
    return {"id": id_, **values, **{f"d{name}": value for name, value in values.items()}}


def schema(struct: Any, counts: Any) -> list[tuple[str, Any]]:
    own = [("t", struct), ("items", pa.list_(struct)), ("m", counts)]
    return [("id", WHOLE), *own, *((f"d{name}", kind) for name, kind in own)]


LEAVES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "whole": (("1", "250", "-3"), ('"bad"', "true", '{"x": 1}', "[]", '""', '"1.5x"'), "bigint"),
    "float": (("1.5", "2", "1e1", "-0.25"), ('"bad"', "false", '{"x": 1}', '["y"]', '"1,5"'), "double"),
    "money": (("1.50", "2", "100.25"), ('"bad"', "true", '{"x": 1}', '"1.5 EUR"'), "decimal(10,2)"),
    "flag": (("true", "false"), ('"maybe"', "7", "[true]"), "boolean"),
    "text": (('"a"', "7", "1.10", "true"), (), "string"),
}
"""How values of a kind are written, how bad ones are, and the type that is declared for them."""


def shape(chance: Random, depth: int) -> Any:
    """Return a random shape: a kind of leaf, a list around a shape, or the fields of an object."""
    kind = chance.choice(["leaf", "list", "object"] if depth else ["list", "object"])
    if kind == "leaf" or depth > 3:
        return chance.choice(list(LEAVES))
    if kind == "list":
        return [shape(chance, depth + 1)]
    return {name: shape(chance, depth + 1) for name in "abc"[: chance.randint(1, 3)]}


def ddl(of: Any) -> str:
    if isinstance(of, list):
        return f"array<{ddl(of[0])}>"
    if isinstance(of, dict):
        return f"struct<{', '.join(f'{name}: {ddl(kind)}' for name, kind in of.items())}>"
    return LEAVES[of][2]


def leaves(of: Any) -> list[tuple[Any, ...]]:
    if isinstance(of, list):
        return [(0, *path) for path in leaves(of[0])]
    if isinstance(of, dict):
        return [(name, *path) for name, kind in of.items() for path in leaves(kind)]
    return [()] if LEAVES[of][1] else []


def written(chance: Random, of: Any, bad: tuple[Any, ...] | None = None, *, is_full: bool = False) -> str:
    """Return a value as JSON: with one bad leaf, or with all leaves, or with nulls and empty lists."""
    if bad is None and not is_full and chance.random() < 0.15:
        return "null"
    if isinstance(of, list):
        more = 0 if is_full else chance.randint(0, 2)
        elements = [written(chance, of[0]) for _ in range(more)]
        if bad is not None or is_full:
            elements.append(written(chance, of[0], bad and bad[1:], is_full=is_full))
        return f"[{', '.join(elements)}]"
    if isinstance(of, dict):
        return _object(
            (name, written(chance, kind, bad[1:] if bad and bad[0] == name else None, is_full=is_full))
            for name, kind in of.items()
        )
    good, odd, _ = LEAVES[of]
    return chance.choice(good if bad is None else odd)


def _object(fields: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in fields) + "}"


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_bad_inside_json_the_other_records_stay_as_they_are(lake: SmallLake, seed: int) -> None:
    chance = Random(seed)
    shapes = {f"c{number}": shape(chance, 0) for number in range(5)}
    declared = [{"name": n, "datatype": ddl(of)} for n, of in shapes.items() if chance.random() < 0.5]
    settings = {**JSON, "fold": chance.random() < 0.5}
    things = entity("historic", name=f"inside{seed}", columns=[ID, *declared], settings=settings)

    def record(id_: int, bad: tuple[Any, ...] | None = None, *, is_full: bool = False) -> str:
        return _object(
            [("id", str(id_))]
            + [
                (name, written(chance, of, bad[1:] if bad and bad[0] == name else None, is_full=is_full))
                for name, of in shapes.items()
            ]
        )

    good = [record(number, is_full=number < 3) for number in range(8)]
    paths = [(name, *path) for name, of in shapes.items() for path in leaves(of)]
    bad = [record(number, path) for number, path in enumerate(chance.sample(paths, min(4, len(paths))), 100)]
    mixed = chance.sample([*good, *bad], len(good) + len(bad))
    for day, rows in enumerate((good, mixed) * 2, 1):
        put(lake, things, f"2024-01-0{day}.json", "\n".join(rows) + "\n")
    result = lake.process(things, processing_time="${slice.date}")
    assert result.error is None, (result.error, mixed)
    assert lake.version(things) == 0 or not settings["fold"]
    found = [(each.summary.changed, each.summary.quarantined) for each in result.slices]
    assert found == [(0, 0), (0, len(bad))] * 2, (declared, mixed)
    assert len(lake.rows(things, "id")) == len(good)

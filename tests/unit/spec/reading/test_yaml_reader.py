"""YAML as text that was written, bounded, whatever a hostile file holds."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest
from tests.unit.spec.kinds import SOON

from lakewright.spec.reading.files import LONGEST_YAML, read_yaml


def value_of(text: str) -> Any:
    document, faults = read_yaml(text, "m.yml")
    assert faults == ()
    return document.value


@pytest.mark.parametrize(
    "text",
    [
        *("NO", "no", "yes", "on", "true", "0100", "0x1F", "1_000", "1e3", "1.0", "1.50", ".5", "+1"),
        *(
            "2013-01-01",
            "2013-01-01T06:00:00Z",
            "12:30:45",
            "=",
            "nan",
            ".inf",
            "café",
            "a: b".replace(": ", ":"),
        ),
    ],
)
def test_a_plain_scalar_keeps_its_text(text: str) -> None:
    assert value_of(f"key: {text}") == {"key": text}


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_an_empty_plain_scalar_is_nothing_and_a_quoted_one_a_text(text: str) -> None:
    assert value_of(f"key: {text}") == {"key": None}
    assert value_of(f"key: '{text}'") == {"key": text}
    assert value_of(f'key: !!str "{text}"') == {"key": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing\n", None),
        ("[a, [b], {c: d}]", ["a", ["b"], {"c": "d"}]),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("a: >-\n  x\n  y\n", {"a": "x y"}),
        ('a: "x\\ty"', {"a": "x\ty"}),
        ("1: a\nNO: b\n", {"1": "a", "NO": "b"}),
        ("a: &x {b: c}\nd: *x\n", {"a": {"b": "c"}, "d": {"b": "c"}}),
        (
            "a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n",
            {"a": {"b": "1", "c": "2"}, "d": {"c": "3", "b": "1"}},
        ),
        ('"<<": a', {"<<": "a"}),
    ],
)
def test_documents_become_maps_lists_and_texts(text: str, value: Any) -> None:
    assert value_of(text) == value


def test_every_value_has_the_line_of_its_key_or_item() -> None:
    text = "a:\n  b: 1\n  c:\n    - x\n\n    - y: 2\n      z: 3\nd: &m\n  e: 4\nf:\n  <<: *m\n"
    document, _ = read_yaml(text, "m.yml")
    lines = {
        (): 1,
        ("a",): 1,
        ("a", "b"): 2,
        ("a", "c", 0): 4,
        ("a", "c", 1): 6,
        ("a", "c", 1, "z"): 7,
        ("f", "e"): 9,
        ("a", "no such key"): 1,
    }
    assert {path: document.at(path).line for path in lines} == lines
    assert str(document.at(("a", "b"))) == "m.yml:2"


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a: [1\nb: 2\n", 2, "not YAML"),
        ("a:\n\tb: 1\n", 2, "not YAML: a tab indents the line"),
        ("a:\n  b: 1\n \tc: 1\n", 3, "not YAML: a tab indents the line"),
        ("a: 'x\n", 2, "not YAML"),
        ("a: 1\nb: \x00\n", None, "not YAML"),
        ("a: *b\n", 1, "no anchor"),
        ("a: &x [*x]\n", 1, "inside of its own anchor"),
        ("a: !!python/object/apply:os.system [ls]\n", 1, "tag"),
        ("a: !!python/name:os.system\n", 1, "tag"),
        ("a: !!binary aGk=\n", 1, "tag"),
        ("a: !secret x\n", 1, "tag"),
        ("? [a]\n: b\n", 1, "key"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a:\n  <<: x\n", 2, "<<"),
        ("a: 1\nb: 2\na: 3\n", 3, "twice, first in line 1"),
    ],
)
def test_what_can_not_be_read_is_a_fault_with_its_line(text: str, line: int | None, why: str) -> None:
    _, faults = read_yaml(text, "m.yml")
    assert len(faults) == 1
    assert why in faults[0].message
    assert faults[0].location is not None
    assert (faults[0].location.file, faults[0].location.line) == ("m.yml", line)


def test_all_doubled_keys_are_found_and_the_first_value_stays() -> None:
    document, faults = read_yaml("a: 1\na: 2\nb: {c: 1, c: 2}\n", "m.yml")
    assert document.value == {"a": "1", "b": {"c": "1"}}
    assert [fault.location.line for fault in faults if fault.location] == [2, 3]


def alias_bomb() -> str:
    levels = "abcdefghij"
    first = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    return first + "".join(
        f"{name}: &{name} [{', '.join(['*' + inner] * 9)}]\n" for inner, name in pairwise(levels)
    )


HOSTILE = {
    "alias bomb": alias_bomb(),
    "merge bomb": "a: &a {"
    + ", ".join(f"k{i}: v" for i in range(1000))
    + "}\n"
    + "".join(f"b{i}: {{<<: *a}}\n" for i in range(2000)),
    "flow depth": "[" * 100_000,
    "block depth": "".join("  " * depth + "a:\n" for depth in range(1000)),
    "dashes": "- " * 500_000,
    "many values": "- x\n" * 400_000,
    "50 MB": "a: " + "x" * 50_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_a_fault_soon(name: str) -> None:
    started = time.process_time()
    _, faults = read_yaml(HOSTILE[name], "m.yml")
    assert len(faults) == 1
    assert time.process_time() - started < SOON
    assert len(faults[0].message) < 200


def test_a_long_file_of_one_text_is_read() -> None:
    assert len(value_of("a: " + "x" * (LONGEST_YAML - 100))["a"]) == LONGEST_YAML - 100

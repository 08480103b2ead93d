"""JSON as text that was written, bounded, whatever a hostile file holds."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.unit.spec.kinds import SOON

from lakewright.spec.reading.files import MOST_FAULTS_JSON, read_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("{}", {}),
        (
            '{"a": 1, "b": 1.50, "c": true, "d": null, "e": "NO"}',
            {"a": "1", "b": "1.50", "c": "true", "d": None, "e": "NO"},
        ),
        ('[false, -0, 1e400, "\\u00e9\\ud83d\\ude00"]', ["false", "-0", "1e400", "é😀"]),
        ('{"a": {"b": [{"c": []}]}}', {"a": {"b": [{"c": []}]}}),
    ],
)
def test_documents_become_maps_lists_and_texts(text: str, value: Any) -> None:
    document, faults = read_json(text, "e.json")
    assert faults == ()
    assert document.value == value


def test_every_value_has_the_line_of_its_key_or_item() -> None:
    text = '{"a": 1,\n "b": {"c": [1,\n   {"d":\n  "x, {[:\\"\\n"}]},\n\n "e":\n null, "f": []}'
    document, _ = read_json(text, "e.json")
    lines = {
        ("a",): 1,
        ("b",): 2,
        ("b", "c"): 2,
        ("b", "c", 1): 3,
        ("b", "c", 1, "d"): 3,
        ("e",): 6,
        ("f",): 7,
        ("g",): 1,
    }
    assert {path: document.at(path).line for path in lines} == lines


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ('{"a": 1,}', 1, "not JSON"),
        ('{"a":\n\n1 "b"}', 3, "not JSON"),
        ("{'a': 1}", 1, "not JSON"),
        ("", 1, "not JSON"),
        ('{"a":\nNaN}', 2, "NaN"),
        ('{"a": [1,\n-Infinity]}', 2, "Infinity"),
        ('{"a": 1,\n"b": {"c": 1,\n"c": 2}}', 3, "'c' occurs twice, first in line 2"),
        ('{"a": "\t"}', 1, "not JSON"),
    ],
)
def test_what_can_not_be_read_is_a_fault_with_its_line(text: str, line: int, why: str) -> None:
    _, faults = read_json(text, "e.json")
    assert len(faults) == 1
    assert why in faults[0].message
    assert faults[0].location is not None
    assert faults[0].location.line == line


def test_a_doubled_key_keeps_its_first_value() -> None:
    document, _ = read_json('{"a": 1, "a": 2, "a": 3}', "e.json")
    assert document.value == {"a": "1"}


HOSTILE = {
    "depth": "[" * 100_000,
    "closed depth": "[" * 500 + "]" * 500,
    "many values": "[" + "1," * 2_000_000 + "1]",
    "long number": "[" + "9" * 17_000_000 + "]",
    "50 MB": '["' + "x" * 50_000_000 + '"]',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_a_fault_soon(name: str) -> None:
    started = time.process_time()
    _, faults = read_json(HOSTILE[name], "e.json")
    assert len(faults) == 1
    assert time.process_time() - started < SOON
    assert len(faults[0].message) < 200


def test_a_flood_of_doubled_keys_is_cut_off() -> None:
    _, faults = read_json("[" + ",".join(['{"a": 1, "a": 2}'] * 1000) + "]", "e.json")
    assert len(faults) == MOST_FAULTS_JSON


def test_what_yaml_reads_in_another_way_has_its_line_too() -> None:
    text = '{\n\t"a": "\u2028\\ud83d\\ude00",\n\t"b\\\\ud83d":\t{"c": "- x: {#"},\n\t"d": "\\/"\n}'
    document, _ = read_json(text, "e.json")
    assert document.value == {"a": "\u2028😀", "b\\ud83d": {"c": "- x: {#"}, "d": "/"}
    assert [document.at(path).line for path in (("a",), ("d",))] == [2, 4]

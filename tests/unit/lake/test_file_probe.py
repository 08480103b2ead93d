"""What files of JSON hold, found without Spark."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from lakewright.lake.file_probe import holds_json_texts


@pytest.mark.parametrize(
    ("content", "wanted", "is_certain"),
    [
        ('{"a": "x", "b": null}', {"a": 0}, True),
        ('{"a": null, "b": null}\n{"a" : \n"x"}', {"a": 0}, True),
        ('{"a": null}\n{"a": 1}', {"a": 0}, False),
        ('{"a": [], "b": ["x"]}', {"a": 1, "b": 1}, False),
        ('{"a": [["x"]], "b": [ [ "x" ] ]}', {"a": 2, "b": 2}, True),
        ('{"a": ["x"]}', {"a": 0}, False),
        ('{"t": "the \\"a\\": \\"x\\"", "a": null}', {"a": 0}, False),
        ('{"t": "x", "a b*": "x"}', {"t": 0, "a b*": 0}, True),
        ("{}", {}, True),
    ],
)
def test_texts_of_json_fields_are_found_where_that_is_certain(
    tmp_path: Path, content: str, wanted: dict[str, int], is_certain: bool
) -> None:
    """ "Schema Drift": such a slice needs no second look at its types."""
    padding = '{"n": 1}\n' * 300_000
    (tmp_path / "s.json").write_text(padding + content)
    assert holds_json_texts([tmp_path / "s.json"], wanted) is is_certain
    (tmp_path / "s.json.gz").write_bytes(gzip.compress(content.encode("utf-16")))
    assert holds_json_texts([tmp_path / "s.json.gz"], wanted) is is_certain
    assert not holds_json_texts([tmp_path / "gone.json"], wanted)


def test_the_texts_of_several_json_files_count_together(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.json").write_text(f'{{"{name}": "x", "c": null}}')
    assert holds_json_texts([tmp_path / "a.json", tmp_path / "b.json"], {"a": 0, "b": 0})

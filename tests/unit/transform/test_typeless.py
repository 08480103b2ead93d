"""Types of which a slice shows only a part: nulls and empty lists in JSON."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import ArrayType, DataType, LongType, NullType, StringType, StructField, StructType

from lakewright.lake.file_probe import has_typeless_json
from lakewright.transform.typeless import is_typeless, settled, without_types

SIMPLE: dict[str, DataType] = {"text": StringType(), "long": LongType(), "void": NullType()}


def kind(shape: Any) -> Any:
    """Return the type of a shape: a name, a list of one shape, or fields with theirs; None stays None."""
    if isinstance(shape, dict):
        return StructType([StructField(name, kind(inner)) for name, inner in shape.items()])
    if isinstance(shape, list):
        return ArrayType(kind(shape[0]))
    return None if shape is None else SIMPLE[shape]


@pytest.mark.parametrize(
    ("inferred", "typed", "expected"),
    [
        ("text", "text", "text"),
        ("text", None, "void"),
        (["text"], None, ["void"]),
        ([["text"]], None, [["void"]]),
        ({"a": "long", "b": "text"}, {"a": "long"}, {"a": "long", "b": "void"}),
        ([{"a": "text"}], None, [{"a": "void"}]),
        ([{"a": "text", "b": ["text"]}], [{"a": "text"}], [{"a": "text", "b": ["void"]}]),
        ({"a": "text", "b": ["text"]}, {"b": "text"}, {"a": "void", "b": ["text"]}),
        ({"a": {"b": "text"}, "c": ["text"]}, {"a": "text"}, {"a": {"b": "text"}, "c": ["void"]}),
    ],
)
def test_a_text_is_void_if_spark_leaves_it_out_as_null_or_empty(
    inferred: Any, typed: Any, expected: Any
) -> None:
    found = without_types(kind(inferred), kind(typed))
    assert found == kind(expected)
    assert is_typeless(found) is ("void" in str(expected))


@pytest.mark.parametrize(
    ("shape", "known", "evolved", "kept"),
    [
        ("void", "long", "long", "long"),
        ("void", None, None, "text"),
        (["void"], [{"a": "long"}], [{"a": "long"}], [{"a": "long"}]),
        (["void"], None, None, ["text"]),
        (["void"], "text", None, ["text"]),
        ({"a": "long", "b": "void"}, {"A": "long"}, {"a": "long"}, {"a": "long", "b": "text"}),
        ({"a": "void"}, {"A": ["long"]}, {"a": ["long"]}, {"a": ["long"]}),
        ({"a": "void"}, None, None, {"a": "text"}),
    ],
)
def test_a_part_without_a_type_takes_that_of_the_table(
    shape: Any, known: Any, evolved: Any, kept: Any
) -> None:
    assert settled(kind(shape), kind(known), is_kept=False) == kind(evolved)
    assert settled(kind(shape), kind(known), is_kept=True) == kind(kept)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"a": 1}', False),
        ('{"a": null}', True),
        ('{"a": [ \t]}', True),
        ('{"a": [1]}', False),
        ("x" * ((1 << 20) - 2) + "null", True),
    ],
)
def test_only_files_with_nulls_or_empty_lists_are_inferred_twice(
    tmp_path: Path, content: str, expected: bool
) -> None:
    plain, wide, packed = (tmp_path / name for name in ("a.json", "b.json", "c.json.gz"))
    plain.write_text(content)
    wide.write_text(content, encoding="utf-16")
    packed.write_bytes(gzip.compress(content.encode()))
    assert [has_typeless_json(path) for path in (plain, wide, packed)] == [expected] * 3


def test_a_file_that_cannot_be_examined_may_have_nulls(tmp_path: Path) -> None:
    damaged = tmp_path / "a.json.gz"
    damaged.write_bytes(b"no archive")
    assert has_typeless_json(damaged)

"""Types of which a slice shows only a part: nulls and empty lists in JSON."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import ArrayType, DataType, LongType, NullType, StringType, StructField, StructType

from lakewright.transform.typeless import settled

SIMPLE: dict[str, DataType] = {"text": StringType(), "long": LongType(), "void": NullType()}


def kind(shape: Any) -> Any:
    """Return the type of a shape: a name, a list of one shape, or fields with theirs; None stays None."""
    if isinstance(shape, dict):
        return StructType([StructField(name, kind(inner)) for name, inner in shape.items()])
    if isinstance(shape, list):
        return ArrayType(kind(shape[0]))
    return None if shape is None else SIMPLE[shape]


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

"""Rows that another program changed are written by the same columns by which they were compared."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, in_way

KEYS = [{"name": name, "fieldroles": ["businesskey"]} for name in ("id", "day")]

WRONG = "set PK_things = if(id = 2, sha2('x', 256), null), id = if(id = 2, 3, id) where id > 1"
"""What another program does, after which no primary key but the first is that of its row."""


def _rows(*ids: int, v: str) -> list[dict[str, Any]]:
    return [{"id": each, "day": "d", "v": v} for each in ids]


@pytest.mark.parametrize(
    ("processtype", "way"),
    [
        ("merge", "marked"),
        pytest.param("merge", "written anew", marks=pytest.mark.nightly),
        pytest.param("merge", "sorted, compared by key first", marks=pytest.mark.nightly),
        pytest.param("historic", "marked", marks=pytest.mark.nightly),
        pytest.param("historic", "written anew", marks=pytest.mark.nightly),
    ],
)
def test_no_record_of_a_slice_is_lost_whatever_primary_keys_the_table_has(
    lake: SmallLake, processtype: str, way: str
) -> None:
    """Rows were compared by the business key, but written by the primary key: updates were lost."""
    things = entity(processtype, columns=KEYS)
    lake.load(things, "s1", _rows(1, 2, 4, v="a"))
    lake.spark.sql(f"update {things.places(lake.lake.settings).silver.sql} {WRONG}")
    with in_way(way):
        counts = lake.load(things, "s2", _rows(1, 2, 3, 4, v="b"))
    assert (counts.inserted, counts.changed) == (1, 3)
    is_current = ("dlf_IsCurrent",) if processtype == "historic" else ()
    rows = [row for row in lake.rows(things, "id", "v", "PK_things", *is_current) if row[-1]]
    assert [row[:2] for row in rows] == [(1, "b"), (2, "b"), (3, "b"), (4, "b")]
    assert len({row[2] for row in rows if row[2]}) == 4

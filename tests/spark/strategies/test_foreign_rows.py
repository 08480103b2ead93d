"""Rows and tables of another program: records are found by what they were compared by, and only once."""

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


@pytest.mark.nightly
def test_a_record_whose_key_a_table_pads_is_found_again(lake: SmallLake) -> None:
    """Spark pads a `char` with spaces when it reads it: each slice inserted the record once more."""
    things = entity(columns=KEYS[:1], settings={"adopt": {}})
    place = f"delta.`{things.places(lake.lake.settings).silver.location}`"
    lake.spark.sql(f"create table {place} (id char(5), v string) using delta")
    lake.spark.sql(f"insert into {place} values ('abcde', 'a')")
    rows = [{"id": each, "v": "b"} for each in ("abcde", "ab", "x")]
    assert lake.load(things, "s1", rows).inserted == 2
    assert lake.load(things, "s2", [{**row, "v": "c"} for row in rows]).changed == 3
    assert [(key.strip(), v) for key, v in lake.rows(things, "id", "v")] == [
        ("ab", "c"),
        ("abcde", "c"),
        ("x", "c"),
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("processtype", ["merge", "historic"])
def test_rows_without_a_primary_key_are_not_deleted_again_and_again(
    lake: SmallLake, processtype: str
) -> None:
    """Each slice counted them as deletes that it infers, which nothing wrote, and the brake stopped it."""
    things = entity(processtype, columns=KEYS, settings={"delete_missing": True, "delete_scope": "full"})
    lake.load(things, "s1", _rows(1, 2, v="a"))
    lake.spark.sql(f"update {things.places(lake.lake.settings).silver.sql} set PK_things = null where id = 2")
    assert lake.load(things, "s2", _rows(1, v="b")).inferred_deletes == 0
    assert lake.load(things, "s3", _rows(3, v="b")).inferred_deletes == 1

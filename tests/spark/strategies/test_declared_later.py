"""Columns that are declared after slices without them were processed."""

from __future__ import annotations

from decimal import Decimal

import pytest
from tests.spark.strategies.bench import SmallLake, entity
from tests.spark.strategies.rewinding import rebuild_in, undo_in
from tests.spark.strategies.test_bad_rows import put

from lakewright.errors import SchemaDriftError
from lakewright.slices.rehearsal import rehearsed

ID = {"name": "id", "datatype": "long", "fieldroles": ["businesskey"]}
PRICE = {"name": "price", "newname": "price2", "datatype": "decimal(8,2)"}
OTHERS = [
    {"name": "kind"},
    {"name": "shop.city", "newname": "city", "datatype": "varchar(20)"},
    {"name": "twice", "expression": "coalesce(price, 0) * 2"},
]
JSON = {"format": "json"}


@pytest.mark.parametrize(
    ("strategy", "goes_on"),
    [
        ("historic", False),
        *(pytest.param(each, True, marks=pytest.mark.nightly) for each in ("historic", "merge", "full")),
    ],
)
def test_a_column_that_came_later_is_declared_and_the_table_built_again(
    lake: SmallLake, strategy: str, goes_on: bool
) -> None:
    """`rewind.md`, "Rebuild": silver anew from its slices under today's declaration."""
    before = entity(strategy, columns=[ID], settings=JSON)
    put(lake, before, "s1.json", '{"id": 1}\n{"id": 2}\n')
    put(lake, before, "s2.json", '{"id": 1, "price": 1, "shop": {"city": "Ede"}}\n{"id": 2}\n{"id": 3}\n')
    assert lake.process(before).error is None
    put(lake, before, "s3.json", '{"id": 1, "price": 1.5, "shop": {"city": "Ede"}}\n{"id": 2}\n')
    error = lake.process(before).error
    assert isinstance(error, SchemaDriftError)
    assert error.remedy is not None
    assert error.remedy.startswith(
        "Correct the slice; or declare a `datatype` that holds all values, and build the table again with "
        "`lakewright rebuild things`. Nothing was written."
    )

    today = entity(strategy, columns=[ID, PRICE, *OTHERS], settings=JSON)
    rebuild_in(lake, today)

    # `kind` has no type before a slice brings one.
    told, seen = "the configured column", "as when first processed: it is null in these rows"
    assert [each for each in lake.warnings if "lack" in each] == [
        f"things: s1.json lacks {told} 'price', {seen}",
        f"things: s1.json, s2.json lack {told} 'kind', {seen}",
        f"things: s1.json lacks {told} 'shop.city', {seen}",
    ]
    assert lake.current(today, "id", "price2", "city", "twice") == [
        (1, Decimal("1.00"), "Ede", Decimal("2.00")),
        (2, None, None, Decimal("0.00")),
        (3, None, None, Decimal("0.00")),
    ]
    assert "kind" not in lake.arrow(today).column_names

    if strategy == "historic" and goes_on:
        with rehearsed(lake.bench(today), today, "s1.json") as (found, _):
            assert f"the slice lacks {told} 'price', as when first processed: it is null in its rows" in (
                found.warnings
            )
        undo_in(lake, today, "s1.json")
        assert sorted(row[0] for row in lake.rows(today, "id")) == [1, 2, 3]

    # A slice that was not processed yet must have the columns.
    lake.put_aside()
    put(lake, today, "s4.json", '{"id": 1, "price": 1.5}\n')
    assert "the slice lacks the configured columns 'kind', 'shop.city'" in str(lake.process(today).error)


def test_many_slices_that_lack_a_column_are_folded(lake: SmallLake) -> None:
    """`rewind.md`, "Fold": one pass gives the same table as one by one."""
    before = entity("merge", columns=[ID])
    for day in range(1, 6):
        lake.put(before, f"s{day}", [{"id": day, **({"price": "1.5"} if day == 5 else {})}])
    assert lake.process(before).error is None
    today = entity("merge", columns=[ID, PRICE])
    version = lake.version(today)
    rebuild_in(lake, today)
    assert lake.version(today) == version + 1
    assert lake.rows(today, "id", "price2") == [*((day, None) for day in range(1, 5)), (5, Decimal("1.50"))]
    assert lake.warnings[-1] == (
        "things: s1, s2, s3, s4 lack the configured column 'price', as when first processed: it is null in "
        "these rows"
    )

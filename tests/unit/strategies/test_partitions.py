"""Which partitions a table may have to be gone on from: `processing-strategies.md`, "Partition Handling"."""

from __future__ import annotations

import pytest

from lakewright.errors import MigrationError
from lakewright.lake.delta_log import TableState
from lakewright.schema.canonical import HASH_VERSION
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.strategies.compatibility import check_table_compatible
from lakewright.strategies.table_properties import HASH_VERSION_PROPERTY, STRATEGY_PROPERTY


def refuse(strategy: str, declared: list[str], table: list[str]) -> None:
    key = {"name": "id", "fieldroles": ["businesskey"]}
    columns = [key, *({"name": name, "fieldroles": ["partition"]} for name in declared)]
    document = {"id": "1", "name": "sales", "connection": "shop", "processtype": strategy, "columns": columns}
    entity = Entity.model_validate(document)
    properties = {STRATEGY_PROPERTY: strategy, HASH_VERSION_PROPERTY: HASH_VERSION}
    state = TableState(exists=True, partition_columns=tuple(table), properties=properties)
    check_table_compatible(state, Strategy(strategy), entity, allow_data_loss=True)


@pytest.mark.parametrize("strategy", ["full", "merge", "historic"])
def test_a_table_has_the_partitions_that_are_declared(strategy: str) -> None:
    refuse(strategy, ["region", "sales day"], ["salesday", "Region"])
    with pytest.raises(MigrationError, match="by no column, the entity by region") as caught:
        refuse(strategy, ["region"], [])
    assert "`lakewright rebuild sales`" in str(caught.value.remedy)
    with pytest.raises(MigrationError, match="by day, the entity by region"):
        refuse(strategy, ["region"], ["day"])


def test_without_declared_ones_only_full_needs_a_table_without() -> None:
    refuse("full", [], [])
    refuse("merge", [], ["region"])
    with pytest.raises(MigrationError, match="by region, the entity by none"):
        refuse("full", [], ["region"])

"""`readers: any`: what plan and CREATE say of a table's deletion vectors; no JVM."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from lakewright.lake.delta_log import VECTORS, TableState
from lakewright.spec.models.entity import Entity
from lakewright.targets.entity.observation import feature_changes, property_changes

WITH = TableState(
    exists=True, properties={"delta.enableDeletionVectors": "true"}, features=frozenset({VECTORS})
)
WITHOUT = TableState(exists=True, properties={"delta.enableDeletionVectors": "false"})


def entity(**settings: object) -> Entity:
    return Entity.model_validate(
        {
            "id": "1",
            "name": "orders",
            "connection": "shop",
            "processtype": "merge",
            "columns": [{"name": "id", "fieldroles": ["businesskey"]}],
            "settings": settings,
        }
    )


def test_a_table_for_any_reader_loses_its_deletion_vectors_and_the_plan_says_so() -> None:
    lenient = entity(readers="any")
    assert [each.description for each in property_changes(lenient, WITH)] == [
        "set table property delta.enableDeletionVectors to false"
    ]
    assert [each.description for each in feature_changes(lenient, WITH)] == [
        "drop the table feature deletionVectors, and write the files with marked rows again"
    ]
    assert property_changes(lenient, WITHOUT) == feature_changes(lenient, WITHOUT) == ()


def test_other_tables_keep_them() -> None:
    assert feature_changes(entity(), WITH) == property_changes(entity(), WITH) == ()


def test_any_reader_and_deletion_vectors_contradict_each_other() -> None:
    with pytest.raises(ValidationError, match="readers: any contradicts the table property"):
        entity(readers="any", table_properties={"delta.enableDeletionVectors": "true"})

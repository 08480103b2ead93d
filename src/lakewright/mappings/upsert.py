"""The `upsert` mapping: applies updates to a state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.columns import column, conform, fields_of
from lakewright.mappings.mapping import ColumnName, Input, InputMapping, NamedColumn
from lakewright.schema.sql import name_sql
from lakewright.spec.models.base import Listed, Reference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["UpsertMapping"]


class UpsertMapping(InputMapping):
    """Returns the rows of `updates`, and those of `input` whose key is not in `updates`.

    The columns are those of the updates. A key that contains null is a key like any other.
    """

    updates: Input = Declared(description="Mapping with changed and new rows.")
    key_columns: Listed[ColumnName] = Declared(min_length=1, description="Columns that identify a row.")

    def references(self) -> Iterable[Reference]:
        """Return the state and the updates."""
        return [*super().references(), Reference("mapping", self.updates, ("updates",))]

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns of the key."""
        return self.named("keyColumns", self.key_columns)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the updated state."""
        updates = workspace.frame(self.updates)
        keys = updates.select(*map(column, self.key_columns)).distinct().alias("updates")
        same = [f"{name_sql('state', name)} <=> {name_sql('updates', name)}" for name in self.key_columns]
        from pyspark.sql import functions

        kept = frame.alias("state").join(keys, functions.expr(" AND ".join(same)), "left_anti")
        return updates.unionByName(conform(kept, fields_of(updates.schema)))

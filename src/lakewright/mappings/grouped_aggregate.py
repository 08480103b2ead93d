"""The `groupedAggregate` mapping: several aggregates of one input, each an output of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.errors import SpecError
from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.base import Model, Texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["AggregationGroup", "GroupedAggregateMapping"]


class AggregationGroup(Model):
    """One aggregate of the input."""

    dimensions: Texts = Declared(default=(), description="Columns to group by.")
    aggregations: Texts = Declared(default=(), description="Names of the aggregations; default: all.")
    filter: str | None = Declared(default=None, description="SQL condition for rows of the input.")
    having: str | None = Declared(default=None, description="SQL condition for rows of the result.")


class GroupedAggregateMapping(InputMapping):
    """Aggregates its input by several groups, each of which is the output `name:group`."""

    aggregations: dict[str, str] = Declared(
        min_length=1, description="SQL aggregate expression of each column."
    )
    groups: dict[str, AggregationGroup] = Declared(min_length=1, description="The groups by name.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, group in self.groups.items():
            if unknown := [each for each in group.aggregations if each not in self.aggregations]:
                raise ValueError(f"group {name!r} names the unknown aggregation {unknown[0]!r}")
        return self

    def outputs(self) -> tuple[str, ...]:
        """Return the names of the groups."""
        return tuple(self.groups)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Refuse: each group is an output of its own.

        Raises:
            SpecError: Always, with the outputs.
        """
        del frame, workspace
        listed = ", ".join(f"{self.name}:{group}" for group in self.groups)
        raise SpecError.of(f"mapping {self.name!r} has an output for each group", remedy=f"Read {listed}.")

    def transform_output(self, workspace: Workspace, name: str) -> DataFrame:
        """Return the dimensions and aggregations of one group."""
        from pyspark.sql import functions

        group = self.groups[name]
        frame = workspace.frame(self.input)
        frame = frame if group.filter is None else frame.where(group.filter)
        chosen: Sequence[str] = group.aggregations or tuple(self.aggregations)
        computed = [functions.expr(self.aggregations[each]).alias(each) for each in chosen]
        found = frame.groupBy(*map(functions.expr, group.dimensions)).agg(*computed)
        return found if group.having is None else found.where(group.having)

"""Mappings that aggregate groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.base import Model, Texts
from lakewright.spec.models.text_marks import SqlText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["AggregateMapping", "GroupedAggregateMapping"]


class AggregateMapping(InputMapping):
    """Returns one row per combination of dimensions, like `SELECT … GROUP BY`."""

    dimensions: Annotated[Texts, SqlText.EXPRESSION] = Declared(
        default=(), description="Columns, or SQL expressions with `AS name`, to group by."
    )
    aggregations: Annotated[dict[str, str], SqlText.EXPRESSION] = Declared(
        description="SQL aggregate expression of each other column."
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the dimensions followed by the aggregations; a single row if there are no dimensions."""
        from pyspark.sql import functions

        computed = [functions.expr(text).alias(name) for name, text in self.aggregations.items()]
        return frame.groupBy(*map(functions.expr, self.dimensions)).agg(*computed)


class AggregationGroup(Model):
    """One aggregate of the input."""

    dimensions: Annotated[Texts, SqlText.EXPRESSION] = Declared(
        default=(), description="Columns to group by."
    )
    aggregations: Texts = Declared(default=(), description="Names of the aggregations; default: all.")
    filter: Annotated[str | None, SqlText.CONDITION] = Declared(
        default=None, description="SQL condition for rows of the input."
    )
    having: str | None = Declared(default=None, description="SQL condition for rows of the result.")


class GroupedAggregateMapping(InputMapping):
    """Aggregates its input by several groups, each of which is the output `name:group`."""

    aggregations: Annotated[dict[str, str], SqlText.EXPRESSION] = Declared(
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

    def has_main(self) -> bool:
        """Return that only the groups are outputs."""
        return False

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Refuse: each group is an output of its own.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(f"{self.kind} has the outputs {self.outputs()} only")

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

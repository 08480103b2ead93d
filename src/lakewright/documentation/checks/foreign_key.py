"""The `foreignKey` check: keys occur in another relation or mapping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.documentation.checks.check import Count, QueryCheck
from lakewright.errors import SpecError
from lakewright.lake.columns import column as column_of
from lakewright.mappings.mapping import Input
from lakewright.spec.models.base import Reference, Texts, inconsistent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ForeignKeyCheck"]

_OTHER, _IS_THERE = "__other_{}", "__is_there"


class ForeignKeyCheck(QueryCheck):
    """Holds if each row's key occurs in another relation or mapping; keys with a null are ignored."""

    relation: str | None = Declared(default=None, description="Relation that holds the keys.")
    mapping: Input | None = Declared(default=None, description="Mapping that holds the keys.")
    column: str | None = Declared(
        default=None,
        description="For a check of one column, the column of the other side; by default the same name.",
    )
    columns: Texts = Declared(default=(), description="For a check of rows, the columns of the key.")
    references_: Texts = Declared(
        default=(),
        alias="references",
        description="For a check of rows, the columns of the other side; by default the same names.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.relation is None) == (self.mapping is None):
            raise inconsistent("a foreignKey check needs either a `relation` or a `mapping`")
        if self.references_ and len(self.references_) != len(self.columns or [0]):
            raise inconsistent("a foreignKey check needs as many `references` as `columns`")
        return self

    @property
    def other(self) -> str:
        """The name of the relation or mapping that holds the keys."""
        return self.relation or self.mapping or ""

    def references(self) -> Iterable[Reference]:
        """Return the relation or mapping."""
        category = "mapping" if self.relation is None else "relation"
        return [Reference(category, self.other, (category,))]

    def pairs(self, column: str | None) -> list[tuple[str, str]]:
        """Return each column of the key with the column of the other side.

        Raises:
            SpecError: No columns are named.
        """
        own = self.columns or ((column,) if column is not None else ())
        if not own:
            raise SpecError.of(
                "a check of kind foreignKey has no `columns`", remedy="Name the columns of the key."
            )
        others = self.references_ or ((self.column,) if self.column and len(own) == 1 else own)
        return list(zip(own, others, strict=True))

    def claim(self, column: str | None) -> str:
        """Return that the columns occur in the other relation or mapping."""
        own, others = zip(*self.pairs(column), strict=True)
        there = "" if own == others else f" ({', '.join(others)})"
        return f"{', '.join(own)} occurs in {self.other}{there}"

    def count(self, column: str | None, frame: DataFrame, workspace: Workspace) -> Count:
        """Return the number of rows whose key occurs on the other side."""
        from pyspark.sql import functions

        pairs = self.pairs(column)
        for own, _ in pairs:
            frame = frame.where(column_of(own).isNotNull())
        there = self._keys(workspace, pairs).withColumn(_IS_THERE, functions.lit(True))
        joined = frame.join(there, _same(pairs), "left")
        is_there = functions.col(_IS_THERE)
        (row,) = joined.agg(
            functions.count_if(is_there.isNotNull()), functions.count_if(is_there.isNull())
        ).collect()
        missing = frame.join(there, _same(pairs), "left_anti").select(*(column_of(own) for own, _ in pairs))
        return Count(passed=row[0], failed=row[1], failing=missing.distinct())

    def _keys(self, workspace: Workspace, pairs: list[tuple[str, str]]) -> DataFrame:
        found = (
            workspace.relation(self.relation).read(workspace)
            if self.relation is not None
            else workspace.frame(self.other)
        )
        return found.select(
            *(column_of(other).alias(_OTHER.format(number)) for number, (_, other) in enumerate(pairs))
        ).distinct()


def _same(pairs: list[tuple[str, str]]) -> list[Column]:
    return [column_of(own) == column_of(_OTHER.format(number)) for number, (own, _) in enumerate(pairs)]

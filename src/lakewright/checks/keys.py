"""Keys that occur once, or that occur elsewhere: `foreignKey`, `primaryKey`, `unique` and `uniqueKey`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.checks.check import Check, Count, CountedAssertion, Subject, Tally, count_keys, row_text
from lakewright.errors import SpecError
from lakewright.lake.columns import column as column_of
from lakewright.mappings.mapping import Input
from lakewright.spark.functions import functions
from lakewright.spec.models.base import RefersTo, Texts, inconsistent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


_OTHER, _IS_THERE = "__other_{}", "__is_there"


class _KeyCheck(Check):
    """A check that no two rows have equal values in some columns; rows with nulls only are ignored."""

    def count(self, subject: Subject) -> Count:
        """Return the count of keys, and of the rows that repeat one."""
        names = self.columns_needed(subject.column)
        has_value = reduce(or_, (column_of(name).isNotNull() for name in names))
        return count_keys(subject.frame, names, subject.selected & has_value)


class PrimaryKeyCheck(_KeyCheck):
    """Holds if no two rows have equal values in the columns; rows with nulls only are ignored."""

    columns: Texts = Declared(min_length=1, description="Columns of the key.")

    def claim(self, column: str | None) -> str:
        """Return that the columns are a primary key."""
        return f"{', '.join(self.columns)} is a primary key"

    def columns_needed(self, column: str | None) -> tuple[str, ...]:
        """Return the columns."""
        return self.columns


class UniqueCheck(_KeyCheck):
    """Holds if no two rows have the same value in the column; nulls are ignored."""

    def claim(self, column: str | None) -> str:
        """Return that the column is unique."""
        return f"{self.needed(column)} is unique"

    def columns_needed(self, column: str | None) -> tuple[str, ...]:
        """Return the column."""
        return (self.needed(column),)


class ForeignKeyCheck(Check):
    """Holds if each row's key occurs in another relation or mapping, or has a null."""

    relation: Annotated[str | None, RefersTo.RELATION] = Declared(
        default=None, description="Relation that holds the keys."
    )
    mapping: Annotated[Input | None, RefersTo.MAPPING] = Declared(
        default=None, description="Mapping that holds the keys."
    )
    column: str | None = Declared(
        default=None,
        description="Of a column: the other side's column; default: the same name.",
    )
    columns: Texts = Declared(default=(), description="Of rows: the columns of the key.")
    references_: Texts = Declared(
        default=(),
        alias="references",
        description="Of rows: the other side's columns; default: the same names.",
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

    def count(self, subject: Subject) -> Count:
        """Return the count of the rows whose key occurs on the other side; the missing keys are shown."""
        pairs = self.pairs(subject.column)
        own = [column_of(name) for name, _ in pairs]
        frame = reduce(
            lambda rows, each: rows.where(each.isNotNull()), own, subject.frame.where(subject.selected)
        )
        there = self._keys(subject.workspace, pairs).withColumn(_IS_THERE, functions.lit(True))
        same = [column_of(name) == column_of(_OTHER.format(at)) for at, (name, _) in enumerate(pairs)]
        joined = frame.join(there, same, "left")
        is_there = functions.col(_IS_THERE)
        missing = joined.where(is_there.isNull()).select(*own).distinct()
        return Count(
            joined, functions.count_if(is_there.isNotNull()), functions.count_if(is_there.isNull()), missing
        )

    def _keys(self, workspace: Workspace, pairs: list[tuple[str, str]]) -> DataFrame:
        found = (
            workspace.relation(self.relation).read(workspace)
            if self.relation is not None
            else workspace.frame(self.other)
        )
        return found.select(
            *(column_of(other).alias(_OTHER.format(number)) for number, (_, other) in enumerate(pairs))
        ).distinct()


class UniqueKeyAssertion(CountedAssertion):
    """Holds if each key occurs once; null counts as a value."""

    key: Texts = Declared(min_length=1, description="Columns that identify a row.")

    def counts(self, frame: DataFrame) -> list[Count]:
        """Return the count of keys, and of the rows that repeat one."""
        return [count_keys(frame, self.key)]

    def failures(self, tallies: Sequence[Tally]) -> tuple[str, ...]:
        """Return some of the keys that occur more than once."""
        return tuple(
            f"{row_text(self.key, row)} occurs {row[-1]} times"
            for each in tallies
            for row in each.sample.rows
        )

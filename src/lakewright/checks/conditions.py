"""Conditions that each row meets on its own: `expression`, `length`, `notNull`, `range` and `values`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import AfterValidator, model_validator
from pydantic import Field as Declared

from lakewright.checks.check import (
    Check,
    Count,
    CountedAssertion,
    Subject,
    Tally,
    check_not_empty,
    count_rows,
)
from lakewright.lake.columns import column as column_of
from lakewright.spark.functions import functions
from lakewright.spec.models.base import Texts, inconsistent
from lakewright.spec.models.text_marks import SqlText

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_SHOWN_VALUES = 8


class _RowCheck(Check):
    """A check that each row passes or fails on its own."""

    counts_nulls: ClassVar[bool] = False
    """Whether rows without a value in the column are checked, too."""

    @abstractmethod
    def condition(self, subject: Subject) -> Column:
        """Return the condition that a row must meet; null counts as not met."""

    def count(self, subject: Subject) -> Count:
        """Return the count of the rows that meet the condition; samples show the checked column first."""
        selected, name = subject.selected, subject.column
        if not self.counts_nulls:
            selected &= column_of(self.needed(name)).isNotNull()
        return count_rows(subject.frame, self.condition(subject), selected, shown_first=name)


class ExpressionCheck(_RowCheck):
    """Holds if every row meets the condition; a row for which it is null does not."""

    counts_nulls: ClassVar[bool] = True

    expression: Annotated[str, SqlText.CONDITION] = Declared(description="SQL condition, over any columns.")

    def claim(self, column: str | None) -> str:
        """Return the condition."""
        return " ".join(self.expression.split())

    def condition(self, subject: Subject) -> Column:
        """Return the condition."""
        return functions.expr(self.expression)


class LengthCheck(_RowCheck):
    """Holds if each value is null, or its number of characters is within the bounds."""

    minimum: int | None = Declared(default=None, ge=0, description="Smallest number of characters.")
    maximum: int | None = Declared(default=None, ge=0, description="Largest number of characters.")
    length: int | None = Declared(
        default=None, ge=0, description="Exact number of characters, instead of both."
    )

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.minimum is None and self.maximum is None and self.length is None:
            raise inconsistent("a length check needs a `minimum`, a `maximum` or a `length`")
        return self

    def claim(self, column: str | None) -> str:
        """Return the allowed number of characters."""
        least, most = self._bounds()
        if least == most:
            amount = f"{least}"
        elif most is None:
            amount = f"at least {least}"
        else:
            amount = f"at most {most}" if least is None else f"{least} to {most}"
        return f"{self.needed(column)} has {amount} characters"

    def _bounds(self) -> tuple[int | None, int | None]:
        if self.length is not None:
            return self.length, self.length
        return self.minimum, self.maximum

    def condition(self, subject: Subject) -> Column:
        """Return that the length is within its bounds."""
        size = functions.length(column_of(self.needed(subject.column)).cast("string"))
        least, most = self._bounds()
        within = functions.lit(True) if least is None else size >= least
        return within if most is None else within & (size <= most)


class NotNullCheck(_RowCheck):
    """Holds if every row has a value in the column."""

    counts_nulls: ClassVar[bool] = True

    def claim(self, column: str | None) -> str:
        """Return that the column is not null."""
        return f"{self.needed(column)} is not null"

    def condition(self, subject: Subject) -> Column:
        """Return that the value is not null."""
        return column_of(self.needed(subject.column)).isNotNull()


class RangeCheck(_RowCheck):
    """Holds if each value is null, or neither less than `lower` nor greater than `upper`."""

    lower: str = Declared(description="Smallest allowed value.")
    upper: str = Declared(description="Largest allowed value.")

    def claim(self, column: str | None) -> str:
        """Return the allowed range."""
        return f"{self.needed(column)} is between {self.lower} and {self.upper}"

    def condition(self, subject: Subject) -> Column:
        """Return that the value lies between the bounds, which are cast to the column's type."""
        value, (lower, upper) = _typed(subject, self.needed(subject.column), (self.lower, self.upper))
        return value.between(lower, upper)


class ValuesCheck(_RowCheck):
    """Holds if each value is null or in the list."""

    values: Texts = Declared(min_length=1, description="Allowed values.")

    def claim(self, column: str | None) -> str:
        """Return the allowed values."""
        more = ", …" if len(self.values) > _SHOWN_VALUES else ""
        return f"{self.needed(column)} is one of {', '.join(self.values[:_SHOWN_VALUES])}{more}"

    def condition(self, subject: Subject) -> Column:
        """Return that the value is in the list, whose values are cast to the column's type."""
        value, allowed = _typed(subject, self.needed(subject.column), self.values)
        return value.isin(allowed)


def _typed(subject: Subject, name: str, texts: Sequence[str]) -> tuple[Column, list[Column]]:
    """Return a column, and texts as values of its type."""
    value = column_of(name)
    kind = subject.frame.select(value).schema[0].dataType
    return value, [functions.lit(text).cast(kind) for text in texts]


class ExpressionAssertion(CountedAssertion):
    """Holds if every row meets every condition; a condition that is null is not met."""

    expected: Annotated[Texts, AfterValidator(check_not_empty), SqlText.CONDITION] = Declared(
        description="SQL conditions, as in WHERE."
    )

    def counts(self, frame: DataFrame) -> list[Count]:
        """Return the count of the rows that meet each condition."""
        return [count_rows(frame, functions.expr(text)) for text in self.expected]

    def failures(self, tallies: Sequence[Tally]) -> tuple[str, ...]:
        """Return for each condition the number of rows that do not meet it, and some of them."""
        return tuple(
            f"{each.failed} {'row fails' if each.failed == 1 else 'rows fail'} {text}: "
            + "; ".join(each.sample.texts())
            for text, each in zip(self.expected, tallies, strict=True)
            if each.failed
        )

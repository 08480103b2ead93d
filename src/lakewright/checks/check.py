"""The base classes of checks and assertions, and what they count: rows, or keys, that are as stated."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.lake.columns import column as column_of
from lakewright.plan.resource import Resource
from lakewright.spark.functions import functions
from lakewright.spec.models.base import Named, RefersTo
from lakewright.spec.models.text_marks import SqlText

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakewright.workspace.workspace import Workspace


SHOWN_ROWS = 5
LONGEST_VALUE = 80
"""Rows that are shown of failing ones, and characters of each value."""

_ROWS = "__rows"


@dataclass(frozen=True, slots=True)
class Sample:
    """A few rows, their values as text; None is null.

    Attributes:
        left_out: Names of further columns, which are not shown.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, frame: DataFrame, columns: int | None = None) -> Sample:
        """Return some rows of a frame, with its first columns; by default with all."""
        names = tuple(frame.columns)
        shown = names[:columns]
        # Several columns may have the same name.
        plain = frame.toDF(*(f"c{place}" for place in range(len(names))))
        texts = plain.selectExpr(*(f"cast(c{place} as string)" for place in range(len(shown))))
        rows = tuple(tuple(map(_cut, row)) for row in texts.limit(SHOWN_ROWS).collect())
        return cls(shown, rows, left_out=names[len(shown) :])

    def texts(self) -> tuple[str, ...]:
        """Return each row as text."""
        return tuple(row_text(self.columns, row) for row in self.rows)


def row_text(names: Sequence[str], values: Sequence[str | None]) -> str:
    """Return values with the names of their columns; further values are left out.

    Example:
        >>> row_text(["id", "name"], ["1", None])
        'id=1, name=null'
    """
    shown = ("null" if value is None else value for value in values)
    return ", ".join(f"{name}={value}" for name, value in zip(names, shown, strict=False))


def _cut(value: str | None) -> str | None:
    return value if value is None or len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 1]}…"


@dataclass(frozen=True, slots=True)
class Count:
    """Rows, or keys, to be counted.

    Attributes:
        frame: The rows.
        passed: The aggregate that counts those that are as stated.
        failed: The aggregate that counts the others.
        failing: The others; None if they are not known.
    """

    frame: DataFrame
    passed: Column
    failed: Column
    failing: DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many rows, or keys, are as stated, how many are not, and some that are not."""

    passed: int
    failed: int
    sample: Sample


def count_rows(
    frame: DataFrame, condition: Column, selected: Column | None = None, *, shown_first: str | None = None
) -> Count:
    """Return the count of the rows that meet a condition; null counts as not met.

    Args:
        frame: The rows.
        condition: What each must meet.
        selected: Which of them are counted; by default all.
        shown_first: The first column of the failing rows.
    """
    holds = functions.coalesce(condition.cast("boolean"), functions.lit(False))
    within = functions.lit(True) if selected is None else selected
    failing = frame.where(within & ~holds)
    if shown_first is not None:
        others = (name for name in frame.columns if name.lower() != shown_first.lower())
        failing = failing.select(*map(column_of, (shown_first, *others)))
    return Count(frame, functions.count_if(within & holds), functions.count_if(within & ~holds), failing)


def count_keys(frame: DataFrame, names: Sequence[str], selected: Column | None = None) -> Count:
    """Return the count of keys, and of the rows that repeat one; null is a value like any other.

    The failing rows are the repeated keys with a column `rows`, the most frequent first.
    """
    within = functions.lit(True) if selected is None else selected
    key = functions.struct(*(column_of(name).alias(f"k{place}") for place, name in enumerate(names)))
    keys = functions.count_distinct(functions.when(within, key))
    groups = frame.where(within).groupBy(*map(column_of, names)).agg(functions.count("*").alias(_ROWS))
    repeated = groups.where(f"{_ROWS} > 1").orderBy(functions.desc(_ROWS)).toDF(*names, "rows")
    return Count(frame, keys, functions.count_if(within) - keys, repeated)


def tallied(counts: Sequence[Count], columns: int | None = None) -> list[Tally]:
    """Return the results of counts over one frame, in one pass; failing rows are read only if there are any.

    Args:
        counts: What to count.
        columns: How many columns samples have; by default all.
    """
    if not counts:
        return []
    aggregates = (each for count in counts for each in (count.passed, count.failed))
    (row,) = counts[0].frame.agg(*aggregates).collect()
    return [
        Tally(passed, failed, Sample.of(count.failing, columns) if failed and count.failing else Sample())
        for count, passed, failed in zip(counts, row[::2], row[1::2], strict=True)
    ]


class CheckStatus(StrEnum):
    """The result of a check."""

    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    ERROR = "ERROR"
    NOT_RUN = "NOT_RUN"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check and its result.

    Attributes:
        label: The condition in a few words.
        passed: Number of rows, or keys, that meet the condition; None if nothing was counted.
        failed: Number of those that do not.
        message: Values that the check's query returned, or the error that it raised.
        sample: Some of the rows that fail.
    """

    kind: str
    label: str
    column: str | None = None
    description: str | None = None
    status: CheckStatus = CheckStatus.NOT_RUN
    passed: int | None = None
    failed: int | None = None
    message: str | None = None
    sample: Sample = field(default_factory=Sample)

    @property
    def is_bad(self) -> bool:
        """Whether the condition does not hold, or could not be evaluated."""
        return self.status in (CheckStatus.FAILED, CheckStatus.ERROR)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a check applies to.

    Attributes:
        frame: The rows.
        selected: Which of them are checked.
        column: The column that the check is declared for, if any.
    """

    workspace: Workspace
    frame: DataFrame
    selected: Column
    column: str | None = None


class Answer(NamedTuple):
    """What the query of a check says: whether the check holds, and further values."""

    holds: bool
    message: str | None


class Check(Named):
    """A condition on rows or on a column."""

    description: str | None = Declared(default=None, description="Description for people.")
    filter: Annotated[str | None, SqlText.CONDITION] = Declared(
        default=None, description="SQL condition that selects the rows to check."
    )

    @abstractmethod
    def claim(self, column: str | None) -> str:
        """Return the condition in a few words, with the name of the column if it applies to one."""

    @abstractmethod
    def count(self, subject: Subject) -> Count | Answer:
        """Return the count of rows or keys that meet the condition, or the answer of a query."""

    def label(self, column: str | None) -> str:
        """Return the condition, and the filter of rows if there is one."""
        claim = self.claim(column)
        return claim if self.filter is None else f"{claim}, where {' '.join(self.filter.split())}"

    def columns_needed(self, column: str | None) -> tuple[str, ...]:
        """Return the columns of the subject without which the check cannot run."""
        return () if column is None else (column,)

    def needed(self, column: str | None) -> str:
        """Return the column.

        Raises:
            SpecError: The check is not declared for a column.
        """
        if column is None:
            raise SpecError.of(
                f"a check of kind {self.kind} applies to one column",
                remedy="Declare it below an entry of `columns`.",
            )
        return column


def check_not_empty(expected: tuple[str, ...]) -> tuple[str, ...]:
    """Return what an assertion expects, which would hold always if it were nothing.

    Raises:
        ValueError: It expects nothing.
    """
    if not expected:
        raise ValueError(
            "it is empty, so that the assertion checks nothing; write at least one, or remove it"
        )
    return expected


class Assertion(Named):
    """A condition that must hold."""

    description: str | None = Declared(default=None, description="Description for people.")

    @property
    def label(self) -> str:
        """The assertion as messages name it."""
        return f"{self.name} ({self.description})" if self.description else self.name

    @abstractmethod
    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that checking reads."""

    @abstractmethod
    def check(self, workspace: Workspace) -> tuple[str, ...]:
        """Return a description of each condition that does not hold; an error while checking is raised."""


class MappingAssertion(Assertion):
    """An assertion about one mapping."""

    mapping: Annotated[str, RefersTo.MAPPING] = Declared(description="Name of the mapping.")

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the mapping reads."""
        return workspace.required(self.mapping)


class CountedAssertion(MappingAssertion):
    """An assertion for which rows, or keys, of its mapping are counted."""

    @abstractmethod
    def counts(self, frame: DataFrame) -> list[Count]:
        """Return what to count in the mapping's rows."""

    @abstractmethod
    def failures(self, tallies: Sequence[Tally]) -> tuple[str, ...]:
        """Return a description of each condition that does not hold, by what was counted."""

    def check(self, workspace: Workspace) -> tuple[str, ...]:
        """Return a description of each condition that does not hold, counted in one pass."""
        return self.failures(tallied(self.counts(workspace.frame(self.mapping))))

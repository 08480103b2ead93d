"""The base classes of checks and assertions, and the result of a check."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field as Declared

from lakewright.checks.count import Count, Sample, Tally, tallied
from lakewright.errors import SpecError
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import Named, Reference
from lakewright.spec.models.text_marks import SqlText

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakewright.workspace.workspace import Workspace


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

    mapping: str = Declared(description="Name of the mapping.")

    def references(self) -> Iterable[Reference]:
        """Return the mapping."""
        return [Reference("mapping", self.mapping, ("mapping",))]

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

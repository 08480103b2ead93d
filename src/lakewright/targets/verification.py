"""Targets that check and measure what was built: `validate`, `verify`, `compare` and `measure`."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator
from pydantic import Field as Declared

from lakewright.checks.check import Assertion
from lakewright.checks.columns import difference_texts
from lakewright.checks.run import AssertionRun
from lakewright.errors import TargetError, VerificationError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.columns import conform, fields_of
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.status import Status
from lakewright.schema.diff import DiffRules
from lakewright.schema.shape import comparable_sql
from lakewright.schema.sql import name_sql
from lakewright.spec.models.base import KindOf, Named, NamedMap, Reference, RefersTo, from_text
from lakewright.spec.models.fields import Field
from lakewright.spec.models.text_marks import SqlText
from lakewright.spec.suggestions import one_of
from lakewright.targets.context import Context
from lakewright.targets.datasets import Dataset
from lakewright.targets.target import Target
from lakewright.workspace.query import query_references, query_requires, run_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


class ErrorMode(StrEnum):
    """Whether a failed assertion skips the remaining ones, and whether it fails the target."""

    FAIL_FAST = "failFast"
    FAIL_AT_END = "failAtEnd"
    FAIL_NEVER = "failNever"


_REMEDY = Phrase(
    Command("sql"), " shows what the assertion reads. Correct that, or what it expects, then run again."
)


def _with_names(declared: Any) -> Any:
    if isinstance(declared, (list, tuple)):
        return {f"assertion {index}": each for index, each in enumerate(declared, 1)}
    return declared


ErrorModeText = Annotated[ErrorMode, from_text(one_of(ErrorMode, "error mode"))]
Assertions = Annotated[
    NamedMap[Annotated[Assertion, KindOf("assertion")]], BeforeValidator(_with_names), RefersTo.INSIDE
]


class AssertionTarget(Target):
    """Checks assertions in the order of their declaration."""

    feeds_others: ClassVar[bool] = False

    assertions: Assertions = Declared(default_factory=dict, description="Assertions to check, by name.")
    mode: ErrorModeText = Declared(
        default=ErrorMode.FAIL_AT_END,
        description="Whether a failed assertion stops the target, fails it at the end, or only warns.",
    )

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that the assertions read."""
        return frozenset().union(*(each.requires(workspace) for each in self.assertions.values()))

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Check the assertions.

        Raises:
            VerificationError: An assertion fails, and the mode is not failNever. An error while checking is
                raised in every mode.
        """
        run = AssertionRun(context.workspace, self.assertions.values())
        failures: dict[str, tuple[str, ...]] = {}
        for number, (name, assertion) in enumerate(self.assertions.items()):
            with self.located(context.workspace, assertion.label, ("assertions", name, number)):
                found = run.failures(assertion)
            if found:
                failures[assertion.label] = found
                if self.mode is ErrorMode.FAIL_FAST:
                    break
        metrics = self._metrics(failures)
        if not failures:
            return Outcome(metrics=metrics)
        error = VerificationError(self._message(failures), remedy=_REMEDY, details={"failures": failures})
        if self.mode is not ErrorMode.FAIL_NEVER:
            raise error
        return Outcome(Status.SUCCESS_WITH_ERRORS, metrics=metrics, error=error.as_fault())

    def _message(self, failures: Mapping[str, tuple[str, ...]]) -> str:
        count = len(failures)
        total = len(self.assertions)
        listed = "; ".join(_texts(failures))
        return (
            f"{self.label}: {count} of {total} {'assertion' if total == 1 else 'assertions'} failed: {listed}"
        )

    def _metrics(self, failures: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
        return {"assertions": len(self.assertions), "assertions_failed": len(failures)}


def _texts(failures: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    for label, texts in failures.items():
        yield f"{label}: {'; '.join(texts)}"


class ValidateTarget(AssertionTarget):
    """Checks assertions in VALIDATE, and by default stops at the first one that fails."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.VALIDATE})

    mode: ErrorModeText = Declared(
        default=ErrorMode.FAIL_FAST,
        description="Whether a failed assertion stops the target, fails it at the end, or only warns.",
    )


class VerifyTarget(AssertionTarget):
    """Checks assertions in VERIFY, and by default all of them even if one fails."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.VERIFY})


_SHOWN = 10


class CompareTarget(Target):
    """Compares two datasets in VERIFY: each row must occur equally often in both, in any order."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.VERIFY})
    feeds_others: ClassVar[bool] = False

    actual: Annotated[Dataset, KindOf("dataset"), RefersTo.INSIDE] = Declared(description="Dataset to check.")
    expected: Annotated[Dataset, KindOf("dataset"), RefersTo.INSIDE] = Declared(
        description="Dataset with the expected rows."
    )
    compare_schema: bool = Declared(default=False, description="Compare columns too, by the rules below.")
    ignore_types: bool = Declared(default=False, description="Compare column names only.")
    ignore_nullability: bool = Declared(default=False, description="Ignore whether columns may be null.")
    ignore_case: bool = Declared(default=False, description="Ignore the case of column names.")
    ignore_order: bool = Declared(default=False, description="Ignore the order of columns.")

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that the datasets read."""
        return self.actual.requires(workspace) | self.expected.requires(workspace)

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Compare the datasets.

        Raises:
            VerificationError: The datasets differ; the message shows some of the rows.
        """
        actual, expected = (side.read(context.workspace) for side in (self.actual, self.expected))
        differences = self._schema_differences(actual, expected) or _row_differences(actual, expected)
        if differences:
            raise VerificationError(
                f"{self.label}: {'; '.join(differences)}", details={"differences": list(differences)}
            )
        return Outcome()

    def _schema_differences(self, actual: DataFrame, expected: DataFrame) -> tuple[str, ...]:
        """Return the differences of columns; only their names count unless `compareSchema` is set."""
        rules = DiffRules(
            types=self.compare_schema and not self.ignore_types,
            nullability=self.compare_schema and not (self.ignore_nullability or self.ignore_types),
            case=self.compare_schema and not self.ignore_case,
            order=self.compare_schema and not self.ignore_order,
        )
        return difference_texts(fields_of(actual.schema), fields_of(expected.schema), rules)


def _row_differences(actual: DataFrame, expected: DataFrame) -> tuple[str, ...]:
    # A value that does not fit must not become a null that equals an expected one.
    fields = fields_of(expected.schema)
    actual = _comparable(conform(actual, fields, is_strict=True), fields)
    expected = _comparable(expected, fields)
    surplus, missing = actual.exceptAll(expected), expected.exceptAll(actual)
    return tuple(
        f"{word}: {shown}"
        for word, rows in (("unexpected", surplus), ("missing", missing))
        if (shown := _sample(rows))
    )


def _comparable(rows: DataFrame, fields: Sequence[Field]) -> DataFrame:
    return rows.selectExpr(
        *(f"{comparable_sql(name_sql(each.name), each.type)} as {name_sql(each.name)}" for each in fields)
    )


def _sample(rows: DataFrame) -> str:
    found = rows.limit(_SHOWN + 1).collect()
    shown = ", ".join(str(tuple(row)) for row in found[:_SHOWN])
    return f"{shown}, …" if len(found) > _SHOWN else shown


MOST_ROWS = 1_000
"""Largest number of rows that a measure may return, as every row becomes a metric of the run."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A number, with labels that distinguish it from others of the same name."""

    name: str
    value: int | float | None
    labels: Mapping[str, str] = field(default_factory=dict)


class Measure(Named):
    """A measure that returns metrics."""

    description: str | None = Declared(default=None, description="Description for people.")

    @abstractmethod
    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that taking the measure reads."""

    @abstractmethod
    def take(self, workspace: Workspace) -> tuple[Measurement, ...]:
        """Return the measured numbers."""


class SqlMeasure(Measure):
    """Returns a metric for each numeric column of each row; other columns are labels.

    A label that is null is `null`.
    """

    query: Annotated[str, SqlText.QUERY] = Declared(description="Query; its tables are mappings.")

    def references(self) -> Iterable[Reference]:
        """Return the mappings in the query, if it contains no expression."""
        return query_references(self.query, "query")

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the query reads."""
        return query_requires(workspace, self.query)

    def take(self, workspace: Workspace) -> tuple[Measurement, ...]:
        """Return the numbers of all rows.

        Raises:
            TargetError: The query returns too many rows, or several columns of one name.
        """
        frame = run_query(workspace, self.query)
        doubled = [name for name, count in Counter(frame.columns).items() if count > 1]
        if doubled:
            raise TargetError(
                f"measure {self.name!r}: the query has several columns {doubled[0]}",
                remedy="Give each a name of its own, with AS.",
            )
        rows = frame.limit(MOST_ROWS + 1).collect()
        if len(rows) > MOST_ROWS:
            raise TargetError(
                f"measure {self.name!r} returns more than {MOST_ROWS} rows",
                remedy="Group by columns with fewer distinct values.",
            )
        numeric = {name for name, kind in frame.dtypes if _is_number(kind)}
        return tuple(found for row in rows for found in _measurements(row.asDict(), numeric))


def _is_number(kind: str) -> bool:
    return kind in {"tinyint", "smallint", "int", "bigint", "float", "double", "boolean"} or kind.startswith(
        "decimal"
    )


def _measurements(row: dict[str, Any], numeric: set[str]) -> Iterable[Measurement]:
    labels = {
        name: "null" if value is None else str(value) for name, value in row.items() if name not in numeric
    }
    for name, value in row.items():
        if name in numeric:
            yield Measurement(name, _number(value), labels)


def _number(value: Any) -> int | float | None:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value if isinstance(value, (int, float)) and isfinite(value) else None


class MeasureTarget(Target):
    """Takes measures in VERIFY; each measure returns metrics."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset({Phase.VERIFY})
    feeds_others: ClassVar[bool] = False

    measures: Annotated[NamedMap[Annotated[Measure, KindOf("measure")]], RefersTo.INSIDE] = Declared(
        description="Measures to take, by name."
    )

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that the measures read."""
        return frozenset().union(*(measure.requires(workspace) for measure in self.measures.values()))

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Take all measures."""
        taken: list[tuple[str, Measurement]] = []
        for name, measure in self.measures.items():
            with self.located(context.workspace, f"measure {name!r}", ("measures", name)):
                taken += [(name, found) for found in measure.take(context.workspace)]
        return Outcome(metrics=_metrics(taken))


def _metrics(taken: list[tuple[str, Measurement]]) -> dict[str, Any]:
    """Return a number for a metric that occurs once and has no labels, otherwise a list with labels."""
    metrics: dict[str, Any] = {}
    for name in dict.fromkeys(found.name for _, found in taken):
        same = [(measure, found) for measure, found in taken if found.name == name]
        if len(same) == 1 and not same[0][1].labels:
            metrics[name] = same[0][1].value
        else:
            metrics[name] = [
                {"value": found.value, "labels": {"measure": measure, **found.labels}}
                for measure, found in same
            ]
    return metrics

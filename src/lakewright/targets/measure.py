"""The `measure` target and its measures: numbers of the build's results, recorded as metrics of the run."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field as Declared

from lakewright.errors import TargetError
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import KindOf, Named, NamedMap, Reference
from lakewright.spec.models.text_marks import SqlText
from lakewright.targets.context import Context
from lakewright.targets.target import Target
from lakewright.workspace.query import query_references, query_requires, run_query

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["Measure", "MeasureTarget", "SqlMeasure"]

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
    """Returns a metric for each numeric column of each row; the other columns are its labels.

    A label that is null is `null`; a number that is null, NaN or infinite is no number, as JSON has it.
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

    measures: NamedMap[Annotated[Measure, KindOf("measure")]] = Declared(
        description="Measures to take, by name."
    )

    def references(self) -> Iterable[Reference]:
        """Return what the measures refer to."""
        return [
            each
            for name, measure in self.measures.items()
            for each in measure.references_below("measures", name)
        ]

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

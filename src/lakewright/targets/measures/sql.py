"""The `sql` measure: numbers that a query returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field as Declared

from lakewright.errors import TargetError
from lakewright.plan.resource import Resource
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import Reference
from lakewright.spec.models.text_marks import SqlText
from lakewright.targets.measures.measure import Measure, Measurement
from lakewright.workspace.query import mapping_names, query_requires, run_query

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["SqlMeasure"]

MOST_ROWS = 1_000
"""Largest number of rows that a measure may return, as every row becomes a metric of the run."""


class SqlMeasure(Measure):
    """Returns a metric for each numeric column of each row; the other columns are its labels.

    A label that is null is `null`; a number that is null, NaN or infinite is no number, as JSON has it.
    """

    query: Annotated[str, SqlText.QUERY] = Declared(description="Query; its tables are mappings.")

    def references(self) -> Iterable[Reference]:
        """Return the mappings in the query, if it contains no expression."""
        if has_expression(self.query):
            return []
        return [Reference("mapping", name, ("query",)) for name in mapping_names(self.query)]

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

"""The `sql` check: a query returns whether, or for how many rows, a condition holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from pydantic import Field as Declared

from lakewright.documentation.checks.check import Count, QueryCheck
from lakewright.errors import SpecError
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import Reference
from lakewright.spec.models.text_marks import SqlText
from lakewright.spec.words import counted
from lakewright.workspace.query import mapping_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["SqlCheck"]

THIS = "__this__"
_LONGEST = 80


class SqlCheck(QueryCheck):
    """Holds if the query says so; its tables are mappings, and `__this__` is the relation or mapping itself.

    The query returns either one row with a boolean column `success`, whose other columns are shown, or rows
    of two columns: a boolean, and the number of rows for which the condition has that value.
    """

    query: Annotated[str, SqlText.QUERY] = Declared(description="Query to run.")

    def references(self) -> Iterable[Reference]:
        """Return the mappings in the query, if it contains no expression."""
        if has_expression(self.query):
            return []
        return [Reference("mapping", name, ("query",)) for name in self._mappings()]

    def _mappings(self) -> list[str]:
        return [name for name in mapping_names(self.query) if name.lower() != THIS]

    def claim(self, column: str | None) -> str:
        """Return the description, or else the start of the query."""
        text = self.description or " ".join(self.query.split())
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

    def count(self, column: str | None, frame: DataFrame, workspace: Workspace) -> Count:
        """Return the result of the query.

        Raises:
            SpecError: The result has neither of the two forms.
        """
        with workspace.views(self._mappings()) as session:
            frame.createOrReplaceTempView(THIS)
            found = session.sql(self.query)
        names = [name.lower() for name in found.columns]
        if "success" in names:
            return _one_row(found, names.index("success"))
        if len(names) != 2:  # a boolean and a number
            raise SpecError.of(
                f"the query of the check returns {counted(len(names), 'column')}",
                remedy="Return a column `success`, or two columns: a boolean and a number of rows.",
            )
        totals = {True: 0, False: 0}
        for holds, number in found.collect():
            totals[bool(holds)] += int(number or 0)
        return Count(passed=totals[True], failed=totals[False])


def _one_row(found: DataFrame, position: int) -> Count:
    rows = found.limit(2).collect()
    if len(rows) != 1:
        raise SpecError.of(
            "the query of the check does not return exactly one row", remedy="Aggregate without GROUP BY."
        )
    values = [
        f"{name}={value}"
        for index, (name, value) in enumerate(zip(found.columns, rows[0], strict=True))
        if index != position
    ]
    return Count(message=", ".join(values) or None, holds=bool(rows[0][position]))

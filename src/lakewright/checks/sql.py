"""Queries that say whether a condition holds: the `sql` check, and the `sql` assertion with expected rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.checks.check import Answer, Assertion, Check, Subject
from lakewright.checks.count import Count
from lakewright.checks.expected_rows import difference, is_nested, row_of
from lakewright.errors import SpecError
from lakewright.plan.resource import Resource
from lakewright.spark.functions import functions
from lakewright.spec.models.base import Listed, Model, Reference
from lakewright.spec.models.text_marks import SqlText
from lakewright.spec.words import counted
from lakewright.workspace.query import mapping_names, query_references, query_requires, run_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


THIS = "__this__"
_LONGEST = 80

_MORE = 6
"""Rows that are read beyond the expected ones: five are shown, and one more shows that there are others."""


class SqlCheck(Check):
    """Holds if the query says so; its tables are mappings, and `__this__` is the relation or mapping itself.

    The query returns one row with a boolean column `success`, or rows of a boolean and the number of rows
    for which the condition has that value.
    """

    query: Annotated[str, SqlText.QUERY] = Declared(description="Query to run.")

    def references(self) -> Iterable[Reference]:
        """Return the mappings in the query, if it contains no expression."""
        return [each for each in query_references(self.query, "query") if each.name.lower() != THIS]

    def claim(self, column: str | None) -> str:
        """Return the description, or else the start of the query."""
        text = self.description or " ".join(self.query.split())
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

    def count(self, subject: Subject) -> Count | Answer:
        """Return the result of the query.

        Raises:
            SpecError: The result has neither of the two forms.
        """
        mappings = [name for name in mapping_names(self.query) if name.lower() != THIS]
        with subject.workspace.views(mappings) as session:
            subject.frame.where(subject.selected).createOrReplaceTempView(THIS)
            found = session.sql(self.query)
        names = [name.lower() for name in found.columns]
        if "success" in names:
            return _one_row(found, names.index("success"))
        if len(names) != 2:  # a boolean and a number
            raise SpecError.of(
                f"the query of the check returns {counted(len(names), 'column')}",
                remedy="Return a column `success`, or two columns: a boolean and a number of rows.",
            )
        counted_rows = found.toDF("holds", "number").selectExpr(
            "coalesce(cast(holds as boolean), false) as holds", "cast(number as bigint) as number"
        )
        total = "coalesce(sum(number) filter (where {}), 0)"
        passed, failed = (functions.expr(total.format(each)) for each in ("holds", "not holds"))
        return Count(counted_rows, passed, failed)


def _one_row(found: DataFrame, position: int) -> Answer:
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
    return Answer(bool(rows[0][position]), ", ".join(values) or None)


class SqlTest(Model):
    """A query and its expected rows: lists of values or single values, in any order."""

    query: Annotated[str, SqlText.QUERY] = Declared(description="Query; its tables are mappings.")
    expected: Listed[Any] = Declared(default=(), description="Rows that the query must return.")


class SqlAssertion(Assertion):
    """Holds if each query returns exactly the expected rows, compared by the types of their columns.

    Text equals only the same text, numbers are equal by value: 2, 2.0 and 2.00. A list, struct or map is
    written as such, or as JSON.
    """

    query: Annotated[str | None, SqlText.QUERY] = Declared(
        default=None, description="Query; its tables are mappings."
    )
    expected: Listed[Any] = Declared(
        default=(), description="Rows that the query must return; none for an empty result."
    )
    tests: Listed[SqlTest] = Declared(default=(), description="More queries, each with its expected rows.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.query is None and not self.tests:
            raise ValueError("a sql assertion needs a `query` or `tests`")
        return self

    def all_tests(self) -> tuple[SqlTest, ...]:
        """Return the test in `query`, if one is declared, and those in `tests`."""
        own = () if self.query is None else (SqlTest(query=self.query, expected=self.expected),)
        return (*own, *self.tests)

    def references(self) -> Iterable[Reference]:
        """Return the mappings in the queries that contain no expression."""
        return [each for test in self.all_tests() for each in query_references(test.query)]

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the queries read."""
        return frozenset().union(*(query_requires(workspace, test.query) for test in self.all_tests()))

    def check(self, workspace: Workspace) -> tuple[str, ...]:
        """Return for each query how its rows differ from the expected ones."""
        return tuple(
            failure for test in self.all_tests() if (failure := _failure(workspace, test)) is not None
        )


def _failure(workspace: Workspace, test: SqlTest) -> str | None:
    from lakewright.lake.columns import fields_of
    from lakewright.transform.row_values import json_sql, parse_values

    frame = run_query(workspace, test.query)
    text, fields = " ".join(test.query.split()), fields_of(frame.schema)
    expected = [row_of(record, fields, text) for record in test.expected]
    # Several columns may have the same name.
    plain = frame.toDF(*(f"c{index}" for index in range(len(fields))))
    kinds = [each.dataType for each in plain.schema.fields]
    nested = [is_nested(field.type) for field in fields]
    shown = plain.selectExpr(
        *(
            json_sql(name, kind) if has_inside else f"cast({name} as string)"
            for name, kind, has_inside in zip(plain.columns, kinds, nested, strict=True)
        )
    )
    actual = [
        tuple(
            parse_values(value, kind) if has_inside and value is not None else value
            for value, kind, has_inside in zip(row, kinds, nested, strict=True)
        )
        for row in shown.limit(len(expected) + _MORE).collect()
    ]
    found = difference(actual, expected, [field.type for field in fields])
    return found and f"{text}: {found}"

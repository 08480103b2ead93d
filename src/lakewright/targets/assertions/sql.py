"""The `sql` assertion: checks that queries return the expected rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.plan.resource import Resource
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import Listed, Model, Reference
from lakewright.spec.models.text_marks import SqlText
from lakewright.targets.assertions.assertion import Assertion, Verdict
from lakewright.targets.assertions.comparison import difference, is_nested, row_of
from lakewright.workspace.query import mapping_names, query_requires, run_query

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["SqlAssertion", "SqlTest"]

_MORE = 6
"""Rows that are read beyond the expected ones: five are shown, and one more tells that there are others."""


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
        texts = [test.query for test in self.all_tests() if not has_expression(test.query)]
        return [Reference("mapping", name) for text in texts for name in mapping_names(text)]

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the queries read."""
        return frozenset().union(*(query_requires(workspace, test.query) for test in self.all_tests()))

    def check(self, workspace: Workspace) -> Verdict:
        """Return for each query how its rows differ from the expected ones."""
        return Verdict(
            tuple(failure for test in self.all_tests() if (failure := _failure(workspace, test)) is not None)
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

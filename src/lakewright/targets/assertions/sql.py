"""The `sql` assertion: checks that queries return the expected rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.plan.resource import Resource
from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.models.base import Listed, Model, Reference
from lakewright.spec.models.text_marks import SqlText
from lakewright.targets.assertions.assertion import Assertion, Verdict
from lakewright.workspace.query import mapping_names, query_requires, run_query

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["SqlAssertion", "SqlTest"]

_SHOWN = 5
Row: TypeAlias = tuple[str | None, ...]

LONGEST = 40
"""Digits of a number that is written without an exponent."""


class SqlTest(Model):
    """A query and its expected rows: lists of values or single values, in any order."""

    query: Annotated[str, SqlText.QUERY] = Declared(description="Query; its tables are mappings.")
    expected: Listed[Any] = Declared(default=(), description="Rows that the query must return.")


class SqlAssertion(Assertion):
    """Holds if each query returns exactly the expected rows."""

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
    from lakewright.lake.columns import column

    frame = run_query(workspace, test.query)
    expected = [_row(record, frame.columns) for record in test.expected]
    texts = frame.toDF(*(f"c{index}" for index in range(len(frame.columns))))
    texts = texts.select(*(column(name).cast("string") for name in texts.columns))
    actual = [tuple(row) for row in texts.limit(len(expected) + _SHOWN + 1).collect()]
    surplus = Counter(map(_comparable, actual)) - Counter(map(_comparable, expected))
    missing = Counter(map(_comparable, expected)) - Counter(map(_comparable, actual))
    if not surplus and not missing:
        return None
    parts = [_sample("unexpected", surplus), _sample("missing", missing)]
    return f"{' '.join(test.query.split())}: {'; '.join(part for part in parts if part)}"


def _row(record: Any, columns: Sequence[str]) -> Row:
    if isinstance(record, Mapping):
        values = {name.lower(): value for name, value in record.items()}
        return tuple(_text(values.get(name.lower())) for name in columns)
    return tuple(_text(value) for value in (record if isinstance(record, (list, tuple)) else [record]))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _comparable(row: Row) -> Row:
    """Return the row with numbers in canonical form, so that 2, 2.0 and 2.00 are equal."""
    return tuple(None if value is None else _canonical(value) for value in row)


def _canonical(text: str) -> str:
    """Return a number without zeros at the end of its fraction; other texts as they are.

    Example:
        >>> _canonical("1090"), _canonical("2.50"), _canonical("1e300"), _canonical("x")
        ('1090', '2.5', '1E+300', 'x')
    """
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    if not number.is_finite():
        return text
    is_short = abs(number.adjusted()) < LONGEST
    return format(number.normalize(), "f") if is_short else str(number.normalize())


def _sample(word: str, rows: Counter[Row]) -> str:
    if not rows:
        return ""
    shown = ", ".join(
        "(" + ", ".join("null" if v is None else v for v in row) + ")" for row in list(rows)[:_SHOWN]
    )
    return f"{word} {shown}{', …' if len(rows) > _SHOWN else ''}"

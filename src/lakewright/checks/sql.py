"""Queries that say whether a condition holds: the `sql` check, and the `sql` assertion with expected rows."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.checks.check import Answer, Assertion, Check, Count, Subject
from lakewright.errors import SpecError
from lakewright.plan.resource import Resource
from lakewright.schema.shape import NESTED
from lakewright.schema.types import Array, Chars, MapOf, Struct, Type
from lakewright.schema.types import Decimal as DecimalType
from lakewright.spark.functions import functions
from lakewright.spec.expressions.values import parse_datetime, parse_timestamp
from lakewright.spec.models.base import Listed, Model, Reference
from lakewright.spec.models.fields import Field
from lakewright.spec.models.text_marks import SqlText
from lakewright.spec.suggestions import suggestion
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

    The query returns one row with a boolean column `success`, or rows of a boolean and a number of rows.
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

    Text equals only the same text, numbers are equal by value. A list, struct or map is written as such, or
    as JSON.
    """

    query: Annotated[str | None, SqlText.QUERY] = Declared(
        default=None, description="Query; its tables are mappings."
    )
    expected: Listed[Any] = Declared(default=(), description="Rows that the query must return.")
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
    from lakewright.transform.row_values import is_nested, json_sql, read_rows

    frame = run_query(workspace, test.query)
    text, fields = " ".join(test.query.split()), fields_of(frame.schema)
    expected = [row_of(record, fields, text) for record in test.expected]
    actual = read_rows(
        frame.limit(len(expected) + _MORE),
        lambda name, kind: json_sql(name, kind) if is_nested(kind) else f"cast({name} as string)",
    )
    found = difference(actual, expected, [field.type for field in fields])
    return found and f"{text}: {found}"


Row: TypeAlias = tuple[Any, ...]
"""Values in the order of the columns."""

_SHOWN = 5

LONGEST = 40
"""Digits of a number that is written without an exponent."""

_FINER = re.compile(r"\.\d{6}0*[1-9]")
"""The fraction of a time that is finer than a microsecond."""

_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double"})


def row_of(record: Any, fields: Sequence[Field], what: str) -> Row:
    """Return an expected row: a list of values, a map of them by column, or the only value.

    Raises:
        SpecError: The record names a column that the query lacks, or has another number of values.
    """
    names = [field.name for field in fields]
    if isinstance(record, Mapping) and not (len(fields) == 1 and isinstance(fields[0].type, MapOf | Struct)):
        values = {name.lower(): value for name, value in record.items()}
        for name in record:
            if name.lower() not in map(str.lower, names):
                raise SpecError.of(
                    f"{what}: a row of `expected` has {name!r}, which is no column of the query",
                    remedy=suggestion(name, names),
                )
        return tuple(values.get(name.lower()) for name in names)
    row = (
        tuple(record)
        if isinstance(record, (list, tuple)) and not _is_only_value(record, fields)
        else (record,)
    )
    if len(row) != len(fields):
        raise SpecError.of(
            f"{what}: a row of `expected` has {counted(len(row), 'value')}, but the query has "
            f"{counted(len(fields), 'column')}: "
            f"{', '.join(names)}"
        )
    return row


def _is_only_value(record: Sequence[Any], fields: Sequence[Field]) -> bool:
    """Return whether a list is the value of the only column, not a row with it."""
    if len(fields) != 1 or not isinstance(fields[0].type, Array):
        return False
    is_row = len(record) == 1 and isinstance(record[0], list | tuple)
    return not is_row or isinstance(fields[0].type.element, Array)


def difference(actual: Sequence[Row], expected: Sequence[Row], kinds: Sequence[Type]) -> str | None:
    """Return how rows differ from the expected ones, in any order; None if they don't.

    Args:
        actual: The rows of the query: texts, or lists and maps for nested types.
        expected: The rows as a project writes them.
        kinds: The types of the columns.
    """
    found, wanted = (_counted(rows, kinds) for rows in (actual, expected))
    parts = [_sample("unexpected", found - wanted), _sample("missing", wanted - found)]
    return "; ".join(part for part in parts if part) or None


def _counted(rows: Sequence[Row], kinds: Sequence[Type]) -> Counter[tuple[Hashable, ...]]:
    return Counter(tuple(map(_comparable, row, kinds)) for row in rows)


def _comparable(value: Any, kind: Type) -> Hashable:
    """Return what is equal for equal values of a type."""
    if value is None:
        return None
    if isinstance(kind, NESTED):
        return _nested(value, kind)
    is_plain = isinstance(value, str | Decimal)
    text = str(value) if is_plain else json.dumps(value, default=str, ensure_ascii=False)
    if isinstance(kind, DecimalType) or kind.ddl in _NUMBERS:
        return _canonical(text)
    if kind.ddl == "boolean":
        return text.lower()
    if kind.ddl.startswith("timestamp"):
        return _time(text, has_zone=kind.ddl == "timestamp")
    return _visible(text) if isinstance(kind, Chars) or kind.ddl == "string" else text


def _nested(value: Any, kind: Array | MapOf | Struct) -> str:
    if isinstance(value, str):
        try:
            value = json.loads(value, parse_float=str, parse_int=str)
        except ValueError:
            return str(value)
    if isinstance(kind, Array) and isinstance(value, list | tuple):
        return "[" + ", ".join(_shown(_comparable(each, kind.element)) for each in value) + "]"
    if isinstance(kind, Struct) and isinstance(value, list | tuple):
        value = {field.name: each for field, each in zip(kind.fields, value, strict=False)}
    if isinstance(kind, Array) or not isinstance(value, Mapping):
        return str(value)
    pairs = _fields(value, kind) if isinstance(kind, Struct) else _entries(value, kind)
    return "{" + ", ".join(f"{name}: {_shown(each)}" for name, each in pairs) + "}"


def _fields(value: Mapping[str, Any], kind: Struct) -> list[tuple[str, Hashable]]:
    given = {str(name).lower(): each for name, each in value.items()}
    found = [
        (field.name, _comparable(given.pop(field.name.lower(), None), field.type)) for field in kind.fields
    ]
    return [*found, *((name, str(each)) for name, each in given.items())]


def _entries(value: Mapping[str, Any], kind: MapOf) -> list[tuple[str, Hashable]]:
    pairs = ((_shown(_comparable(name, kind.key)), each) for name, each in value.items())
    return sorted(((name, _comparable(each, kind.value)) for name, each in pairs), key=lambda pair: pair[0])


def _time(text: str, *, has_zone: bool) -> str:
    """Return a time as Spark writes it in UTC; a text that is no time, or is finer, as it is.

    Example:
        >>> _time("2024-05-01T10:00:00+02:00", has_zone=True), _time("2024-05-01T10:00Z", has_zone=False)
        ('2024-05-01 08:00:00', '2024-05-01 10:00:00')
    """
    if _FINER.search(text):
        return text
    try:
        found = parse_timestamp(text) if has_zone else parse_datetime(text.strip().removesuffix("Z"))
    except (ValueError, OverflowError):
        return text
    shown = found.replace(tzinfo=None).isoformat(" ")
    return shown.rstrip("0") if "." in shown else shown


def _visible(text: str) -> str:
    """Return a text in quotes if it could be taken for something else."""
    return f"'{text}'" if text in ("", "null") or text != text.strip() else text


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
    if not number:
        return "0"  # also of -0.0
    is_short = abs(number.adjusted()) < LONGEST
    return format(number.normalize(), "f") if is_short else str(number.normalize())


def _sample(word: str, rows: Counter[tuple[Hashable, ...]]) -> str:
    if not rows:
        return ""
    shown = ", ".join("(" + ", ".join(map(_shown, row)) + ")" for row in list(rows)[:_SHOWN])
    return f"{word} {shown}{', …' if len(rows) > _SHOWN else ''}"


def _shown(value: Hashable) -> str:
    return "null" if value is None else str(value)

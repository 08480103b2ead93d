"""The steps of the common pipeline, each a lazy `DataFrame → DataFrame`.

They run in a session in ANSI mode with the time zone UTC, where an expression that can't be computed fails
the query.

Source: `processing-strategies.md`, "Common Processing Pipeline", whose numbers of steps are given here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from lakewright.errors import SchemaDriftError, SpecError, TargetError
from lakewright.schema.canonical import CanonicalForm
from lakewright.schema.spark import columns_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import StructField
from lakewright.spark.engine import analyzed
from lakewright.spark.functions import functions
from lakewright.spec.suggestions import meant
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from lakewright.spec.models.column import Column, Injection


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_CONDITION = re.compile(r"^\[[A-Z][A-Z0-9_.]*\]\s*")
_STATE = re.compile(r"\.?\s*\bSQLSTATE: \w+;?")
_NO_FUNCTION = re.compile(r"^\[UNRESOLVED_ROUTINE\] Cannot resolve routine ((?:`[^`]+`\.?)+)")
_OF_PYTHON = re.compile(
    r"(asc|desc)(_nulls_\w+)?|(count|sum)_distinct|broadcast|col|column|expr|lit|(pandas_)?udf|udtf"
)
"""Names of PySpark's functions that SQL does not have."""


def inject(frame: DataFrame, injections: Iterable[Injection]) -> DataFrame:
    """Return the frame after the entity's transformations (step 1).

    Raises:
        TargetError: Spark rejects an expression; the message contains it and its column.
    """
    for injection in injections:
        if injection.column is not None and injection.expression is not None:
            frame = _with_expression(frame, injection.column, injection.expression)
        else:
            frame = _selected(frame, injection.select)
    return frame


def flatten(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return the frame with a column for each name that is a path into another column, such as `customer.id`.

    A name that is a column's own, or no path, adds nothing. A path into what is null in all rows is null.
    """
    found = {}
    for name in names:
        path = None if "." not in name or find_name(frame.columns, name) else _path(frame.schema, name)
        if path is not None:
            found[name] = name_sql(*path)
    return with_columns(frame, found) if found else frame


def _path(schema: StructType, name: str) -> tuple[str, ...] | None:
    """Return the names of the fields that lead to a field, as the schema spells them; None without such.

    They end where all rows have null.
    """
    from pyspark.sql.types import NullType, StructType

    for field in schema.fields:
        if field.name.lower() == name.lower():
            return (field.name,)
        if not name.lower().startswith(f"{field.name.lower()}."):
            continue
        if isinstance(field.dataType, NullType):
            return (field.name,)
        rest = name[len(field.name) + 1 :]
        inner = _path(field.dataType, rest) if isinstance(field.dataType, StructType) else None
        if inner is not None:
            return (field.name, *inner)
    return None


def calculate(frame: DataFrame, columns: Iterable[Column]) -> DataFrame:
    """Return the frame with the calculated columns; each may use those before it (step 2).

    Raises:
        TargetError: Spark rejects an expression; the message contains it and its column.
    """
    for column in columns:
        if column.expression is not None:
            frame = _with_expression(frame, column.source, column.expression)
    return frame


def hashed_fields(
    frame: DataFrame, system: SystemColumns, excluded: Iterable[str]
) -> tuple[StructField, ...]:
    """Return the columns that the source hash of a frame's rows is computed from.

    Those in `excluded` are left out, and system columns that the slice has itself.
    """
    left_out = {name.lower() for name in (*excluded, *system.suppliable)}
    return tuple(field for field in columns_of(frame.schema) if field.name.lower() not in left_out)


def open_versions(frame: DataFrame, system: SystemColumns, at: datetime) -> DataFrame:
    """Return the frame with each row as a version that is valid from `at` on (step 4, Historic)."""
    columns = {system.valid_to: "cast(null as timestamp)", system.is_current: "true"}
    return with_columns(frame.selectExpr("*", instant_column_sql(system.valid_from, at)), columns)


def instant_column_sql(column: str, at: datetime) -> str:
    """Return SQL of a column, with its name, that has the same instant in all rows.

    Spark writes a literal into the Java of a query, and compiles that again for each slice, as each has its
    own time. An array is data: the Java is the same for all slices.
    """
    return f"inline(array(struct({instant_sql(at)} as {name_sql(column)})))"


def key_rows(
    frame: DataFrame, system: SystemColumns, keys: Sequence[StructField], form: CanonicalForm
) -> DataFrame:
    """Return the frame with the primary key, the hash of the business key (step 6).

    A slice's own primary key is kept. Without a business key no primary key is added.
    """
    supplied = find_name(frame.columns, system.key)
    if supplied is not None:
        return frame.withColumnRenamed(supplied, system.key)
    if not keys:
        return frame
    return with_columns(frame, {system.key: form.hash_sql(keys)})


def incompatible_type_error(column: str, source: str, target: str) -> SchemaDriftError:
    """Return the error for a column whose type can't be cast to the wanted one."""
    return SchemaDriftError(
        f"column {column!r}: {source} in the slice can't be cast to {target}",
        remedy="Correct the slice, or convert the column with an expression in the entity.",
        details={"column": column, "slice": source, "table": target},
    )


def rename(frame: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """Return the frame with its columns under their names in silver (steps 8 and 11).

    Args:
        frame: The frame.
        names: Present names, in exact case, to new ones; other columns keep theirs.
    """
    if all(old == new for old, new in names.items()):
        return frame
    return frame.toDF(*(names.get(name, name) for name in frame.columns))


def flag_deleted(frame: DataFrame, system: SystemColumns) -> DataFrame:
    """Return the frame with the deleted flag: the slice's own, otherwise false; never null (step 9)."""
    supplied = find_name(frame.columns, system.deleted)
    if supplied is None:
        return with_columns(frame, {system.deleted: "false"})
    flag = f"coalesce({name_sql(system.deleted)}, false)"
    return with_columns(frame.withColumnRenamed(supplied, system.deleted), {system.deleted: flag})


def instant_sql(at: datetime) -> str:
    """Return an instant in SQL, the same in every time zone.

    Example:
        >>> instant_sql(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC))
        'timestamp_micros(1000005)'
    """
    return f"timestamp_micros({(at.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)})"


def find_name(names: Iterable[str], wanted: str) -> str | None:
    """Return a name as it is spelled among these, or None; case is ignored."""
    alike = [name for name in names if name.lower() == wanted.lower()]
    return wanted if wanted in alike else next(iter(alike), None)


def expression_error(column: str, expression: str, error: BaseException) -> TargetError:
    """Return the error for an expression that can't be computed from the values of a slice."""
    return TargetError(
        f"column {column!r}: the expression {expression!r} can't be computed: {_rejection(str(error))}",
        remedy="Correct the expression in the entity, or the slice.",
        details={"column": column, "expression": expression},
    )


def with_columns(frame: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Return the frame with columns added or replaced, given as SQL."""
    added = {name: functions.expr(sql) for name, sql in columns.items()}
    return frame.withColumns(added) if added else frame  # Spark Connect refuses none


def _with_expression(frame: DataFrame, column: str, expression: str) -> DataFrame:
    what = f"column {column!r}: the expression {expression!r}"
    made = partial(with_columns, frame, {column: expression})
    return _computed(made, what, "Correct the expression in the entity.")


def _selected(frame: DataFrame, expressions: Sequence[str]) -> DataFrame:
    what = f"the transformation {list(expressions)!r}"
    return _computed(partial(frame.selectExpr, *expressions), what, "Correct the entity's `transformations`.")


def _computed(make: Callable[[], DataFrame], what: str, remedy: str) -> DataFrame:
    """Return a frame with expressions of the entity.

    Raises:
        TargetError: Spark rejects one, since the slice lacks a column.
        SpecError: Spark rejects one for another reason.
    """
    from pyspark.errors import PySparkException

    try:
        return analyzed(make())
    except PySparkException as error:
        message = f"{what} can't be computed: {_rejection(str(error))}"
        parameters = error.getMessageParameters() or {}
        if (error.getCondition() or "").startswith("UNRESOLVED_COLUMN") and "objectName" in parameters:
            lacks = parameters["objectName"].strip("`").rpartition("`.`")[2]
            raise TargetError(message, remedy=remedy, details={"lacks": [lacks]}) from error
        raise SpecError.of(message, remedy=remedy) from error


def _rejection(text: str) -> str:
    """Return the first line of what Spark says, without its condition and SQLSTATE.

    Example:
        >>> _rejection("[UNRESOLVED_ROUTINE] Cannot resolve routine `agregate` on search path [`system`].")
        "there is no function 'agregate'; did you mean 'aggregate'?"
        >>> _rejection("[PARSE_SYNTAX_ERROR] Syntax error at or near ')'. SQLSTATE: 42601 (line 1, pos 4)")
        "Syntax error at or near ')' (line 1, pos 4)"
    """
    first = text.strip().partition("\n")[0]
    if (unknown := _NO_FUNCTION.search(first)) is not None:
        name = unknown[1].rstrip(".").replace("`", "")
        return f"there is no function {name!r}{_meant(name)}"
    return _STATE.sub("", _CONDITION.sub("", first)).removesuffix(".")


def _meant(name: str) -> str:
    from pyspark.sql import functions as module

    known = (
        each
        for each, value in vars(module).items()
        if _OF_PYTHON.fullmatch(each) is None and each.islower() and _is_of_spark(value)
    )
    found = meant(name, known, cutoff=0.75)
    return f"; {found}" if found else ""


def _is_of_spark(value: object) -> bool:
    return callable(value) and str(getattr(value, "__module__", "")).startswith("pyspark.sql.functions")

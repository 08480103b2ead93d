"""The steps of the common pipeline, each a lazy `DataFrame → DataFrame`.

They run in a session in ANSI mode with the time zone UTC, where an expression that can't be computed fails
the query.

Source: `processing-strategies.md`, "Common Processing Pipeline", whose numbers of steps are given here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError, SchemaDriftError, SpecError, TargetError
from lakewright.schema.canonical import CanonicalForm
from lakewright.schema.spark import columns_of, type_of
from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import Array, Chars, MapOf, Struct, StructField, Type
from lakewright.transform.casts import cast_sql, limited_sql
from lakewright.transform.conversion import converted_sql
from lakewright.transform.rejections import rejection
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    from lakewright.spec.models.column import Column, Injection

__all__ = [
    "calculate",
    "cast",
    "expression_error",
    "find_name",
    "flag_deleted",
    "flatten",
    "hash_rows",
    "hashed_fields",
    "incompatible_type_error",
    "inject",
    "instant_sql",
    "key_rows",
    "mark_seen",
    "name_file",
    "open_versions",
    "rename",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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

    A name that is a column's own, or no path, adds nothing.
    """
    found = {}
    for name in names:
        path = None if "." not in name or find_name(frame.columns, name) else _path(frame.schema, name)
        if path is not None:
            found[name] = name_sql(*path)
    return _with(frame, found) if found else frame


def _path(schema: StructType, name: str) -> tuple[str, ...] | None:
    """Return the names of the fields that lead to a field, as the schema spells them; None without such."""
    from pyspark.sql.types import StructType

    for field in schema.fields:
        if field.name.lower() == name.lower():
            return (field.name,)
        rest = name[len(field.name) + 1 :]
        if name.lower().startswith(f"{field.name.lower()}.") and isinstance(field.dataType, StructType):
            inner = _path(field.dataType, rest)
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


def hash_rows(
    frame: DataFrame, system: SystemColumns, excluded: Iterable[str], form: CanonicalForm
) -> DataFrame:
    """Return the frame with the hash of its columns, except those in `excluded` (step 3).

    System columns that the slice has itself are excluded too.
    """
    return _with(frame, {system.hash: form.hash_sql(hashed_fields(frame, system, excluded))})


def hashed_fields(
    frame: DataFrame, system: SystemColumns, excluded: Iterable[str]
) -> tuple[StructField, ...]:
    """Return the columns that the source hash of a frame's rows is computed from."""
    left_out = {name.lower() for name in (*excluded, *system.suppliable)}
    return tuple(field for field in columns_of(frame.schema) if field.name.lower() not in left_out)


def open_versions(frame: DataFrame, system: SystemColumns, at: datetime) -> DataFrame:
    """Return the frame with each row as a version that is valid from `at` on (step 4, Historic)."""
    columns = {
        system.valid_from: instant_sql(at),
        system.valid_to: "cast(null as timestamp)",
        system.is_current: "true",
    }
    return _with(frame, columns)


def name_file(frame: DataFrame, system: SystemColumns, slice_name: str) -> DataFrame:
    """Return the frame with the slice's name in each row (step 5)."""
    return _with(frame, {system.filename: text_sql(slice_name)})


def key_rows(
    frame: DataFrame, system: SystemColumns, keys: Sequence[StructField], form: CanonicalForm
) -> DataFrame:
    """Return the frame with the primary key, the hash of the business key (step 6).

    A slice's own primary key is kept. Without a business key no primary key is added.
    """
    supplied = find_name(frame.columns, system.key)
    if supplied is not None:
        return _with(
            frame.withColumnRenamed(supplied, system.key),
            {system.key: f"cast({name_sql(system.key)} as string)"},
        )
    if not keys:
        return frame
    return _with(frame, {system.key: form.hash_sql(keys)})


def cast(frame: DataFrame, types: Mapping[str, Type]) -> DataFrame:
    """Return the frame with columns in their declared types (step 7); a value that doesn't fit is an error.

    A column without a type (all null) becomes a string.

    Args:
        frame: The frame.
        types: Types of columns by name, in any case; other columns keep theirs.
    """
    wanted = {name.lower(): kind for name, kind in types.items()}
    changes = {}
    for field in frame.schema.fields:
        value = name_sql(field.name)
        declared = wanted.get(field.name.lower())
        if declared is not None:
            sql = _declared_sql(value, field.dataType, declared, field.name)
        else:
            stored = storable(field.dataType).simpleString()
            sql = (
                value
                if stored == field.dataType.simpleString()
                else f"cast({value} as {storable_sql(field.dataType)})"
            )
        if sql != value:
            changes[field.name] = sql
    return _cast(frame, changes, wanted) if changes else frame


def _cast(frame: DataFrame, changes: Mapping[str, str], wanted: Mapping[str, Type]) -> DataFrame:
    from pyspark.errors import AnalysisException

    try:
        return _with(frame, changes)
    except AnalysisException:
        for name, sql in changes.items():
            try:
                _with(frame, {name: sql})
            except AnalysisException as error:
                present = frame.schema[name].dataType.simpleString()
                raise incompatible_type_error(name, present, wanted[name.lower()].ddl) from error
        raise


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
        return _with(frame, {system.deleted: "false"})
    kind = frame.schema[supplied].dataType
    flag = cast_sql(name_sql(supplied), kind, "boolean", column=supplied)
    return _with(
        frame.withColumnRenamed(supplied, system.deleted), {system.deleted: f"coalesce({flag}, false)"}
    )


def mark_seen(frame: DataFrame, system: SystemColumns, at: datetime) -> DataFrame:
    """Return the frame with the processing time as the instant when records were last seen (step 10)."""
    return _with(frame, {system.last_seen: instant_sql(at)})


def instant_sql(at: datetime) -> str:
    """Return an instant in SQL, the same in every time zone.

    Example:
        >>> instant_sql(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC))
        'timestamp_micros(1000005)'
    """
    return f"timestamp_micros({(at.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)})"


def find_name(names: Iterable[str], wanted: str) -> str | None:
    """Return a name as it is spelled among these, or None; case is ignored."""
    return next((name for name in names if name.lower() == wanted.lower()), None)


def storable(kind: DataType) -> DataType:
    """Return the type that a table can hold: no type becomes string, nested names lose invalid characters.

    Fields and elements without a type keep none; `transform.typeless` decides about them.
    """
    from pyspark.sql.types import NullType, StringType

    return StringType() if isinstance(kind, NullType) else _with_normal_names(kind)


def _with_normal_names(kind: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    from lakewright.transform.column_names import normal_name

    if isinstance(kind, ArrayType):
        return ArrayType(_with_normal_names(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        key, value = _with_normal_names(kind.keyType), _with_normal_names(kind.valueType)
        return MapType(key, value, kind.valueContainsNull)
    if isinstance(kind, StructType):
        return StructType(
            [
                StructField(normal_name(f.name), _with_normal_names(f.dataType), f.nullable)
                for f in kind.fields
            ]
        )
    return kind


def storable_sql(kind: DataType) -> str:
    """Return the type that a table can hold in Spark's SQL, with nested names quoted."""
    return _quoted(storable(kind))


def _quoted(kind: DataType) -> str:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return f"array<{_quoted(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<{_quoted(kind.keyType)}, {_quoted(kind.valueType)}>"
    if isinstance(kind, StructType):
        return f"struct<{', '.join(f'{name_sql(f.name)}: {_quoted(f.dataType)}' for f in kind.fields)}>"
    return kind.simpleString()


def expression_error(column: str, expression: str, error: BaseException) -> TargetError:
    """Return the error for an expression that can't be computed from the values of a slice."""
    return TargetError(
        _not_computed(column, expression, error),
        remedy="Correct the expression in the entity, or the slice.",
        details={"column": column, "expression": expression},
    )


def _not_computed(column: str, expression: str, error: BaseException) -> str:
    return f"column {column!r}: the expression {expression!r} can't be computed: {rejection(str(error))}"


_NESTED = frozenset(("array", "map", "struct"))


def _declared_sql(value: str, source: DataType, declared: Type, column: str) -> str:
    if isinstance(declared, Chars):
        text = value if source.typeName() == "string" else f"cast({value} as string)"
        return limited_sql(text, declared.length, column=column)
    if isinstance(declared, Array | MapOf | Struct) and source.typeName() in _NESTED:
        return converted_sql(value, type_of(source), declared, column=column, is_strict=True)
    return cast_sql(value, source, declared.ddl, column=column)


def _with(frame: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    from pyspark.sql import functions

    return frame.withColumns({name: functions.expr(sql) for name, sql in columns.items()})


def _with_expression(frame: DataFrame, column: str, expression: str) -> DataFrame:
    from pyspark.errors import PySparkException

    try:
        return _with(frame, {column: expression})
    except PySparkException as error:
        message = _not_computed(column, expression, error)
        raise _rejected(message, "Correct the expression in the entity.", error) from error


def _selected(frame: DataFrame, expressions: Sequence[str]) -> DataFrame:
    from pyspark.errors import PySparkException

    try:
        return frame.selectExpr(*expressions)
    except PySparkException as error:
        message = f"the transformation {list(expressions)!r} can't be computed: {rejection(str(error))}"
        raise _rejected(message, "Correct the entity's `transformations`.", error) from error


def _rejected(message: str, remedy: str, error: PySparkException) -> LakewrightError:
    """Return the error for what Spark rejects before it reads any row.

    It is a fault of the declaration, unless a column is unknown that the slice may lack.
    """
    parameters = error.getMessageParameters() or {}
    if (error.getCondition() or "").startswith("UNRESOLVED_COLUMN") and "objectName" in parameters:
        lacks = parameters["objectName"].strip("`").rpartition("`.`")[2]
        return TargetError(message, remedy=remedy, details={"lacks": [lacks]})
    return SpecError.of(message, remedy=remedy)

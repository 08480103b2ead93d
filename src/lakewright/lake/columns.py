"""Columns of frames and declared columns: conversions between them, and casts to declared types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lakewright.errors import SpecError
from lakewright.lake.frames import frame_of_texts
from lakewright.schema.conversion import convert
from lakewright.schema.rules import ASSIGNED, LENIENT, STRICT, ValueRules
from lakewright.schema.shape import plain_type
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import Array, Chars, MapOf, Scalar, Struct, Type
from lakewright.spark.functions import functions
from lakewright.spec.models.fields import Field
from lakewright.spec.models.records import Record, texts_of
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType


def column(name: str) -> Column:
    """Return the column of exactly this name, which may contain any character."""
    return functions.col("`" + name.replace("`", "``") + "`")


def literal(value: str | None) -> Column:
    """Return a text, or null, as a column."""
    return functions.lit(value)


def cast_column(source: Column, declared: Type) -> Column:
    """Return the column cast to a type; texts are cut for `varchar(n)`, and padded too for `char(n)`."""
    cast = source.cast(plain_type(declared).ddl)
    if not isinstance(declared, Chars):
        return cast
    cut = functions.substring(cast, 1, declared.length)
    return functions.rpad(cut, declared.length, " ") if declared.is_fixed else cut


def conform(frame: DataFrame, fields: Iterable[Field], *, is_strict: bool = False) -> DataFrame:
    """Return a frame of exactly the declared columns, in their order, cast to their types.

    A column that the frame lacks is null, or its `default`. Names match in any case.

    Fields of structs are matched by name, too.

    Args:
        frame: The rows.
        fields: The columns.
        is_strict: Whether a value that does not fit its type fails the query, as for rows that are stored.
            Otherwise it becomes null, or an error in the session's ANSI mode; a text is cut.
    """
    present = {field.name: field.type for field in fields_of(frame.schema)}
    columns = []
    for field in fields:
        name = find_name(frame.columns, field.name)
        if name is None:
            made = cast_column(literal(field.default), field.type)
        elif present[name] == field.type:
            made = column(name)
        else:
            made = _converted(name, present[name], field, is_strict=is_strict)
        columns.append(made.alias(field.name))
    return frame.select(*columns)


def _converted(name: str, own: Type, field: Field, *, is_strict: bool) -> Column:
    if isinstance(field.type, Chars) and not is_strict:
        return cast_column(column(name), field.type)
    rules = ASSIGNED if is_strict else LENIENT
    return functions.expr(_converted_sql(name_sql(name), own, field, rules))


def _converted_sql(value: str, own: Type, field: Field, rules: ValueRules) -> str:
    found = convert(value, own, field.type, column=field.name, rules=rules)
    if found.is_never:
        raise SpecError.of(
            f"column {field.name!r} is {own.ddl}, which can't become {field.type.ddl}",
            remedy="Rename its fields in the mapping, or correct the type.",
        )
    return found.strict


def cast_by_name(frame: DataFrame, name: str, declared: Type) -> Column:
    """Return a column of the frame, or a field of one, cast to a type; a value that does not fit is null.

    Fields of structs are matched by name.
    """
    own = fields_of(frame.select(column(name)).schema)[0].type
    return _converted(name, own, Field(name=name, type=declared), is_strict=False)


def fields_of(schema: StructType) -> tuple[Field, ...]:
    """Return the columns of a Spark schema."""
    return tuple(
        Field(
            name=field.name,
            type=type_of(field.dataType),
            nullable=field.nullable,
            description=(field.metadata or {}).get("comment"),
        )
        for field in schema.fields
    )


def reader_schema(fields: Iterable[Field]) -> str:
    """Return the schema with which Spark's readers read these columns; every column is nullable."""
    return ", ".join(Field(name=field.name, type=plain_type(field.type)).ddl for field in fields)


def frame_of_records(spark: SparkSession, fields: Sequence[Field], records: Sequence[Record]) -> DataFrame:
    """Return a frame of rows given as texts, lists or maps in a project, cast to the columns' types.

    Columns that a map leaves out are null.

    Raises:
        SpecError: A row has too many values, a name that isn't a column, or a value of another type.
    """
    if not fields:
        raise SpecError.of(
            "no columns are declared for these records", remedy="Declare `columns` or a `schema`."
        )
    rows = texts_of(fields, records)
    texts = frame_of_texts(spark, [field.name for field in fields], rows)
    return texts.select(*(_read_text(field).alias(field.name) for field in fields))


def _read_text(field: Field) -> Column:
    if isinstance(field.type, (Array, MapOf, Struct)):
        return functions.expr(_converted_sql(name_sql(field.name), Scalar("string"), field, STRICT))
    cast = cast_column(column(field.name), field.type)
    wrong = functions.concat(
        functions.lit(f"column {field.name}: not of type {field.type.ddl}: "), column(field.name)
    )
    is_wrong = column(field.name).isNotNull() & cast.isNull()
    return functions.when(is_wrong, functions.raise_error(wrong)).otherwise(cast)

"""Columns of frames and declared columns: conversions between them, and casts to declared types."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakewright.errors import SpecError
from lakewright.lake.frames import created_frame
from lakewright.spec.models.fields import Field, parse_type
from lakewright.spec.models.types import Array, Chars, Decimal, MapOf, Scalar, Struct, Type
from lakewright.spec.suggestions import nearest
from lakewright.spec.words import counted
from lakewright.transform.conversion import converted_sql, engine_type
from lakewright.transform.sql import name_sql, text_sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "cast_by_name",
    "cast_column",
    "column",
    "conform",
    "engine_type",
    "fields_of",
    "find_column",
    "frame_of_records",
    "literal",
    "reader_schema",
]

log = logging.getLogger(__name__)

Records = Sequence[Sequence[Any] | Mapping[str, Any]]


def column(name: str) -> Column:
    """Return the column of exactly this name, which may contain any character."""
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


def literal(value: str | None) -> Column:
    """Return a text, or null, as a column."""
    from pyspark.sql import functions

    return functions.lit(value)


def find_column(frame: DataFrame, name: str) -> str | None:
    """Return a column's name as the frame spells it, or None; case is ignored."""
    if name in frame.columns:
        return name
    return next((other for other in frame.columns if other.lower() == name.lower()), None)


def cast_column(source: Column, declared: Type) -> Column:
    """Return the column cast to a type; texts are cut for `varchar(n)`, and padded too for `char(n)`."""
    from pyspark.sql import functions

    cast = source.cast(engine_type(declared).ddl)
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
        name = find_column(frame, field.name)
        if name is None:
            made = cast_column(literal(field.default), field.type)
        elif present[name] == field.type:
            made = column(name)
        else:
            made = _converted(name, present[name], field, is_strict=is_strict)
        columns.append(made.alias(field.name))
    return frame.select(*columns)


def _converted(name: str, own: Type, field: Field, *, is_strict: bool) -> Column:
    from pyspark.sql import functions

    if isinstance(field.type, Chars) and not is_strict:
        return cast_column(column(name), field.type)
    sql = converted_sql(name_sql(name), own, field.type, column=field.name, is_strict=is_strict)
    return functions.expr(sql)


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
            type=parse_type(field.dataType.simpleString()),
            nullable=field.nullable,
            description=(field.metadata or {}).get("comment"),
        )
        for field in schema.fields
    )


def reader_schema(fields: Iterable[Field]) -> str:
    """Return the schema with which Spark's readers read these columns; every column is nullable."""
    return ", ".join(Field(name=field.name, type=engine_type(field.type)).ddl for field in fields)


def frame_of_records(
    spark: SparkSession, fields: Sequence[Field], records: Records, *, drops_others_of: str | None = None
) -> DataFrame:
    """Return a frame of rows given as texts, lists or maps in a project, cast to the columns' types.

    Columns that a map leaves out are null.

    Args:
        spark: The session.
        fields: The columns.
        records: The rows.
        drops_others_of: Whose values beyond the columns are dropped with a warning, as Flowman's mocks drop
            them; None if they are an error.

    Raises:
        SpecError: A row has too many values, or a name that isn't a column.
    """
    if drops_others_of is not None:
        _warn_of_others(fields, records, drops_others_of)
        records = [_without_others(fields, record) for record in records]
    rows = [_row(fields, record) for record in records]
    texts = ", ".join(Field(name=field.name, type=Scalar("string")).ddl for field in fields)
    if not fields:
        raise SpecError.of(
            "no columns are declared for these records", remedy="Declare `columns` or a `schema`."
        )
    return created_frame(spark, rows, texts).select(
        *(_read_text(field).alias(field.name) for field in fields)
    )


def _warn_of_others(fields: Sequence[Field], records: Records, label: str) -> None:
    names = [field.name for field in fields]
    lower = {name.lower() for name in names}
    others = {name: None for record in records if isinstance(record, Mapping) for name in record}
    for other in others:
        if other.lower() not in lower:
            similar = nearest(other, names)
            asked = f"; did you mean {similar!r}?" if similar else ""
            log.warning("%s has no column %r, so its values are left out%s", label, other, asked)
    if any(len(record) > len(names) for record in records if not isinstance(record, Mapping)):
        log.warning("%s: values after the first %d, its columns, are left out", label, len(names))


def _without_others(
    fields: Sequence[Field], record: Sequence[Any] | Mapping[str, Any]
) -> Sequence[Any] | Mapping[str, Any]:
    if isinstance(record, Mapping):
        names = {field.name.lower() for field in fields}
        return {name: value for name, value in record.items() if name.lower() in names}
    return record[: len(fields)]


def _row(fields: Sequence[Field], record: Sequence[Any] | Mapping[str, Any]) -> tuple[str | None, ...]:
    names = {field.name.lower(): position for position, field in enumerate(fields)}
    values: list[str | None] = [None] * len(fields)
    if isinstance(record, Mapping):
        for name, value in record.items():
            if name.lower() not in names:
                raise SpecError.of(f"a record has a value for {name!r}, which is not one of its columns")
            position = names[name.lower()]
            values[position] = _cell(fields[position], value)
        return tuple(values)
    cells = record if isinstance(record, (list, tuple)) else [record]
    if len(cells) > len(fields):
        raise SpecError.of(
            f"a record has {counted(len(cells), 'value')} for {counted(len(fields), 'column')}"
        )
    values[: len(cells)] = [_cell(field, value) for field, value in zip(fields, cells, strict=False)]
    return tuple(values)


def _cell(field: Field, value: Any) -> str | None:
    """Return the text of a value, which `_read_text` reads.

    Raises:
        SpecError: It can't be one of a nested type.
    """
    import json

    if value is None or isinstance(field.type, Scalar | Decimal | Chars):
        return _text(value)
    try:
        given = json.loads(value, parse_float=str, parse_int=str) if isinstance(value, str) else value
        return json.dumps(_nested(field.type, given))
    except ValueError as error:
        raise SpecError.of(
            f"column {field.name}: {_text(value)} is not of type {field.type.ddl}",
            remedy="Write a list as [a, b], and a struct as {field: value} or as the list of its values.",
        ) from error


def _nested(kind: Type, value: Any) -> Any:
    """Return a value with texts inside; those of a struct by name.

    Raises:
        ValueError: It has another shape than the type.
    """
    if value is None or isinstance(kind, Scalar | Decimal | Chars):
        return _text(value)
    if isinstance(kind, Struct):
        names = [field.name for field in kind.fields]
        if isinstance(value, list | tuple) and len(value) <= len(names):
            value = dict(zip(names, value, strict=False))
        types = {field.name.lower(): (field.name, field.type) for field in kind.fields}
        if isinstance(value, Mapping) and all(str(name).lower() in types for name in value):
            found = ((*types[str(name).lower()], each) for name, each in value.items())
            return {name: _nested(inner, each) for name, inner, each in found}
    elif isinstance(kind, Array) and isinstance(value, list | tuple):
        return [_nested(kind.element, each) for each in value]
    elif isinstance(kind, MapOf) and isinstance(value, Mapping):
        return {str(name): _nested(kind.value, each) for name, each in value.items()}
    raise ValueError(value)


def _text(value: Any) -> str | None:
    import json

    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, default=str)


def _read_text(field: Field) -> Column:
    from pyspark.sql import functions

    if isinstance(field.type, (Array, MapOf, Struct)):
        inner = _of_texts(field.type)
        texts = f"from_json({name_sql(field.name)}, {text_sql(inner.ddl)})"
        return functions.expr(converted_sql(texts, inner, field.type, column=field.name, is_strict=True))
    cast = cast_column(column(field.name), field.type)
    wrong = functions.concat(
        functions.lit(f"column {field.name}: not of type {field.type.ddl}: "), column(field.name)
    )
    is_wrong = column(field.name).isNotNull() & cast.isNull()
    return functions.when(is_wrong, functions.raise_error(wrong)).otherwise(cast)


def _of_texts(declared: Type) -> Type:
    """Return a nested type with texts inside: values in a project are texts until they are cast."""
    if isinstance(declared, Array):
        return Array(_of_texts(declared.element))
    if isinstance(declared, MapOf):
        return MapOf(Scalar("string"), _of_texts(declared.value))
    if isinstance(declared, Struct):
        return Struct(tuple(replace(field, type=_of_texts(field.type)) for field in declared.fields))
    return Scalar("string")

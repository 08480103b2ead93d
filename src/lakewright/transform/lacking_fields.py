"""Fields that the structs of a slice lack, where declared columns are paths to them, such as `customer.id`.

Expressions find them, with nulls. After that they have no type, so that they take that of the table, and are
left out if it has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakewright.schema.sql import name_sql, text_sql
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

__all__ = ["FilledColumn", "with_fields"]


@dataclass(frozen=True, slots=True)
class FilledColumn:
    """A column in which fields were added.

    Attributes:
        name: Its name.
        before: Its type without them; None if the slice lacks the column.
        after: Its type with them.
    """

    name: str
    before: DataType | None
    after: DataType

    def emptied(self, frame: DataFrame) -> DataFrame:
        """Return rows in which the fields have no type; a column that has another type by now is kept."""
        from pyspark.sql import functions

        name = find_name(frame.columns, self.name)
        if name is None or frame.schema[name].dataType != self.after:
            return frame
        sql = _emptied_sql(name_sql(name), self.after, self.before)
        return frame.withColumn(name, functions.expr(sql))


def with_fields(
    frame: DataFrame, paths: Iterable[tuple[str, str]], filled: dict[str, FilledColumn]
) -> DataFrame:
    """Return rows with these fields, as far as they are paths into structs or into columns without a type.

    Args:
        frame: The rows.
        paths: The names of the fields, with dots, and SQL of their values.
        filled: The columns that are filled are added here, by their names in lower case.
    """
    from pyspark.sql import functions

    for path, null in paths:
        head, *rest = path.split(".")
        if not rest or not all((head, *rest)):
            continue
        found = find_name(frame.columns, head)
        name = found or head
        kind = None if found is None else frame.schema[name].dataType
        sql = _filled_sql(name_sql(name), kind, rest, null)
        if sql is None:
            continue
        frame = frame.withColumn(name, functions.expr(sql))
        after = frame.schema[name].dataType
        own = filled.get(name.lower(), FilledColumn(name, kind, after))
        filled[name.lower()] = replace(own, after=after)
    return frame


def _filled_sql(value: str, kind: DataType | None, path: Sequence[str], null: str) -> str | None:
    """Return SQL of a value with the field at a path; None if the value has the field, or can't have it."""
    from pyspark.sql.types import NullType, StructType

    if kind is None or isinstance(kind, NullType):
        if not path:
            return null
        return f"if(true, null, named_struct({text_sql(path[0])}, {_filled_sql('', None, path[1:], null)}))"
    if not isinstance(kind, StructType) or not path:
        return None
    parts = {field.name: f"{value}.{name_sql(field.name)}" for field in kind.fields}
    name = find_name(parts, path[0])
    inner = None if name is None else kind[name].dataType
    filled = _filled_sql(parts.get(name or "", ""), inner, path[1:], null)
    if filled is None:
        return None
    return _struct_sql(value, {**parts, name or path[0]: filled})


def _emptied_sql(value: str, after: DataType, before: DataType | None) -> str:
    """Return SQL of a value in which the fields that were added have no type."""
    from pyspark.sql.types import NullType, StructType

    if before is None or isinstance(before, NullType):
        return "null"
    if not isinstance(after, StructType) or not isinstance(before, StructType):
        return value
    known = {field.name: field.dataType for field in before.fields}
    parts = {
        field.name: _emptied_sql(f"{value}.{name_sql(field.name)}", field.dataType, known.get(field.name))
        for field in after.fields
    }
    return _struct_sql(value, parts)


def _struct_sql(value: str, parts: dict[str, str]) -> str:
    fields = ", ".join(f"{text_sql(name)}, {sql}" for name, sql in parts.items())
    return f"if({value} is null, null, named_struct({fields}))"

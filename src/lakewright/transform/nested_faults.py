"""Why a value does not fit a type, also inside structs, lists and maps; the first reason counts.

Source: `processing-strategies.md`, "Common Processing Pipeline" (Cast columns); putting rows aside is
Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import Array, MapOf, Scalar, Struct, StructField, Type
from lakewright.transform.casts import cast_fault_sql, fitting_fault_sql
from lakewright.transform.conversion import matched_fields

if TYPE_CHECKING:
    from pyspark.sql.types import ArrayType, DataType, MapType, StructType
    from pyspark.sql.types import StructField as SparkField

__all__ = ["declared_fault_sql", "first_fault_in_list", "first_fault_of", "table_fault_sql"]


def first_fault_of(faults: Iterable[str | None]) -> str | None:
    """Return SQL of the first of these texts that is not null; None if there are none."""
    found = [fault for fault in faults if fault is not None]
    return f"coalesce({', '.join(found)})" if len(found) > 1 else next(iter(found), None)


def first_fault_in_list(list_: str, item: str, fault: str) -> str:
    """Return SQL of the first text that is not null, of those that the elements of a list give.

    Args:
        list_: SQL of the list.
        item: The variable for an element.
        fault: SQL of the text of one element.
    """
    return f"get(filter(transform({list_}, {item} -> {fault}), fault -> fault is not null), 0)"


def table_fault_sql(value: str, source: DataType, target: DataType, *, column: str) -> str | None:
    """Return SQL of why a value does not fit the type of a table's column: a text, or null if it does.

    The text names the column, or the path of a field inside it. None if no value can fail in a way that this
    finds.

    Args:
        value: SQL of the value.
        source: Its type.
        target: The type that its column has in the table.
        column: The column's name, for the text.

    Example:
        >>> from pyspark.sql.types import ArrayType, LongType
        >>> table_fault_sql("v", ArrayType(LongType()), ArrayType(LongType()), column="v") is None
        True
    """
    return _Place(column, is_of_table=True).fault(value, source, type_of(target))


def declared_fault_sql(value: str, source: DataType, target: Type, *, column: str) -> str | None:
    """Return SQL of why `converted_sql` would fail for a struct, list or map; see `table_fault_sql`.

    Raises:
        SpecError: A struct has none of the fields of its type.
    """
    return _Place(column, is_of_table=False).fault(value, source, target)


@dataclass(frozen=True, slots=True)
class _Place:
    """A place inside a column.

    Attributes:
        column: The place, as reasons name it.
        is_of_table: Whether values are converted to the type of the table, not to the declared one.
        depth: How many lambdas the place is in.
    """

    column: str
    is_of_table: bool
    depth: int = 0

    def fault(self, value: str, source: DataType, target: Type) -> str | None:
        """Return SQL of why a value does not fit; None if no value can fail."""
        from pyspark.sql.types import ArrayType, MapType, StructType

        if isinstance(source, StructType):
            return first_fault_of(self._in_struct(value, source, target))
        if isinstance(source, ArrayType | MapType):
            return self._in_list(value, source, target)
        if isinstance(target, Array | MapOf | Struct):
            return None
        if self.is_of_table:
            return cast_fault_sql(value, source, target.ddl, column=self.column, is_exact=True)
        return fitting_fault_sql(value, type_of(source), target, column=self.column)

    def _in_list(self, value: str, source: ArrayType | MapType, target: Type) -> str | None:
        from pyspark.sql.types import ArrayType

        item, inner, list_, found = f"x{self.depth}", replace(self, depth=self.depth + 1), value, None
        if isinstance(source, ArrayType):
            if isinstance(target, Array):
                found = inner.fault(item, source.elementType, target.element)
        elif isinstance(target, MapOf):
            list_ = f"map_entries({value})"
            key = inner.fault(f"{item}.key", source.keyType, target.key)
            found = first_fault_of((key, inner.fault(f"{item}.value", source.valueType, target.value)))
        return found and first_fault_in_list(list_, item, found)

    def _in_struct(self, value: str, source: StructType, target: Type) -> Iterator[str | None]:
        if isinstance(target, Struct):
            for field, own in self._matched(source, target):
                inner = replace(self, column=f"{self.column}.{field.name}")
                yield inner.fault(f"{value}.{name_sql(own.name)}", own.dataType, field.type)
        elif isinstance(target, MapOf) and not self.is_of_table:
            yield from self._in_map_of_fields(value, source, target)

    def _matched(self, source: StructType, target: Struct) -> Iterator[tuple[StructField, SparkField]]:
        """Yield each field of the target with the field of the source that it is made of."""
        by_name = {field.name.lower(): field for field in source.fields}
        names = [field.name for field in target.fields]
        if not self.is_of_table:
            own = Struct(tuple(StructField(each.name, type_of(each.dataType)) for each in source.fields))
            names = [found.name if found else "" for found in matched_fields(own, target, self.column)]
        for field, name in zip(target.fields, names, strict=True):
            if name.lower() in by_name:
                yield field, by_name[name.lower()]

    def _in_map_of_fields(self, value: str, source: StructType, target: MapOf) -> Iterator[str | None]:
        """Yield the faults of a struct that becomes a map: of its fields' names, and of their values."""
        for field in source.fields:
            own = f"{value}.{name_sql(field.name)}"
            name, column = text_sql(field.name), f"{self.column} key"
            fault = fitting_fault_sql(name, Scalar("string"), target.key, column=column)
            yield fault and f"if({own} is null, null, {fault})"
            yield self.fault(own, field.dataType, target.value)

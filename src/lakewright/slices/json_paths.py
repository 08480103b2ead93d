"""SQL and types for parts of columns, which are given by the path to them.

A path is the names of the fields that lead to a part; None in it stands for the elements of a list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from lakewright.schema.sql import name_sql, text_sql
from lakewright.transform.nested_faults import first_fault_in_list

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = ["Path", "any_sql", "first_sql", "max_sql", "replaced_sql", "with_types"]

Path: TypeAlias = tuple[str | None, ...]
Sql: TypeAlias = Callable[[str], str]
"""Makes SQL of the SQL of a value."""


def any_sql(value: str, path: Path, test: Sql) -> str:
    """Return SQL of whether a part of a value passes a test.

    Example:
        >>> any_sql("v", ("a", None), lambda each: f"{each} > 0")
        'coalesce(exists(v.`a`, x0 -> x0 > 0), false)'
    """
    return _sql(
        value, path, test, lambda list_, item, sql: f"coalesce(exists({list_}, {item} -> {sql}), false)"
    )


def max_sql(value: str, path: Path, number: Sql) -> str:
    """Return SQL of the largest number that the parts of a value give; null if there are none."""
    return _sql(
        value, path, number, lambda list_, item, sql: f"array_max(transform({list_}, {item} -> {sql}))"
    )


def first_sql(value: str, path: Path, text: Sql) -> str:
    """Return SQL of the first text that is not null, of those that the parts of a value give."""
    return _sql(value, path, text, first_fault_in_list)


def _sql(value: str, path: Path, leaf: Sql, of_list: Callable[[str, str, str], str], depth: int = 0) -> str:
    if not path:
        return leaf(value)
    name, *rest = path
    if name is not None:
        return _sql(f"{value}.{name_sql(name)}", tuple(rest), leaf, of_list, depth)
    item = f"x{depth}"
    return of_list(value, item, _sql(item, tuple(rest), leaf, of_list, depth + 1))


def with_types(kind: DataType, types: Mapping[Path, DataType], path: Path = ()) -> DataType:
    """Return a type whose parts at some paths have other types; the type is at `path` itself."""
    from pyspark.sql.types import ArrayType, StructField, StructType

    if path in types:
        return types[path]
    if isinstance(kind, ArrayType):
        return ArrayType(with_types(kind.elementType, types, (*path, None)))
    if isinstance(kind, StructType):
        return StructType(
            [
                StructField(each.name, with_types(each.dataType, types, (*path, each.name)))
                for each in kind.fields
            ]
        )
    return kind


def replaced_sql(value: str, kind: DataType, parts: Mapping[Path, Sql], path: Path = ()) -> str:
    """Return SQL of a value in which the parts at some paths are replaced.

    Args:
        value: SQL of the value.
        kind: Its type.
        parts: What makes the new part of the old one, by path.
        path: The path of the value itself.
    """
    return _replaced(value, kind, parts, path, depth=0)


def _replaced(value: str, kind: DataType, parts: Mapping[Path, Sql], path: Path, *, depth: int) -> str:
    from pyspark.sql.types import ArrayType, StructType

    if path in parts:
        return parts[path](value)
    if not any(each[: len(path)] == path for each in parts):
        return value
    if isinstance(kind, ArrayType):
        item = f"x{depth}"
        inner = _replaced(item, kind.elementType, parts, (*path, None), depth=depth + 1)
        return f"transform({value}, {item} -> {inner})"
    if not isinstance(kind, StructType):
        return value
    fields = ", ".join(
        f"{text_sql(each.name)}, "
        + _replaced(f"{value}.{name_sql(each.name)}", each.dataType, parts, (*path, each.name), depth=depth)
        for each in kind.fields
    )
    return f"if({value} is null, null, named_struct({fields}))"

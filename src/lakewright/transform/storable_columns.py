"""Column names and types that a table, or a file, can hold, and checks for names that clash.

Source: `processing-strategies.md`, "Common Processing Pipeline" (Normalize column names).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from lakewright.errors import SchemaDriftError, TargetError
from lakewright.schema.shape import has_part, mapped, parts
from lakewright.schema.spark import column_types
from lakewright.schema.sql import name_sql
from lakewright.schema.types import TEXT, VOID, Scalar, Type
from lakewright.spark.functions import functions
from lakewright.spec.models.column import normal_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_UNSTORABLE = ("interval", "time")

_NO_PARTITIONS = ("binary", "array", "map", "struct", "variant")


def check_names(names: Iterable[str], reserved: Iterable[str]) -> None:
    """Raise `SchemaDriftError` if names of a slice's columns clash with each other or with system columns.

    Raises:
        SchemaDriftError: Two names differ only in case, or one is the name of a system column.
    """
    taken = {name.lower(): name for name in reserved}
    seen: dict[str, str] = {}
    for name in names:
        key = name.lower()
        if key in taken:
            raise SchemaDriftError(
                f"the slice's column {name!r} has the name of the system column {taken[key]!r}",
                remedy="Give it another name in the source, or a `systemfield_prefix` that no source uses.",
                details={"columns": [name, taken[key]]},
            )
        if key in seen:
            raise _clash(repr(seen[key]), name, name)
        seen[key] = name


def final_names(names: Iterable[str], renames: Mapping[str, str], reserved: Iterable[str]) -> dict[str, str]:
    """Return the name of each column in silver: renamed, and without characters that a table can't hold.

    Args:
        names: Columns of the slice, in any case.
        renames: Old to new names; the case of the old ones is ignored.
        reserved: Names that no column of the slice may get.

    Raises:
        SchemaDriftError: A name has no valid character, or two columns would get the same name.

    Example:
        >>> final_names(["net price", "id"], {"ID": "key"}, [])
        {'net price': 'netprice', 'id': 'key'}
    """
    new_names = {old.lower(): new for old, new in renames.items()}
    taken = {name.lower(): name for name in reserved}
    final: dict[str, str] = {}
    owners: dict[str, str] = {}
    for name in names:
        found = normal_name(new_names.get(name.lower(), name))
        key = found.lower()
        if not found:
            raise SchemaDriftError(
                f"the column name {name!r} has no character that a table can hold",
                remedy="Give the column a `newname`.",
                details={"columns": [name]},
            )
        if key in owners or key in taken:
            other = repr(owners[key]) if key in owners else f"the system column {taken[key]!r}"
            raise _clash(other, name, found)
        owners[key] = name
        final[name] = found
    return final


def _clash(other: str, name: str, result: str) -> SchemaDriftError:
    return SchemaDriftError(
        f"the column {name!r} would be {result!r} in the silver table, as {other} is already",
        remedy="Give one of them a `newname`, or rename it with a transformation.",
        details={"columns": [other, name]},
    )


def check_storable(column: str, kind: Type, *, is_partition: bool = False) -> None:
    """Raise `SchemaDriftError` for the first type, or name of a field, in a column that no table can hold."""
    if is_partition and kind.ddl.partition("<")[0] in _NO_PARTITIONS:
        raise SchemaDriftError(
            f"column {column!r} has the type {kind.ddl}, by which no table is partitioned",
            remedy="Partition by another column, or by an expression that makes a text of it.",
            details={"column": column},
        )
    for path, problem in _problems(column, kind):
        raise SchemaDriftError(
            f"column {path!r} {problem}",
            remedy="Convert the column with an expression in the entity, or correct the slice.",
            details={"column": path},
        )


def _problems(path: str, kind: Type) -> Iterator[tuple[str, str]]:
    """Yield what a table cannot hold of a column: the path to it, and what is wrong with it."""
    if isinstance(kind, Scalar) and kind.name.partition(" ")[0].partition("(")[0] in _UNSTORABLE:
        yield path, f"has the type {kind.ddl}, which a table cannot hold"
    steps = [step.lower() for step, _, _ in parts(kind)]
    for step, part, _ in parts(kind):
        inner = path + step
        if step == ".":
            yield inner, "has a field whose name consists only of characters that a table cannot hold"
        elif step and steps.count(step.lower()) > 1:
            yield inner, "comes from several fields whose names a table cannot tell apart"
        yield from _problems(inner, part)


def binary_column(frame: DataFrame) -> str | None:
    """Return the first column with binary values, also inside of others; None if there is none.

    CSV has these in a form that no reader takes for bytes again.
    """
    return column_with(frame, "binary")


def check_text_columns(label: str, frame: DataFrame) -> None:
    """Raise an error if rows that are to be written as CSV have binary values.

    Raises:
        TargetError: A column has them.
    """
    name = binary_column(frame)
    if name is not None:
        raise TargetError(
            f"{label}: column {name!r} has binary values, which CSV does not hold",
            remedy="Write them as text, such as `base64(…)` gives it, or in another format.",
        )


def column_with(frame: DataFrame, start: str) -> str | None:
    """Return the first column with values, also inside of others, of a type whose name starts so; or None."""

    def is_part(kind: Type) -> bool:
        return isinstance(kind, Scalar) and kind.name.startswith(start)

    types = column_types(frame.schema).items()
    return next((name for name, kind in types if has_part(kind, is_part)), None)


def without_typeless(frame: DataFrame) -> DataFrame:
    """Return a frame in which columns without any value, also inside of others, are texts."""
    types = {name: mapped(kind, _typed) for name, kind in column_types(frame.schema).items()}
    typed = {
        name: functions.col(name_sql(name)).cast(types[name].ddl)
        for name, kind in column_types(frame.schema).items()
        if types[name] != kind
    }
    return frame.withColumns(typed) if typed else frame


def _typed(kind: Type) -> Type:
    return TEXT if kind == VOID else kind

"""Types, and names of fields, that a table can hold."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.errors import SchemaDriftError
from lakewright.schema.types import Array, MapOf, Scalar, Struct, Type

__all__ = ["check_storable"]

_UNSTORABLE = ("interval", "time")


def check_storable(column: str, kind: Type) -> None:
    """Raise `SchemaDriftError` for the first type, or name of a field, in a column that no table can hold."""
    for path, problem in _problems(column, kind):
        raise SchemaDriftError(
            f"column {path!r} {problem}",
            remedy="Convert the column with an expression in the entity, or correct the slice.",
            details={"column": path},
        )


def _problems(path: str, kind: Type) -> Iterator[tuple[str, str]]:
    """Yield what a table cannot hold of a column: the path to it, and what is wrong with it."""
    if isinstance(kind, Array):
        yield from _problems(path, kind.element)
    elif isinstance(kind, MapOf):
        yield from _problems(path, kind.key)
        yield from _problems(path, kind.value)
    elif isinstance(kind, Struct):
        names = [field.name.lower() for field in kind.fields]
        for field in kind.fields:
            inner = f"{path}.{field.name}"
            if not field.name:
                yield inner, "has a field whose name consists only of characters that a table cannot hold"
            elif names.count(field.name.lower()) > 1:
                yield inner, "comes from several fields whose names a table cannot tell apart"
            yield from _problems(inner, field.type)
    elif isinstance(kind, Scalar) and kind.name.partition(" ")[0].partition("(")[0] in _UNSTORABLE:
        yield path, f"has the type {kind.ddl}, which a table cannot hold"

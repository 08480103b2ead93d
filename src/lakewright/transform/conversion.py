"""SQL that converts values of any type to a declared one; fields of structs are matched by their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lakewright.errors import SpecError
from lakewright.schema.sql import name_sql
from lakewright.schema.types import Array, Chars, MapOf, Scalar, Struct, StructField, Type
from lakewright.transform.casts import fitting_sql

__all__ = [
    "arranged",
    "comparable_sql",
    "converted_sql",
    "engine_type",
    "joined_shape",
    "lost_fields",
    "matched_fields",
]


def engine_type(declared: Type) -> Type:
    """Return the type that Spark gives a frame's column: texts of bounded length become unbounded."""
    if isinstance(declared, Chars):
        return Scalar("string")
    if isinstance(declared, Array):
        return Array(engine_type(declared.element))
    if isinstance(declared, MapOf):
        return MapOf(engine_type(declared.key), engine_type(declared.value))
    if isinstance(declared, Struct):
        return Struct(tuple(replace(field, type=engine_type(field.type)) for field in declared.fields))
    return declared


def converted_sql(value: str, source: Type, target: Type, *, column: str, is_strict: bool = False) -> str:
    """Return SQL that converts a value; null stays null.

    Spark's own cast matches the fields of structs by position. Here they are matched by name, in any case; by
    position only if no name is the same and there are as many. A field that the source lacks is null. A
    struct becomes a map of its fields that are not null.

    Args:
        value: SQL of the value.
        source: Its type.
        target: The type to convert it to.
        column: The column's name, for the error.
        is_strict: Whether a value that does not fit its type fails the query. Otherwise it becomes null, or
            an error in the session's ANSI mode.

    Raises:
        SpecError: A struct has none of the fields of its type.

    Example:
        >>> one = Struct((StructField("x", Scalar("int")), StructField("y", Scalar("int"))))
        >>> other = Struct((StructField("y", Scalar("int")), StructField("X", Scalar("string"))))
        >>> converted_sql("s", one, other, column="s")
        "if(s is null, null, named_struct('y', s.`y`, 'X', cast(s.`x` as string)))"
    """
    return _Conversion(column, is_strict).sql(value, source, target)


@dataclass(frozen=True, slots=True)
class _Conversion:
    """How values at one place inside a column are converted.

    Attributes:
        column: The place, as errors name it.
        depth: How many lambdas the place is in.
    """

    column: str
    is_strict: bool
    depth: int = 0

    def sql(self, value: str, source: Type, target: Type) -> str:
        """Return SQL of the converted value."""
        if engine_type(source) == engine_type(target) and not (self.is_strict and _has_chars(target)):
            return value
        if isinstance(source, Struct) and isinstance(target, Struct):
            return self._struct(value, source, target)
        if isinstance(source, Struct) and isinstance(target, MapOf):
            return self._map(value, source, target)
        variable, inner = f"x{self.depth}", replace(self, depth=self.depth + 1)
        if isinstance(source, Array) and isinstance(target, Array):
            return f"transform({value}, {variable} -> {inner.sql(variable, source.element, target.element)})"
        if isinstance(source, MapOf) and isinstance(target, MapOf):
            key = inner.sql(f"{variable}.key", source.key, target.key)
            entry = f"struct({key}, {inner.sql(f'{variable}.value', source.value, target.value)})"
            return f"map_from_entries(transform(map_entries({value}), {variable} -> {entry}))"
        fitting = fitting_sql(value, source, target, column=self.column) if self.is_strict else None
        return fitting or f"cast({value} as {engine_type(target).ddl})"

    def _map(self, value: str, source: Struct, target: MapOf) -> str:
        """Return SQL of a struct as a map; one of JSON is read as a struct of all keys, null where absent."""
        item = f"x{self.depth}"
        entries = ", ".join(f"struct({each})" for each in self._entries(value, source, target))
        present = f"map_from_entries(filter(array({entries}), {item} -> {item}.value is not null))"
        made = f"cast(map() as {engine_type(target).ddl})" if not entries else present
        return f"if({value} is null, null, {made})"

    def _entries(self, value: str, source: Struct, target: MapOf) -> Iterator[str]:
        key = replace(self, column=f"{self.column} key")
        for field in source.fields:
            own, name = f"{value}.{name_sql(field.name)}", _text(field.name)
            made = key.sql(name, Scalar("string"), target.key)
            if made != name:  # a name that is no key must not fail the rows that lack it
                made = f"if({own} is null, null, {made})"
            yield f"{made} as key, {self.sql(own, field.type, target.value)} as value"

    def _struct(self, value: str, source: Struct, target: Struct) -> str:
        parts = []
        for field, own in zip(target.fields, matched_fields(source, target, self.column), strict=True):
            made = f"cast(null as {engine_type(field.type).ddl})"
            if own is not None:
                inner = replace(self, column=f"{self.column}.{field.name}")
                made = inner.sql(f"{value}.{name_sql(own.name)}", own.type, field.type)
            parts.append(f"{_text(field.name)}, {made}")
        return f"if({value} is null, null, named_struct({', '.join(parts)}))"


def matched_fields(source: Struct, target: Struct, column: str) -> list[StructField | None]:
    """Return the field of the source for each field of the target, as `converted_sql` matches them.

    Raises:
        SpecError: None matches.
    """
    by_name = {field.name.lower(): field for field in source.fields}
    found = [by_name.get(field.name.lower()) for field in target.fields]
    if any(found):
        return found
    if len(source.fields) == len(target.fields):
        return list(source.fields)
    raise SpecError.of(
        f"column {column!r} has none of the fields {', '.join(field.name for field in target.fields)}",
        remedy=f"Its fields are {', '.join(by_name)}: rename them in the mapping, or correct the type.",
    )


def _text(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _has_chars(kind: Type) -> bool:
    if isinstance(kind, Array):
        return _has_chars(kind.element)
    if isinstance(kind, MapOf):
        return _has_chars(kind.key) or _has_chars(kind.value)
    if isinstance(kind, Struct):
        return any(_has_chars(field.type) for field in kind.fields)
    return isinstance(kind, Chars)


def lost_fields(source: Type, target: Type, path: str) -> Iterator[str]:
    """Yield the paths of fields that `converted_sql` leaves out, because the target lacks them."""
    if isinstance(source, Struct) and isinstance(target, Struct):
        kept = {field.name.lower(): field for field in target.fields}
        if not kept.keys() & {field.name.lower() for field in source.fields}:
            return  # matched by position
        for field in source.fields:
            own = f"{path}.{field.name}"
            if field.name.lower() not in kept:
                yield own
            else:
                yield from lost_fields(field.type, kept[field.name.lower()].type, own)
    elif isinstance(source, Array) and isinstance(target, Array):
        yield from lost_fields(source.element, target.element, path)
    elif isinstance(source, MapOf) and isinstance(target, MapOf):
        yield from lost_fields(source.value, target.value, path)


def comparable_sql(value: str, kind: Type, depth: int = 0) -> str:
    """Return SQL of a value that Spark can compare: a map is the list of its entries, in order.

    Example:
        >>> comparable_sql("m", MapOf(Scalar("string"), Scalar("int")))
        'array_sort(transform(map_entries(m), x0 -> struct(x0.key, x0.value)))'
    """
    item = f"x{depth}"
    if isinstance(kind, MapOf):
        entry = f"struct({item}.key, {comparable_sql(f'{item}.value', kind.value, depth + 1)})"
        return f"array_sort(transform(map_entries({value}), {item} -> {entry}))"
    if isinstance(kind, Array):
        inner = comparable_sql(item, kind.element, depth + 1)
        return value if inner == item else f"transform({value}, {item} -> {inner})"
    if isinstance(kind, Struct):
        own = [f"{value}.{name_sql(field.name)}" for field in kind.fields]
        parts = [
            comparable_sql(each, field.type, depth) for each, field in zip(own, kind.fields, strict=True)
        ]
        if parts == own:
            return value
        pairs = (f"{_text(field.name)}, {part}" for field, part in zip(kind.fields, parts, strict=True))
        return f"if({value} is null, null, named_struct({', '.join(pairs)}))"
    return value


def joined_shape(one: Type, other: Type) -> Type:
    """Return a type with the struct fields of both types at any depth; where they differ, that of the first.

    Example:
        >>> from lakewright.spec.models.type_text import parse_sql_type
        >>> joined_shape(*map(parse_sql_type, ("struct<a: int>", "struct<b: int, A: bigint>"))).ddl
        'struct<`a`: int, `b`: int>'
    """
    if isinstance(one, Array) and isinstance(other, Array):
        return Array(joined_shape(one.element, other.element))
    if isinstance(one, MapOf) and isinstance(other, MapOf):
        return MapOf(one.key, joined_shape(one.value, other.value))
    if not (isinstance(one, Struct) and isinstance(other, Struct)):
        return one
    others = {field.name.lower(): field for field in other.fields}
    kept = [
        replace(field, type=joined_shape(field.type, twin.type), nullable=True)
        if (twin := others.pop(field.name.lower(), None))
        else replace(field, nullable=True)
        for field in one.fields
    ]
    return Struct((*kept, *(replace(field, nullable=True) for field in others.values())))


def arranged(own: Type, shape: Type) -> Type:
    """Return a type with the struct fields of a shape, in its order; the fields that it has keep their types.

    Example:
        >>> from lakewright.spec.models.type_text import parse_sql_type
        >>> arranged(*map(parse_sql_type, ("struct<b: int>", "struct<a: int, b: bigint>"))).ddl
        'struct<`a`: int, `b`: int>'
    """
    if isinstance(own, Array) and isinstance(shape, Array):
        return Array(arranged(own.element, shape.element))
    if isinstance(own, MapOf) and isinstance(shape, MapOf):
        return MapOf(own.key, arranged(own.value, shape.value))
    if not (isinstance(own, Struct) and isinstance(shape, Struct)):
        return own
    present = {field.name.lower(): field.type for field in own.fields}
    return Struct(
        tuple(
            replace(each, type=arranged(present.get(each.name.lower(), each.type), each.type))
            for each in shape.fields
        )
    )

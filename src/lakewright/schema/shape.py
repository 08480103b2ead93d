"""The shapes of types: what Spark makes of them, their fields by name, and what is lost between two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import VOID, Array, Chars, MapOf, Scalar, Struct, StructField, Type

__all__ = [
    "arranged",
    "comparable_sql",
    "has_part",
    "joined_shape",
    "leaves",
    "lost_fields",
    "mapped",
    "matched_fields",
    "plain_type",
    "rebuilt_sql",
    "with_maps_sql",
    "with_names",
    "without_void",
]


def mapped(kind: Type, change: Callable[[Type], Type]) -> Type:
    """Return a type in which each part without others inside is replaced by what a function makes of it.

    Example:
        >>> mapped(Array(Chars(3)), lambda leaf: Scalar("string")).ddl
        'array<string>'
    """
    if isinstance(kind, Array):
        return Array(mapped(kind.element, change))
    if isinstance(kind, MapOf):
        return MapOf(mapped(kind.key, change), mapped(kind.value, change))
    if isinstance(kind, Struct):
        return Struct(tuple(replace(each, type=mapped(each.type, change)) for each in kind.fields))
    return change(kind)


def plain_type(declared: Type) -> Type:
    """Return the type that Spark gives a frame's column: texts of bounded length become unbounded.

    Fields are nullable, and have no description.
    """
    if isinstance(declared, Struct):
        return Struct(tuple(StructField(each.name, plain_type(each.type)) for each in declared.fields))
    if isinstance(declared, Array):
        return Array(plain_type(declared.element))
    if isinstance(declared, MapOf):
        return MapOf(plain_type(declared.key), plain_type(declared.value))
    return Scalar("string") if isinstance(declared, Chars) else declared


def with_names(kind: Type, rename: Callable[[str], str]) -> Type:
    """Return a type with other names of fields, at any depth.

    Example:
        >>> with_names(Struct((StructField("a b", Scalar("int")),)), lambda name: name.replace(" ", "")).ddl
        'struct<`ab`: int>'
    """
    if isinstance(kind, Array):
        return Array(with_names(kind.element, rename))
    if isinstance(kind, MapOf):
        return MapOf(with_names(kind.key, rename), with_names(kind.value, rename))
    if isinstance(kind, Struct):
        fields = (
            replace(each, name=rename(each.name), type=with_names(each.type, rename)) for each in kind.fields
        )
        return Struct(tuple(fields))
    return kind


def without_void(kind: Type, known: Type | None = None) -> Type | None:
    """Return a type in which parts without a type have that of the same part of another one, or are left out.

    Args:
        kind: The type.
        known: The other type; None leaves out all such parts.

    Returns:
        The type; None if nothing is left.

    Example:
        >>> without_void(Struct((StructField("a", Scalar("int")), StructField("b", Scalar("void"))))).ddl
        'struct<`a`: int>'
    """
    if isinstance(kind, Array):
        element = without_void(kind.element, known.element if isinstance(known, Array) else None)
        return None if element is None else Array(element)
    if isinstance(kind, MapOf):
        value = without_void(kind.value, known.value if isinstance(known, MapOf) else None)
        return None if value is None else MapOf(kind.key, value)
    if isinstance(kind, Struct):
        theirs = {each.name.lower(): each.type for each in known.fields} if isinstance(known, Struct) else {}
        kept = ((field, without_void(field.type, theirs.get(field.name.lower()))) for field in kind.fields)
        fields = tuple(replace(field, type=own) for field, own in kept if own is not None)
        return Struct(fields) if fields else None
    return known if kind == VOID else kind


def leaves(kind: Type, path: str) -> Iterator[tuple[str, Type]]:
    """Yield each part of a type without others inside, with its path; that of a list or map is its values'.

    Example:
        >>> [name for name, _ in leaves(Struct((StructField("a", Array(Scalar("int"))),)), "s")]
        ['s.a']
    """
    if isinstance(kind, Struct):
        for field in kind.fields:
            yield from leaves(field.type, f"{path}.{field.name.lower()}")
    elif isinstance(kind, MapOf):
        yield from leaves(kind.value, path)
    elif isinstance(kind, Array):
        yield from leaves(kind.element, path)
    else:
        yield path, kind


def has_part(kind: Type, is_wanted: Callable[[Type], bool]) -> bool:
    """Return whether a type, or one inside it, is a wanted one."""
    if is_wanted(kind):
        return True
    if isinstance(kind, Struct):
        return any(has_part(field.type, is_wanted) for field in kind.fields)
    if isinstance(kind, MapOf):
        return has_part(kind.key, is_wanted) or has_part(kind.value, is_wanted)
    return isinstance(kind, Array) and has_part(kind.element, is_wanted)


def matched_fields(source: Struct, target: Struct, *, by_position: bool = False) -> list[StructField | None]:
    """Return the field of the source for each field of the target: that of the same name, in any case.

    Args:
        source: The struct that values are taken from.
        target: The struct that they are converted to.
        by_position: Whether the position counts if no name is the same and there are as many fields.
    """
    by_name = {field.name.lower(): field for field in source.fields}
    found = [by_name.get(field.name.lower()) for field in target.fields]
    if by_position and not any(found) and len(source.fields) == len(target.fields):
        return list(source.fields)
    return found


def lost_fields(source: Type, target: Type, path: str) -> Iterator[str]:
    """Yield the paths of fields that a conversion leaves out, because the target lacks them."""
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


def comparable_sql(value: str, kind: Type) -> str:
    """Return SQL of a value that Spark can compare: a map is the list of its entries, in order.

    Example:
        >>> comparable_sql("m", MapOf(Scalar("string"), Scalar("int")))
        'array_sort(transform(map_entries(m), x0 -> struct(x0.key, x0.value)))'
    """

    def entries(own: str, _: MapOf, item: str, held: str) -> str:
        return f"array_sort(transform(map_entries({own}), {item} -> struct({item}.key, {held})))"

    return with_maps_sql(value, kind, entries)


def with_maps_sql(value: str, kind: Type, made: Callable[[str, MapOf, str, str], str]) -> str:
    """Return SQL of a value with other values in place of its maps, at any depth.

    Args:
        value: SQL of the value.
        kind: Its type.
        made: Returns SQL of what takes the place of a map, given the map, its type, the name of an entry, and
            the entry's value after its own maps were replaced.
    """

    def replaced(own: str, part: Type, path: str, depth: int) -> str | None:
        if not isinstance(part, MapOf):
            return None
        item = f"x{depth}"
        return made(own, part, item, rebuilt_sql(f"{item}.value", part.value, replaced, path, depth + 1))

    return rebuilt_sql(value, kind, replaced)


Change = Callable[[str, Type, str, int], str | None]


def rebuilt_sql(value: str, kind: Type, change: Change, path: str = "", depth: int = 0) -> str:
    """Return SQL of a value with other parts, at any depth; where none is another, it is the value itself.

    Args:
        value: SQL of the value.
        kind: Its type.
        change: Returns SQL of a part, given its SQL, type, path and depth; None if only parts inside it may
            be others.
        path: The path of the value.
        depth: How many lists and maps the value is in.

    Example:
        >>> rebuilt_sql("a", Array(Scalar("int")), lambda part, kind, *_: {"int": f"-{part}"}.get(kind.ddl))
        'transform(a, x0 -> -x0)'
    """
    if (made := change(value, kind, path, depth)) is not None:
        return made
    item = f"x{depth}"
    if isinstance(kind, Array):
        inner = rebuilt_sql(item, kind.element, change, path, depth + 1)
        return value if inner == item else f"transform({value}, {item} -> {inner})"
    if isinstance(kind, MapOf):
        key = rebuilt_sql(f"{item}.key", kind.key, change, path, depth + 1)
        held = rebuilt_sql(f"{item}.value", kind.value, change, path, depth + 1)
        if (key, held) == (f"{item}.key", f"{item}.value"):
            return value
        return f"map_from_entries(transform(map_entries({value}), {item} -> struct({key}, {held})))"
    if isinstance(kind, Struct):
        own = {each.name: f"{value}.{name_sql(each.name)}" for each in kind.fields}
        parts = {
            each.name: rebuilt_sql(own[each.name], each.type, change, f"{path}.{each.name}", depth)
            for each in kind.fields
        }
        pairs = (f"{text_sql(name)}, {part}" for name, part in parts.items())
        return value if parts == own else f"if({value} is null, null, named_struct({', '.join(pairs)}))"
    return value


def joined_shape(one: Type, other: Type) -> Type:
    """Return a type with the struct fields of both types at any depth; where they differ, that of the first.

    Example:
        >>> field = StructField("a", Scalar("int"))
        >>> joined_shape(Struct((field,)), Struct((StructField("b", Scalar("bigint")),))).ddl
        'struct<`a`: int, `b`: bigint>'
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
        >>> shape = Struct((StructField("a", Scalar("int")), StructField("b", Scalar("bigint"))))
        >>> arranged(Struct((StructField("b", Scalar("int")),)), shape).ddl
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

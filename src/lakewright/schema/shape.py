"""The shapes of types: what Spark makes of them, their fields by name, and what is lost between two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import TEXT, VOID, Array, Chars, MapOf, Struct, StructField, Type

NESTED = (Array, MapOf, Struct)
"""Types with others inside."""


def parts(kind: Type, other: Type | None = None) -> list[tuple[str, Type, Type | None]]:
    """Return the types right inside a type, each with what it adds to the path, and its twin in another type.

    Fields of structs are matched by name in any case. The twin is None where the other type has none.

    Example:
        >>> fields = (StructField("a", VOID), StructField("B", VOID))
        >>> [(step, twin and twin.ddl) for step, _, twin in parts(Struct(fields), Struct(fields[:1]))]
        [('.a', 'void'), ('.B', None)]
    """
    if isinstance(kind, Struct):
        theirs = {each.name.lower(): each.type for each in other.fields} if isinstance(other, Struct) else {}
        return [(f".{each.name}", each.type, theirs.get(each.name.lower())) for each in kind.fields]
    if isinstance(kind, Array):
        return [("", kind.element, other.element if isinstance(other, Array) else None)]
    if isinstance(kind, MapOf):
        key, value = (other.key, other.value) if isinstance(other, MapOf) else (None, None)
        return [("", kind.key, key), ("", kind.value, value)]
    return []


def with_parts(kind: Type, made: Iterable[Type]) -> Type:
    """Return a type with other types right inside it, in the order of `parts`."""
    if isinstance(kind, Struct):
        return Struct(tuple(replace(each, type=own) for each, own in zip(kind.fields, made, strict=True)))
    if isinstance(kind, Array):
        return Array(*made)
    return MapOf(*made) if isinstance(kind, MapOf) else kind


def mapped(kind: Type, change: Callable[[Type], Type]) -> Type:
    """Return a type in which each part without others inside is replaced by what a function makes of it.

    Example:
        >>> mapped(Array(Chars(3)), lambda leaf: TEXT).ddl
        'array<string>'
    """
    if not isinstance(kind, NESTED):
        return change(kind)
    return with_parts(kind, (mapped(part, change) for _, part, _ in parts(kind)))


def plain_type(declared: Type) -> Type:
    """Return the type that Spark gives a frame's column: texts of bounded length become unbounded.

    Fields are nullable, and have no description.
    """
    if isinstance(declared, Struct):
        return Struct(tuple(StructField(each.name, plain_type(each.type)) for each in declared.fields))
    if isinstance(declared, Chars):
        return TEXT
    return with_parts(declared, (plain_type(part) for _, part, _ in parts(declared)))


def with_names(kind: Type, rename: Callable[[str], str]) -> Type:
    """Return a type with other names of fields, at any depth.

    Example:
        >>> from lakewright.schema.types import Scalar
        >>> with_names(Struct((StructField("a b", Scalar("int")),)), lambda name: name.replace(" ", "")).ddl
        'struct<`ab`: int>'
    """
    if isinstance(kind, Struct):
        kind = Struct(tuple(replace(each, name=rename(each.name)) for each in kind.fields))
    return with_parts(kind, (with_names(part, rename) for _, part, _ in parts(kind)))


def without_void(kind: Type, known: Type | None = None) -> Type | None:
    """Return a type in which parts without a type have that of the same part of another one, or are left out.

    Args:
        kind: The type.
        known: The other type; None leaves out all such parts.

    Returns:
        The type; None if nothing is left.

    Example:
        >>> from lakewright.schema.types import Scalar
        >>> without_void(Struct((StructField("a", Scalar("int")), StructField("b", Scalar("void"))))).ddl
        'struct<`a`: int>'
    """
    if kind == VOID:
        return known
    made = [without_void(part, twin) for _, part, twin in parts(kind, known)]
    if isinstance(kind, Struct):
        both = zip(kind.fields, made, strict=True)
        fields = tuple(replace(each, type=own) for each, own in both if own is not None)
        return Struct(fields) if fields else None
    left = [each for each in made if each is not None]
    return with_parts(kind, left) if len(left) == len(made) else None


def leaves(kind: Type, path: str) -> Iterator[tuple[str, Type]]:
    """Yield each part of a type without others inside, with its path; that of a list or map is its values'.

    Example:
        >>> from lakewright.schema.types import Scalar
        >>> [name for name, _ in leaves(Struct((StructField("a", Array(Scalar("int"))),)), "s")]
        ['s.a']
    """
    if not isinstance(kind, NESTED):
        yield path, kind
    for step, part, _ in parts(kind)[-1:] if isinstance(kind, MapOf) else parts(kind):
        yield from leaves(part, path + step.lower())


def has_part(kind: Type, is_wanted: Callable[[Type], bool]) -> bool:
    """Return whether a type, or one inside it, is a wanted one."""
    return is_wanted(kind) or any(has_part(part, is_wanted) for _, part, _ in parts(kind))


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
    found, is_struct = parts(source, target), isinstance(source, Struct)
    if is_struct and all(twin is None for _, _, twin in found):
        return  # matched by position, or no struct
    for step, part, twin in found:
        if twin is not None:
            yield from lost_fields(part, twin, path + step)
        elif is_struct:
            yield path + step


def comparable_sql(value: str, kind: Type) -> str:
    """Return SQL of a value that Spark can compare: a map is the list of its entries, in order.

    Example:
        >>> from lakewright.schema.types import Scalar
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
        >>> from lakewright.schema.types import Scalar
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


def united(one: Type, other: Type, part: Callable[[Type, Type], Type | None]) -> Type | None:
    """Return two types as one, part by part; None if a part of both can't be one.

    Structs have the fields of both, matched by name in any case, those of the first one first.

    Args:
        one: The first type.
        other: The second type.
        part: Returns what two types become that are not both structs, lists or maps; None if nothing.
    """
    if not isinstance(one, NESTED) or type(one) is not type(other):
        return part(one, other)
    made = [own if twin is None else united(own, twin, part) for _, own, twin in parts(one, other)]
    left = [each for each in made if each is not None]
    if len(left) < len(made):
        return None
    both = with_parts(one, left)
    if not (isinstance(both, Struct) and isinstance(other, Struct)):
        return both
    names = {each.name.lower() for each in both.fields}
    return Struct((*both.fields, *(each for each in other.fields if each.name.lower() not in names)))


def joined_shape(one: Type, other: Type) -> Type:
    """Return a type with the struct fields of both types at any depth; where they differ, that of the first.

    Example:
        >>> from lakewright.schema.types import Scalar
        >>> field = StructField("a", Scalar("int"))
        >>> joined_shape(Struct((field,)), Struct((StructField("b", Scalar("bigint")),))).ddl
        'struct<`a`: int, `b`: bigint>'
    """
    return united(plain_type(one), plain_type(other), lambda own, _: own) or one


def arranged(own: Type, shape: Type) -> Type:
    """Return a type with the struct fields of a shape, in its order; the fields that it has keep their types.

    Example:
        >>> from lakewright.schema.types import Scalar
        >>> shape = Struct((StructField("a", Scalar("int")), StructField("b", Scalar("bigint"))))
        >>> arranged(Struct((StructField("b", Scalar("int")),)), shape).ddl
        'struct<`a`: int, `b`: int>'
    """
    if not isinstance(own, NESTED) or type(own) is not type(shape):
        return own
    found = parts(shape, own)
    return with_parts(shape, (part if twin is None else arranged(twin, part) for _, part, twin in found))

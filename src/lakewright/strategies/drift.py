"""Schema drift: how a slice's columns differ from its table's, and how they are aligned.

Source: `processing-strategies.md`, "Schema Drift".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright.errors import SchemaDriftError
from lakewright.schema.sql import name_sql
from lakewright.transform.casts import cast_sql
from lakewright.transform.steps import incompatible_type_error

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql.types import DataType, StructType

__all__ = ["Alignment", "Drift", "align", "convert_sql", "in_order"]

_WHOLE = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True, slots=True)
class Drift:
    """The differences between a slice's columns and its table's.

    Attributes:
        added: Columns that the table does not have.
        removed: Columns of the table that the slice does not have.
        retyped: Column to its types in table and slice, if they differ.
        inside: A text for each difference of these types, which names the field by its path.
        leaves_out: Whether columns that the table does not have are left out.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    retyped: Mapping[str, tuple[str, str]] | None = None
    inside: tuple[str, ...] = ()
    leaves_out: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.retyped)

    @property
    def messages(self) -> tuple[str, ...]:
        """A text for each difference."""
        added = (_new(name, leaves_out=self.leaves_out) for name in self.added)
        return (*added, *map(_missing, self.removed), *self.inside)

    def as_json(self) -> dict[str, Any]:
        """Return the drift as records and commits hold it."""
        retyped = {name: list(types) for name, types in (self.retyped or {}).items()}
        return {"added": list(self.added), "removed": list(self.removed), "retyped": retyped}


@dataclass(frozen=True, slots=True)
class Alignment:
    """A slice's columns, aligned with its table's.

    Attributes:
        columns: Name in the table to SQL over the slice's columns, for every present and new column of the
            table.
        drift: The differences.
        evolves: Whether the commit changes the table's schema.
        widens: Whether the commit widens the type of a column.
        types: Column of the table to the type that its values are converted to, if the slice's is another.
    """

    columns: Mapping[str, str]
    drift: Drift
    evolves: bool
    widens: bool
    types: Mapping[str, DataType] = field(default_factory=dict)


def align(slice_: StructType, table: StructType, *, policy: str, fixed: Collection[str]) -> Alignment:
    """Return how a slice's columns are aligned with its table's.

    Args:
        slice_: The slice's columns, including system columns.
        table: The table's columns.
        policy: `evolve` adds columns and widens types, `ignore` keeps the table's schema, `fail` allows no
            difference.
        fixed: Columns whose types never change: keys, partitions, system columns.

    Raises:
        SchemaDriftError: The policy does not allow a difference, or a type cannot be cast to the table's.
    """
    leaves_out = policy == "ignore"
    present = {field.name.lower(): field for field in slice_.fields}
    known = {field.name.lower() for field in table.fields}
    never = {name.lower() for name in fixed}
    columns: dict[str, str] = {}
    retyped: dict[str, tuple[str, str]] = {}
    types: dict[str, DataType] = {}
    removed: list[str] = []
    inside: list[str] = []
    is_wider = False
    for own in table.fields:
        found = present.get(own.name.lower())
        if found is None:
            removed.append(own.name)
            columns[own.name] = f"cast(null as {_ddl(own.dataType)})"
            continue
        can_evolve = policy == "evolve" and own.name.lower() not in never
        target = _union(own.dataType, found.dataType) if can_evolve else own.dataType
        is_wider = is_wider or _is_widened(own.dataType, target)
        columns[own.name] = convert_sql(name_sql(found.name), found.dataType, target, own.name)
        if found.dataType.simpleString() != own.dataType.simpleString():
            types[own.name] = target
            if in_order(found.dataType) != in_order(own.dataType):
                retyped[own.name] = (own.dataType.simpleString(), found.dataType.simpleString())
                inside.extend(_differences(own.name, own.dataType, found.dataType, leaves_out=leaves_out))
    added = [each for each in slice_.fields if each.name.lower() not in known]
    drift = Drift(tuple(each.name for each in added), tuple(removed), retyped, tuple(inside), leaves_out)
    if policy == "fail" and drift:
        raise SchemaDriftError(
            f"the slice's columns differ from the table's: {'; '.join(drift.messages)}",
            remedy="Correct the slice, or set schema_drift: evolve or ignore.",
            details=drift.as_json(),
        )
    if policy == "evolve":
        columns.update({each.name: name_sql(each.name) for each in added})
    evolves = policy == "evolve" and (bool(added) or is_wider or _has_new_fields(table, slice_))
    return Alignment(columns, drift, evolves=evolves, widens=is_wider, types=types)


def _new(path: str, *, leaves_out: bool) -> str:
    end = ", and left out (schema_drift: ignore)" if leaves_out else ""
    return f"column {path!r} is new{end}"


def _missing(path: str) -> str:
    return f"column {path!r} is missing; it is null in what is written"


def _differences(path: str, table: DataType, slice_: DataType, *, leaves_out: bool) -> Iterator[str]:
    """Yield a text for each difference of two types; fields and those of elements are named by their path."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(table, StructType) and isinstance(slice_, StructType):
        old, new = ({field.name.lower(): field for field in kind.fields} for kind in (table, slice_))
        for name, field in new.items():
            if name not in old:
                yield _new(f"{path}.{field.name}", leaves_out=leaves_out)
        for name, field in old.items():
            inner = f"{path}.{field.name}"
            if name in new:
                yield from _differences(inner, field.dataType, new[name].dataType, leaves_out=leaves_out)
            else:
                yield _missing(inner)
    elif isinstance(table, ArrayType) and isinstance(slice_, ArrayType):
        yield from _differences(path, table.elementType, slice_.elementType, leaves_out=leaves_out)
    elif isinstance(table, MapType) and isinstance(slice_, MapType):
        yield from _differences(path, table.keyType, slice_.keyType, leaves_out=leaves_out)
        yield from _differences(path, table.valueType, slice_.valueType, leaves_out=leaves_out)
    elif in_order(table) != in_order(slice_):
        yield f"column {path!r} is {slice_.simpleString()} in the slice, {table.simpleString()} in the table"


def in_order(kind: DataType) -> str:
    """Return a type with nested fields in the order of their names, in lower case.

    It is no drift if they only moved: JSON has no order of fields, and they are cast by name.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return f"array<{in_order(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<{in_order(kind.keyType)},{in_order(kind.valueType)}>"
    if isinstance(kind, StructType):
        fields = sorted(f"{each.name.lower()}:{in_order(each.dataType)}" for each in kind.fields)
        return f"struct<{','.join(fields)}>"
    return kind.simpleString()


def _union(table: DataType, slice_: DataType) -> DataType:
    """Return the table's type, widened to the slice's as far as Delta can."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(table, ArrayType) and isinstance(slice_, ArrayType):
        return ArrayType(_union(table.elementType, slice_.elementType))
    if isinstance(table, MapType) and isinstance(slice_, MapType):
        return MapType(_union(table.keyType, slice_.keyType), _union(table.valueType, slice_.valueType))
    if isinstance(table, StructType) and isinstance(slice_, StructType):
        return _union_of_structs(table, slice_)
    return slice_ if _widens(table, slice_) else table


def _union_of_structs(table: StructType, slice_: StructType) -> StructType:
    from pyspark.sql.types import StructField, StructType

    found = {field.name.lower(): field for field in slice_.fields}
    known = {field.name.lower() for field in table.fields}
    fields = [
        StructField(
            f.name,
            _union(f.dataType, found[f.name.lower()].dataType) if f.name.lower() in found else f.dataType,
        )
        for f in table.fields
    ]
    return StructType([*fields, *(field for field in slice_.fields if field.name.lower() not in known)])


def _widens(table: DataType, slice_: DataType) -> bool:
    """Return whether Delta changes the table's type to the slice's without rewriting files.

    Source: Delta's documentation, "Type widening" (automatic schema evolution).
    """
    from pyspark.sql.types import DecimalType

    if isinstance(table, DecimalType) and isinstance(slice_, DecimalType):
        digits = slice_.precision - slice_.scale - (table.precision - table.scale)
        return slice_ != table and digits >= 0 and slice_.scale >= table.scale
    old, new = table.simpleString(), slice_.simpleString()
    if old in _WHOLE and new in _WHOLE:
        return _WHOLE.index(old) < _WHOLE.index(new)
    return (old, new) == ("float", "double")


def _is_widened(before: DataType, after: DataType) -> bool:
    """Return whether a type, or one inside it, is wider than before; new fields do not count."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(before, ArrayType) and isinstance(after, ArrayType):
        return _is_widened(before.elementType, after.elementType)
    if isinstance(before, MapType) and isinstance(after, MapType):
        return _is_widened(before.keyType, after.keyType) or _is_widened(before.valueType, after.valueType)
    if isinstance(before, StructType) and isinstance(after, StructType):
        return any(_is_widened(field.dataType, after[field.name].dataType) for field in before.fields)
    return before.simpleString() != after.simpleString()


def _has_new_fields(table: DataType, slice_: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(table, ArrayType) and isinstance(slice_, ArrayType):
        return _has_new_fields(table.elementType, slice_.elementType)
    if isinstance(table, MapType) and isinstance(slice_, MapType):
        return _has_new_fields(table.valueType, slice_.valueType)
    if not (isinstance(table, StructType) and isinstance(slice_, StructType)):
        return False
    known = {field.name.lower(): field for field in table.fields}
    return any(
        field.name.lower() not in known or _has_new_fields(known[field.name.lower()].dataType, field.dataType)
        for field in slice_.fields
    )


def convert_sql(value: str, source: DataType, target: DataType, column: str, depth: int = 0) -> str:
    """Return SQL that casts a value to the target's type, fields by name; an unfit value fails the query."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if source.simpleString() == target.simpleString():
        return value
    if "void" in {source.typeName(), target.typeName()}:
        return f"cast(null as {_ddl(target) if target.typeName() != 'void' else 'void'})"
    one, other = (_family(kind) for kind in (source, target))
    if one != other:
        raise incompatible_type_error(column, source.simpleString(), target.simpleString())
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        item = f"e{depth}"
        inner = convert_sql(item, source.elementType, target.elementType, column, depth + 1)
        return f"transform({value}, {item} -> {inner})"
    if isinstance(source, MapType) and isinstance(target, MapType):
        item = f"e{depth}"
        key = convert_sql(f"{item}.key", source.keyType, target.keyType, column, depth + 1)
        inner = convert_sql(f"{item}.value", source.valueType, target.valueType, column, depth + 1)
        return f"map_from_entries(transform(map_entries({value}), {item} -> struct({key}, {inner})))"
    if isinstance(source, StructType) and isinstance(target, StructType):
        parts = ", ".join(_fields(value, source, target, column, depth))
        return f"if({value} is null, null, named_struct({parts}))"
    return cast_sql(value, source, target.simpleString(), column=column, is_exact=True)


def _fields(value: str, source: StructType, target: StructType, column: str, depth: int) -> Iterator[str]:
    from lakewright.schema.sql import text_sql

    found = {each.name.lower(): each for each in source.fields}
    for wanted in target.fields:
        own = found.get(wanted.name.lower())
        if own is None:
            inner = f"cast(null as {_ddl(wanted.dataType)})"
        else:
            path = f"{value}.{name_sql(own.name)}"
            inner = convert_sql(path, own.dataType, wanted.dataType, f"{column}.{wanted.name}", depth)
        yield f"{text_sql(wanted.name)}, {inner}"


def _family(kind: DataType) -> str:
    name = kind.typeName().partition("(")[0]
    return name if name in {"array", "map", "struct", "binary", "variant"} else "scalar"


def _ddl(kind: DataType) -> str:
    from lakewright.transform.steps import storable_sql

    return storable_sql(kind)

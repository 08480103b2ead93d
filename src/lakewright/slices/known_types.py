"""Types that are known of the columns of JSON before a slice is read: declared ones, and those of the table.

They decide how values are read without loss. What has no known type takes the inferred one; all else is
converted by the pipeline.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from lakewright.lake.observation import observe_table
from lakewright.schema.scalars import class_of
from lakewright.schema.shape import has_part
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql
from lakewright.schema.types import TEXT, VARIANT, Array, Decimal, MapOf, Scalar, Struct, StructField, Type
from lakewright.spec.models.type_text import parse_sql_type
from lakewright.transform.pipeline import expressions_of
from lakewright.transform.typed_columns import INFERRED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity

__all__ = [
    "KnownTypes",
    "columns_without_rows",
    "table_types",
    "wanted_types",
    "with_inferred_types",
    "with_types_of",
]

_DOUBLE = Scalar("double")

KnownTypes: TypeAlias = Mapping[str, Type]
"""Types of the columns of a table, by their names in silver in lower case."""


def table_types(lake: Lake, entity: Entity) -> KnownTypes:
    """Return the types of the columns of an entity's table; none without one, or if slices are no JSON."""
    if not entity.reads_json:
        return {}
    return {
        each.name.lower(): each.type
        for each in observe_table(lake, entity.places(lake.settings).silver).columns
    }


def with_types_of(frame: DataFrame, known: KnownTypes, entity: Entity) -> KnownTypes:
    """Return the known types with those of columns that a slice adds: the next slices must fit them, too."""
    if not entity.reads_json:
        return known
    own = {entity.silver_name(each.name).lower(): type_of(each.dataType) for each in frame.schema.fields}
    return {**{name: kind for name, kind in own.items() if kind != Scalar("void")}, **known}


def wanted_types(entity: Entity, known: KnownTypes) -> Callable[[str], Type | None]:
    """Return a function that gives the type of a column of the source: the declared one, else the table's.

    A column of whose fields some are declared by their paths has a struct of these and the table's others.
    A column that an expression replaces has none.
    """
    declared = {
        column.source.lower(): column.type
        for column in entity.columns
        if column.type is not None and not column.is_calculated
    }
    replaced = {name.lower() for name, _ in expressions_of(entity)}

    def wanted(name: str) -> Type | None:
        if (own := declared.get(name.lower())) is not None:
            return own
        of_table = None if name.lower() in replaced else known.get(entity.silver_name(name).lower())
        return _with_paths(of_table, f"{name.lower()}.", declared)

    return wanted


def _with_paths(kind: Type | None, path: str, declared: Mapping[str, Type]) -> Type | None:
    """Return a type in which fields have the types that are declared for their paths."""
    names = {each.removeprefix(path).partition(".")[0] for each in declared if each.startswith(path)}
    if not names:
        return kind
    fields = {f.name.lower(): f for f in kind.fields} if isinstance(kind, Struct) else {}
    for name in sorted(names):
        own, inner = fields.get(name), f"{path}{name}"
        found = declared.get(inner) or _with_paths(None if own is None else own.type, f"{inner}.", declared)
        if found is not None:
            fields[name] = StructField(name if own is None else own.name, found)
    return Struct(tuple(fields.values()))


def columns_without_rows(entity: Entity, known: KnownTypes) -> tuple[StructField, ...]:
    """Return the columns that an entity declares, for a slice of JSON that has no rows, and so tells none.

    Those without a declared type have that of the table's column. None are returned if one has neither.
    Optional columns are left out: a slice may lack them.
    """
    wanted = wanted_types(entity, known)
    names = (each.source for each in entity.columns if not (each.is_calculated or each.optional))
    types = {name: wanted(name) for name in names}
    columns = tuple(StructField(name, kind) for name, kind in types.items() if kind is not None)
    return columns if len(columns) == len(types) else ()


def with_inferred_types(frame: DataFrame, wanted: Callable[[str], Type | None], entity: Entity) -> DataFrame:
    """Return raw values in their inferred types, in all parts of columns of which no type is known.

    So are values that expressions use, whatever the slice's other values are. Other columns keep their raw
    types, with the inferred type of the whole in their metadata, under `INFERRED`.
    """
    from pyspark.sql import functions

    used = {word for _, text in expressions_of(entity) for word in re.findall(r"\w+", text.lower())}
    columns = {}
    for field in frame.schema.fields:
        raw, target = type_of(field.dataType), wanted(field.name)
        told = field.metadata.get(INFERRED)
        is_used = not used.isdisjoint(re.findall(r"\w+", field.name.lower()))
        own, agreed = _shown(raw, raw if told is None else parse_sql_type(told), target, is_used=is_used)
        value = name_sql(field.name)
        column = functions.col(value) if own == raw else functions.expr(f"cast({value} as {own.ddl})")
        # A struct of a known column may lack fields of the known type.
        if agreed != own or (target is not None and has_part(own, lambda part: isinstance(part, Struct))):
            columns[field.name] = column.alias(field.name, metadata={INFERRED: agreed.ddl})
        elif own != raw:
            columns[field.name] = column
    return frame.withColumns(columns) if columns else frame


def _shown(raw: Type, inferred: Type, target: Type | None, *, is_used: bool) -> tuple[Type, Type]:
    """Return the type that values are given, and the one on which they agree, part by part."""
    if isinstance(raw, Struct) and isinstance(inferred, Struct):
        known = {each.name.lower(): each.type for each in target.fields} if isinstance(target, Struct) else {}
        pairs = [
            _shown(one.type, other.type, known.get(one.name.lower()), is_used=is_used)
            for one, other in zip(raw.fields, inferred.fields, strict=True)
        ]
        return _struct_of(raw, [pair[0] for pair in pairs]), _struct_of(raw, [pair[1] for pair in pairs])
    if isinstance(raw, Array) and isinstance(inferred, Array):
        element = target.element if isinstance(target, Array) else None
        own, agreed = _shown(raw.element, inferred.element, element, is_used=is_used)
        return Array(own), Array(agreed)
    if isinstance(raw, MapOf) and isinstance(inferred, MapOf):
        value = target.value if isinstance(target, MapOf) else None
        own, agreed = _shown(raw.value, inferred.value, value, is_used=is_used)
        return MapOf(raw.key, own), MapOf(raw.key, agreed)
    return _shown_leaf(raw, inferred, target, is_used=is_used)


def _struct_of(names: Struct, types: Sequence[Type]) -> Struct:
    pairs = zip(names.fields, types, strict=True)
    return Struct(tuple(StructField(field.name, kind) for field, kind in pairs))


def _shown_leaf(raw: Type, inferred: Type, target: Type | None, *, is_used: bool) -> tuple[Type, Type]:
    if target is None:
        return inferred, inferred
    if raw == VARIANT and class_of(target) == "text":
        return TEXT, TEXT  # whatever kinds the slice has
    is_number = class_of(inferred) in ("whole", "decimal", "float")
    agreed = _DOUBLE if target == _DOUBLE and is_number else inferred
    return (agreed if is_used and not isinstance(target, Decimal) else raw), agreed

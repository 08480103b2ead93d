"""Types that are known of the columns of JSON before a slice is read: declared ones, and those of the table.

They decide how values are read without loss, not what becomes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from lakewright.lake.observation import observe_table
from lakewright.schema.spark import type_of
from lakewright.schema.types import Scalar, Struct, StructField, Type
from lakewright.transform.pipeline import expressions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.lake.lake import Lake
    from lakewright.spec.models.entity import Entity

__all__ = ["KnownTypes", "columns_without_rows", "table_types", "wanted_types", "with_types_of"]

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

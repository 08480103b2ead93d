"""What Spark may infer from JSON because of bad rows: a text for numbers, of a column or inside one.

The rules are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakewright.schema.spark import type_of
from lakewright.slices.json_columns import declared_types
from lakewright.transform.casts import cast_fault_sql, fitting_fault_sql
from lakewright.transform.pipeline import expressions_of

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from lakewright.slices.json_columns import KnownColumns
    from lakewright.slices.json_paths import Path
    from lakewright.spec.models.entity import Entity

__all__ = ["Suspect", "Wanted", "suspects_of"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The type that values are to fit.

    Attributes:
        kind: The type.
        place: The column, or the path of a field inside it, as reasons name it.
        is_of_table: Whether it is the table's type, not the declared one.
        is_inside: Whether it is inside a declared type.
        is_in_map: Whether it is inside a declared map; JSON has objects in place of maps.
    """

    kind: DataType
    place: str
    is_of_table: bool = False
    is_inside: bool = False
    is_in_map: bool = False

    def of_field(self, name: str) -> Wanted | None:
        """Return what is wanted of a field; None if the type does not have it."""
        from pyspark.sql.types import MapType, StructType

        if isinstance(self.kind, MapType) and not self.is_of_table:
            return replace(self, kind=self.kind.valueType, is_inside=True, is_in_map=True)
        fields = self.kind.fields if isinstance(self.kind, StructType) else []
        found = next((each for each in fields if each.name.lower() == name.lower()), None)
        if found is None:
            return None
        return replace(self, kind=found.dataType, place=f"{self.place}.{found.name}", is_inside=True)

    def of_elements(self) -> Wanted | None:
        """Return what is wanted of the elements of a list; None if the type is no list."""
        from pyspark.sql.types import ArrayType

        if not isinstance(self.kind, ArrayType):
            return None
        return replace(self, kind=self.kind.elementType, is_inside=True)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A column, or a part of one, whose inferred type may be that of bad rows.

    Attributes:
        path: The path to it, which begins with the column's name in the slice.
        inferred: The type that Spark infers.
        wanted: The type that its values are to fit.
    """

    path: Path
    inferred: DataType
    wanted: Wanted

    @property
    def column(self) -> str:
        """The name of the column in the slice."""
        return self.path[0] or ""

    def fault_sql(self, value: str, kind: DataType) -> str:
        """Return SQL of why a value of a type does not fit; null if it does."""
        wanted = self.wanted
        if wanted.is_inside and not wanted.is_of_table:
            fault = fitting_fault_sql(value, type_of(kind), type_of(wanted.kind), column=wanted.place)
        else:
            target = wanted.kind.simpleString()
            fault = cast_fault_sql(value, kind, target, column=wanted.place, is_exact=wanted.is_of_table)
        return fault or "cast(null as string)"

    def is_alike(self, variant: str) -> str:
        """Return SQL of whether a variant is a number, or a boolean, as the values of the column are."""
        from pyspark.sql.types import BooleanType

        kinds = "BOOLEAN" if isinstance(self.wanted.kind, BooleanType) else "BIGINT|DOUBLE|DECIMAL.*"
        return f"coalesce(schema_of_variant({variant}) rlike '^({kinds})$', false)"


def suspects_of(inferred: StructType, known: KnownColumns, entity: Entity) -> tuple[Suspect, ...]:
    """Return the columns, and parts of columns, whose inferred types may be those of bad rows.

    None, if the entity does not put rows aside, or if a list of expressions makes new columns. A column that
    an expression replaces is left out, since its values need not fit before.
    """
    if entity.settings.on_bad_rows != "quarantine" or any(step.select for step in entity.transformations):
        return ()
    return tuple(_suspects(inferred, known, entity))


def _suspects(inferred: StructType, known: KnownColumns, entity: Entity) -> Iterator[Suspect]:
    columns = {field.name.lower() for field in inferred.fields}
    declared = declared_types(entity)
    search = _Search({name: kind for name, kind in declared.items() if "." in name and name not in columns})
    replaced = {name.lower() for name, _ in expressions_of(entity)}
    for field in inferred.fields:
        name, silver = field.name.lower(), entity.silver_name(field.name)
        own, of_table, wanted = declared.get(name), known.types.get(silver.lower()), None
        if name in replaced:
            continue
        if own is not None:
            wanted = Wanted(own, field.name)
        elif of_table is not None and entity.settings.schema_drift != "fail":
            wanted = Wanted(of_table, silver, is_of_table=True)
        yield from search.inside(field.dataType, (field.name,), wanted)


@dataclass(frozen=True, slots=True)
class _Search:
    """The search for suspects in one slice.

    Attributes:
        declared: The types that are declared for fields inside columns, by their names joined by dots, in
            lower case.
    """

    declared: Mapping[str, DataType]

    def inside(self, inferred: DataType, path: Path, wanted: Wanted | None) -> Iterator[Suspect]:
        """Yield the suspects at a path and inside of it."""
        from pyspark.sql.types import ArrayType, StructType

        name = ".".join(part or "[]" for part in path)
        if (own := self.declared.get(name.lower())) is not None:
            wanted = Wanted(own, name)
        if isinstance(inferred, StructType):
            yield from self._in_fields(inferred, path, wanted)
        elif isinstance(inferred, ArrayType):
            yield from self.inside(inferred.elementType, (*path, None), wanted and wanted.of_elements())
        elif wanted is not None and _may_be_of_bad_rows(inferred, wanted):
            yield Suspect(path, inferred, wanted)

    def _in_fields(self, inferred: StructType, path: Path, wanted: Wanted | None) -> Iterator[Suspect]:
        if len({field.name.lower() for field in inferred.fields}) < len(inferred.fields):
            return  # Spark cannot tell the fields apart
        for field in inferred.fields:
            of_field = wanted and wanted.of_field(field.name)
            yield from self.inside(field.dataType, (*path, field.name), of_field)


def _may_be_of_bad_rows(inferred: DataType, wanted: Wanted) -> bool:
    """Return whether Spark may have inferred a type because of bad rows.

    Declared whole numbers are read as exact decimals if some have a fraction, which changes no hash.
    """
    from pyspark.sql.types import BooleanType, DecimalType, DoubleType, IntegralType, NumericType, StringType

    if isinstance(inferred, StringType):
        return isinstance(wanted.kind, NumericType | BooleanType)
    has_fraction = isinstance(inferred, DoubleType) and isinstance(wanted.kind, IntegralType | DecimalType)
    return has_fraction and (wanted.is_of_table or wanted.is_in_map)

"""Simple values of JSON in types that follow from their columns, not from the values of one slice.

Spark infers `bigint` from a slice of whole prices and `double` from the next one, and a `double` keeps about
15 digits. With one type for all slices, equal values have equal hashes, and decimals keep their digits. The
rules are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.slices.json_columns import declared_types
from lakewright.spec.models.entity import EXACT_DIGITS
from lakewright.transform.pipeline import expressions_of

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, DecimalType, NumericType, StructType

    from lakewright.slices.json_columns import KnownColumns
    from lakewright.spec.models.entity import Entity

__all__ = ["read_type", "with_typed_values"]

_DIGITS = 38
_FRACTION = 18
"""Digits after the point that numbers keep, if there is room for them, until they are cast to their type."""


def with_typed_values(inferred: StructType, known: KnownColumns, entity: Entity) -> StructType:
    """Return the columns with which a slice is read.

    Args:
        inferred: The columns as Spark infers them from JSON.
        known: What is known of them.
        entity: The entity.
    """
    from pyspark.sql.types import StructField, StructType

    if not known.are_typed:
        return inferred
    reading = _Reading(declared_types(entity))
    calculated = {name.lower() for name, _ in expressions_of(entity)}
    fields = []
    for field in inferred.fields:
        name = field.name.lower()
        of_table = None if name in calculated else known.types.get(entity.silver_name(name).lower())
        kind = reading.typed(field.dataType, name, of_table, is_declared=False)
        fields.append(StructField(field.name, kind))
    return StructType(fields)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The reading of one slice.

    Attributes:
        declared: The declared types, by their columns' names in lower case; a name with dots is that of a
            field inside a column.
    """

    declared: Mapping[str, DataType]

    def typed(self, inferred: DataType, path: str, wanted: DataType | None, *, is_declared: bool) -> DataType:
        """Return the type in which a value is read.

        Args:
            inferred: The type that Spark infers.
            path: The names of the column and the fields that lead to it, joined by dots, in lower case.
            wanted: The type of the same part of the column; None if the column does not have it.
            is_declared: Whether it is the declared one, not that of the table.
        """
        from pyspark.sql.types import ArrayType, StructField, StructType

        own = self.declared.get(path)
        if own is not None:
            wanted, is_declared = own, True
        if isinstance(inferred, StructType):
            inside = dict(_parts(wanted))
            kinds = [
                (f, self.typed(f.dataType, f"{path}.{name}", inside.get(name), is_declared=is_declared))
                for f, name in ((f, f.name.lower()) for f in inferred.fields)
            ]
            return StructType([StructField(field.name, kind) for field, kind in kinds])
        if isinstance(inferred, ArrayType):
            element = wanted.elementType if isinstance(wanted, ArrayType) else None
            return ArrayType(self.typed(inferred.elementType, f"{path}[]", element, is_declared=is_declared))
        return inferred if wanted is None else read_type(inferred, wanted, is_declared=is_declared)


def _parts(kind: DataType | None) -> Iterator[tuple[str, DataType]]:
    """Yield the fields of a struct, by their names in lower case."""
    from pyspark.sql.types import StructType

    if isinstance(kind, StructType):
        yield from ((field.name.lower(), field.dataType) for field in kind.fields)


def read_type(inferred: DataType, wanted: DataType, *, is_declared: bool) -> DataType:
    """Return the type in which a simple value is read, for a column of a type."""
    from pyspark.sql.types import BooleanType, CharType, NumericType, StringType, VarcharType

    if isinstance(wanted, StringType | CharType | VarcharType):
        return StringType() if isinstance(inferred, NumericType | BooleanType) else inferred
    if not isinstance(inferred, NumericType) or not isinstance(wanted, NumericType):
        return inferred
    return _number_type(inferred, wanted, is_declared=is_declared)


def _number_type(inferred: NumericType, wanted: NumericType, *, is_declared: bool) -> NumericType:
    """Return the type in which a number is read.

    One with a fraction stays as it is if an undeclared column has none: the column's type may change.
    """
    from pyspark.sql.types import DecimalType, DoubleType, IntegralType

    if not isinstance(wanted, IntegralType | DecimalType):
        return DoubleType()
    if not is_declared:
        return inferred
    digits = wanted if isinstance(wanted, DecimalType) else DecimalType(20, 0)
    if digits.scale > 0:
        return DoubleType() if digits.precision <= EXACT_DIGITS else _exact(digits)
    return _exact(digits) if isinstance(inferred, DoubleType) else inferred


def _exact(wanted: DecimalType) -> DecimalType:
    """Return a decimal that holds what fits a type, with more digits for the fraction: a cast rounds them."""
    from pyspark.sql.types import DecimalType

    whole = wanted.precision - wanted.scale
    return DecimalType(_DIGITS, min(max(wanted.scale, _FRACTION), _DIGITS - whole))

"""JSON in which a value does not fit its column, so that Spark infers another type for the whole column.

If bad rows are put aside, the other rows are read as in a slice without them: equal values then have equal
hashes. The rules are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.slices.json_columns import declared_types
from lakewright.slices.json_values import read_type
from lakewright.transform.casts import cast_fault_sql
from lakewright.transform.misfits import MISFIT, Misfit, misfit_sql
from lakewright.transform.pipeline import expressions_of
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import DataType, StructType

    from lakewright.slices.json_columns import KnownColumns
    from lakewright.spec.models.entity import Entity

__all__ = ["Suspect", "good_type", "good_types", "suspects_of", "variants_of", "with_good_values"]

_WHOLE = "schema_of_variant({0}) = 'BIGINT' or schema_of_variant({0}) rlike '^DECIMAL.(19|2.|3.),0.$'"
_LONG_DIGITS = 20
"""The precision of decimals that Spark infers for whole numbers, of which some are too large for `bigint`."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A column whose inferred type may be that of bad rows.

    Attributes:
        name: Its name in the slice.
        inferred: The type that Spark infers.
        wanted: The declared type, or that of the table.
        of_table: The name of the table's column; None if the type is declared.
    """

    name: str
    inferred: DataType
    wanted: DataType
    of_table: str | None

    def fault_sql(self, value: str, kind: DataType) -> str:
        """Return SQL of why a value of a type does not fit; null if it does."""
        target, is_exact = self.wanted.simpleString(), self.of_table is not None
        fault = cast_fault_sql(value, kind, target, column=self.name, is_exact=is_exact)
        return fault or "cast(null as string)"

    @property
    def is_like_column(self) -> str:
        """SQL of whether a variant is a number, or a boolean, as the values of the column are."""
        from pyspark.sql.types import BooleanType

        kinds = "BOOLEAN" if isinstance(self.wanted, BooleanType) else "BIGINT|DOUBLE|DECIMAL.*"
        return f"coalesce(schema_of_variant({name_sql(self.name)}) rlike '^({kinds})$', false)"


def suspects_of(inferred: StructType, known: KnownColumns, entity: Entity) -> tuple[Suspect, ...]:
    """Return the columns whose inferred type may be that of bad rows.

    None, if the entity does not put rows aside, or if a list of expressions makes new columns. A column that
    an expression replaces is left out, since its values need not fit before.
    """
    if entity.settings.on_bad_rows != "quarantine" or any(step.select for step in entity.transformations):
        return ()
    return tuple(_suspects(inferred, known, entity))


def _suspects(inferred: StructType, known: KnownColumns, entity: Entity) -> Iterator[Suspect]:
    from pyspark.sql.types import BooleanType, DecimalType, DoubleType, IntegralType, NumericType, StringType

    declared = declared_types(entity)
    replaced = {name.lower() for name, _ in expressions_of(entity)}
    for field in inferred.fields:
        name, silver = field.name.lower(), entity.silver_name(field.name)
        own, of_table = declared.get(name), None
        if own is None and entity.settings.schema_drift != "fail":
            own, of_table = known.types.get(silver.lower()), silver
        if own is None or name in replaced:
            continue
        is_text = isinstance(field.dataType, StringType) and isinstance(own, NumericType | BooleanType)
        has_fraction = isinstance(field.dataType, DoubleType) and isinstance(own, IntegralType | DecimalType)
        if is_text or (has_fraction and of_table is not None):
            yield Suspect(field.name, field.dataType, own, of_table)


def variants_of(columns: StructType, suspects: Sequence[Suspect]) -> StructType:
    """Return the columns, those that are suspect as variants, which know the kind of each value."""
    from pyspark.sql.types import StructField, StructType, VariantType

    names = {each.name for each in suspects}
    return StructType([StructField(f.name, VariantType()) if f.name in names else f for f in columns.fields])


def good_types(frame: DataFrame, suspects: Sequence[Suspect], *, are_typed: bool) -> Mapping[str, DataType]:
    """Return the types in which the values of good rows are read, by column, found by one query.

    Columns that Spark would infer in the same way without the bad rows are left out.

    Args:
        frame: The rows, with the columns as variants.
        suspects: The columns.
        are_typed: Whether values are read in the types of their columns; see `reads_by_type`.
    """
    sums = [
        f"{sql} as `{number} {name}`" for number, each in enumerate(suspects) for name, sql in _sums(each)
    ]
    row = frame.selectExpr(*sums).first()
    if row is None:
        return {}
    found = {
        each.name: good_type(each, _facts(row, n), are_typed=are_typed) for n, each in enumerate(suspects)
    }
    return {name: kind for name, kind in found.items() if kind is not None}


def _facts(row: Row, number: int) -> dict[str, Any]:
    own = f"{number} "
    return {name.removeprefix(own): v for name, v in row.asDict().items() if name.startswith(own)}


def _sums(suspect: Suspect) -> Iterator[tuple[str, str]]:
    """Yield what is to be known of a column: a name, and SQL over its variants."""
    from pyspark.sql.types import DoubleType, StringType

    value = name_sql(suspect.name)
    text, like = f"cast({value} as string)", suspect.is_like_column
    whole = f"coalesce({_WHOLE.format(value)}, false)"
    fits_text = f"{text} is not null and {suspect.fault_sql(text, StringType())} is null"
    number = f"try_cast({text} as double)"
    fits = f"{number} is null or {suspect.fault_sql(number, DoubleType())} is null"
    yield "other", f"coalesce(bool_or(not {like} and ({fits_text})), false)"
    yield "values", f"coalesce(bool_or({like} and ({fits})), false)"
    yield "fractions", f"coalesce(bool_or({like} and not {whole} and ({fits})), false)"
    yield "digits", f"max(if({like} and {whole}, length(ltrim('-', {text})), 0))"
    yield "large", f"coalesce(bool_or({like} and {whole} and try_cast({text} as bigint) is null), false)"


def good_type(suspect: Suspect, facts: Mapping[str, Any], *, are_typed: bool) -> DataType | None:
    """Return the type in which the values of good rows are read; None if it is the inferred one.

    Args:
        suspect: The column.
        facts: What is known of its values. `other`: whether one fits that is not written as a number, or a
            boolean. `values`: whether one fits that is. `fractions`: whether one of these has a fraction.
            `digits` and `large`: the digits of whole numbers, and whether one exceeds `bigint`.
        are_typed: Whether values are read in the types of their columns.
    """
    from pyspark.sql.types import BooleanType, DecimalType, DoubleType, LongType

    inferred: DataType
    if facts["other"] or not facts["values"]:
        return None
    if isinstance(suspect.wanted, BooleanType):
        return BooleanType()
    if facts["fractions"]:
        inferred = DoubleType()
    elif facts["large"]:
        inferred = DecimalType(min(max(facts["digits"], _LONG_DIGITS), 38), 0)
    else:
        inferred = LongType()
    if are_typed:
        inferred = read_type(inferred, suspect.wanted, is_declared=suspect.of_table is None)
    return None if inferred == suspect.inferred else inferred


def with_good_values(
    frame: DataFrame, suspects: Sequence[Suspect], types: Mapping[str, DataType]
) -> DataFrame:
    """Return the rows with the values in their types, and with the column `MISFIT`.

    Args:
        frame: The rows, with the columns as variants.
        suspects: The columns.
        types: The types, by column.
    """
    from pyspark.sql import functions

    columns, misfits = {}, []
    for each in suspects:
        value = name_sql(each.name)
        text = f"cast({value} as string)"
        typed = f"if({each.is_like_column}, try_cast({text} as {types[each.name].simpleString()}), null)"
        condition = f"({text} is not null and {typed} is null)"
        misfits.append(Misfit(each.name, text, condition, each.wanted.simpleString(), each.of_table))
        columns[each.name] = functions.expr(typed)
    return frame.withColumns({**columns, MISFIT: functions.expr(misfit_sql(misfits))})

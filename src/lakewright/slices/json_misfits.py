"""JSON in which a value does not fit its column, so that Spark infers another type for all rows.

If bad rows are put aside, the other rows are read as in a slice without them: equal values then have equal
hashes. This holds for columns, and for fields and elements inside them. The rules are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from lakewright.schema.sql import name_sql
from lakewright.slices.json_paths import Path, any_sql, first_sql, max_sql, replaced_sql, with_types
from lakewright.slices.json_values import read_type
from lakewright.transform.bad_rows import UNPARSED
from lakewright.transform.misfits import MISFIT, Misfit, misfit_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import DataType, StructType

    from lakewright.slices.json_suspects import Suspect

__all__ = ["good_type", "good_types", "variants_of", "with_good_values"]

_WHOLE = "schema_of_variant({0}) = 'BIGINT' or schema_of_variant({0}) rlike '^DECIMAL.(19|2.|3.),0.$'"
_LONG_DIGITS = 20
"""The precision of decimals that Spark infers for whole numbers, of which some are too large for `bigint`."""


def variants_of(columns: StructType, suspects: Sequence[Suspect]) -> StructType:
    """Return the columns, what is suspect in them as variants, which know the kind of each value."""
    from pyspark.sql.types import StructType, VariantType

    found = with_types(columns, {each.path: VariantType() for each in suspects})
    return found if isinstance(found, StructType) else columns


def good_types(frame: DataFrame, suspects: Sequence[Suspect], *, are_typed: bool) -> Mapping[Path, DataType]:
    """Return the types in which the values of good rows are read, by path, found by one query.

    What Spark would infer in the same way without the bad rows is left out.

    Args:
        frame: The rows, with what is suspect as variants.
        suspects: What is suspect.
        are_typed: Whether values are read in the types of their columns; see `reads_by_type`.
    """
    sums = [f"{sql} as `{n} {name}`" for n, each in enumerate(suspects) for name, sql in _sums(each)]
    row = frame.selectExpr(*sums).first()
    if row is None:
        return {}
    found = {
        each.path: good_type(each, _facts(row, n), are_typed=are_typed) for n, each in enumerate(suspects)
    }
    return {path: kind for path, kind in found.items() if kind is not None}


def _facts(row: Row, number: int) -> dict[str, Any]:
    own = f"{number} "
    return {name.removeprefix(own): v for name, v in row.asDict().items() if name.startswith(own)}


def _sums(suspect: Suspect) -> Iterator[tuple[str, str]]:
    """Yield what is to be known of the values: a name, and SQL over variants."""
    tests = {"other": _is_other, "values": _is_value, "fractions": _is_fraction, "large": _is_large}
    column, inside = name_sql(suspect.column), suspect.path[1:]
    for name, test in tests.items():
        yield name, f"coalesce(bool_or({any_sql(column, inside, partial(test, suspect))}), false)"
    yield "digits", f"max({max_sql(column, inside, partial(_digits, suspect))})"


def _is_other(suspect: Suspect, value: str) -> str:
    from pyspark.sql.types import StringType

    text = _text(value)
    fits = f"{text} is not null and {suspect.fault_sql(text, StringType())} is null"
    return f"(not {suspect.is_alike(value)} and ({fits}))"


def _is_value(suspect: Suspect, value: str) -> str:
    from pyspark.sql.types import DoubleType

    number = f"try_cast({_text(value)} as double)"
    fits = f"{number} is null or {suspect.fault_sql(number, DoubleType())} is null"
    return f"({suspect.is_alike(value)} and ({fits}))"


def _is_fraction(suspect: Suspect, value: str) -> str:
    return f"({_is_value(suspect, value)} and not {_is_whole(value)})"


def _is_large(suspect: Suspect, value: str) -> str:
    is_long = f"try_cast({_text(value)} as bigint) is null"
    return f"({suspect.is_alike(value)} and {_is_whole(value)} and {is_long})"


def _digits(suspect: Suspect, value: str) -> str:
    condition = f"{suspect.is_alike(value)} and {_is_whole(value)}"
    return f"if({condition}, length(ltrim('-', {_text(value)})), 0)"


def _is_whole(value: str) -> str:
    return f"coalesce({_WHOLE.format(value)}, false)"


def _text(value: str) -> str:
    return f"cast({value} as string)"


def good_type(suspect: Suspect, facts: Mapping[str, Any], *, are_typed: bool) -> DataType | None:
    """Return the type in which the values of good rows are read; None if it is the inferred one.

    Args:
        suspect: What is suspect.
        facts: What is known of its values. `other`: whether one fits that is not written as a number, or a
            boolean. `values`: whether one fits that is. `fractions`: whether one of these has a fraction.
            `digits` and `large`: the digits of whole numbers, and whether one exceeds `bigint`.
        are_typed: Whether values are read in the types of their columns.
    """
    from pyspark.sql.types import BooleanType, DecimalType, DoubleType, LongType

    inferred: DataType
    if facts["other"] or not facts["values"]:
        return None
    if isinstance(suspect.wanted.kind, BooleanType):
        return BooleanType()
    if facts["fractions"]:
        inferred = DoubleType()
    elif facts["large"]:
        inferred = DecimalType(min(max(facts["digits"], _LONG_DIGITS), 38), 0)
    else:
        inferred = LongType()
    if are_typed and not suspect.wanted.is_in_map:
        inferred = read_type(inferred, suspect.wanted.kind, is_declared=not suspect.wanted.is_of_table)
    return None if inferred == suspect.inferred else inferred


def with_good_values(
    frame: DataFrame, suspects: Sequence[Suspect], types: Mapping[Path, DataType]
) -> DataFrame:
    """Return the rows with the values in their types, and with the column `MISFIT`.

    Args:
        frame: The rows, with what is suspect as variants.
        suspects: What is suspect.
        types: The types, by path.
    """
    from pyspark.sql import functions

    parts = {each.path: _Typing(each, types[each.path]) for each in suspects}
    values = {path: each.value for path, each in parts.items()}
    columns = {}
    for name in dict.fromkeys(each.column for each in suspects):
        sql = replaced_sql(name_sql(name), frame.schema[name].dataType, values, (name,))
        columns[name] = functions.expr(sql)
    misfits = [each.misfit for each in parts.values()]
    return frame.withColumns({**columns, MISFIT: functions.expr(misfit_sql(misfits))})


class _Typing(NamedTuple):
    """The type in which what is suspect is read."""

    suspect: Suspect
    kind: DataType

    def value(self, variant: str) -> str:
        """Return SQL of a value; null if it does not fit."""
        cast = f"try_cast({_text(variant)} as {self.kind.simpleString()})"
        return f"if({self.suspect.is_alike(variant)}, {cast}, null)"

    def fault(self, variant: str) -> str:
        """Return SQL of why a value does not fit; null if it does."""
        from pyspark.sql.types import StringType

        text = _text(variant)
        fault = f"coalesce({self.suspect.fault_sql(text, StringType())}, '{UNPARSED}')"
        return f"if({text} is not null and {self.value(variant)} is null, {fault}, null)"

    @property
    def misfit(self) -> Misfit:
        """The column with values that may not fit."""
        column, inside = name_sql(self.suspect.column), self.suspect.path[1:]
        fault = first_sql(column, inside, self.fault)
        shown = column if inside else f"if({fault} is null, null, {_text(column)})"
        return Misfit(self.suspect.column, fault, shown, is_declared=not self.suspect.wanted.is_of_table)

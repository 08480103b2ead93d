"""Casts that fail instead of losing information, with an error that names the column and the value.

The Spark job that uses the value raises the error, so no extra job has to look for bad values.

Source: `processing-strategies.md`, "Common Processing Pipeline" (Cast columns); strictness is
Lakewright's own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from lakewright.errors import SchemaDriftError
from lakewright.schema.sql import text_sql
from lakewright.schema.types import Array, Chars, Decimal, MapOf, Struct, Type

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = [
    "OF_EARLIER_SLICES",
    "Misfit",
    "cast_error",
    "cast_fault_sql",
    "cast_sql",
    "fitting_fault_sql",
    "fitting_sql",
    "length_fault_sql",
    "limited_sql",
    "micros_sql",
    "misfit_of",
    "of_earlier_slices",
]

_SEPARATOR = "\u2063"
"""Stands around the parts of the text that a query raises; it is invisible where Spark shows the text."""

_OF_TABLE = "of the table"
_PART = f"{_SEPARATOR}([^{_SEPARATOR}]*){_SEPARATOR}"
_RAISED = re.compile(f"column '{_PART}': the value '{_PART}' doesn't fit the type {_PART}")

_OTHER_TYPE = "Correct the slice, or give the column another `datatype`; nothing was written."
_REBUILD = "lakewright rebuild ENTITY"
_OTHER_COLUMN = (
    "Correct the slice; or declare a `datatype` that holds all values, and build the table again with "
    "`{rebuild}`. Nothing was written."
)

_MISFIT = re.compile(
    r"column '(?P<column>[^']*)': the value '.*' doesn't fit the type (?P<type>.*)", re.DOTALL
)
"""The text of `_fault`."""

_WHOLE = frozenset(("byte", "short", "integer", "long"))
_NUMBERS = frozenset((*_WHOLE, "float", "double", "decimal"))
_NUMBER_NAMES = frozenset(("tinyint", "smallint", "int", "bigint", "float", "double"))
_NESTED = frozenset(("array", "map", "struct"))
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def cast_sql(value: str, source: DataType, target: str, *, column: str, is_exact: bool = False) -> str:
    """Return SQL that casts a value; a value that doesn't fit fails the query, and null stays null.

    A number with a fraction never becomes an integer silently, and a text never loses digits as a decimal.

    Args:
        value: SQL of the value.
        source: Its type.
        target: The type to cast to, in Spark's SQL.
        column: The column's name, for the error.
        is_exact: Whether rounding fails too, as it does for the type of a table's column.
    """
    kind = source.typeName().partition("(")[0]
    if source.simpleString() == target:
        return value
    if kind in _NESTED or kind == "void":
        return f"cast({value} as {target})"
    cast, test = _cast_and_test(value, source, target, is_exact=is_exact)
    raised = _raise(value, column, f"{target} {_OF_TABLE}" if is_exact else target)
    return f"if({value} is null, null, if(coalesce({test}, false), {cast}, {raised}))"


def cast_fault_sql(
    value: str, source: DataType, target: str, *, column: str, is_exact: bool = False
) -> str | None:
    """Return SQL of why `cast_sql` would fail for a value: a text, or null if it would not.

    Return None if no value can fail in a way that this finds. Types with others inside are for
    `transform.nested_faults`.
    """
    kind = source.typeName().partition("(")[0]
    if source.simpleString() == target or kind in _NESTED or kind == "void":
        return None
    _, test = _cast_and_test(value, source, target, is_exact=is_exact)
    told = _fault(value, column, f"{target} {_OF_TABLE}" if is_exact else target)
    return f"if({value} is null or coalesce({test}, false), null, {told})"


def fitting_sql(value: str, source: Type, target: Type, *, column: str) -> str | None:
    """Return SQL that converts a value to store it in a relation; one that does not fit fails the query.

    A value fits if it does not become null, and a text if `char` and `varchar` do not cut it. Numbers are
    rounded to fewer decimal places, but a whole number must be one.

    Args:
        value: SQL of the value.
        source: Its type.
        target: The type to convert it to.
        column: The column's name, for the error.

    Returns:
        None if no value can fail in a way that this finds.

    Example:
        >>> from lakewright.schema.types import Scalar
        >>> fitting_sql("d", Scalar("date"), Scalar("timestamp"), column="day") is None
        True
    """
    found = _fitting_and_test(value, source, target)
    if found is None:
        return None
    cast, test = found
    return f"if({value} is null or {test}, {cast}, {_raise(value, column, target.ddl)})"


def fitting_fault_sql(value: str, source: Type, target: Type, *, column: str) -> str | None:
    """Return SQL of why `fitting_sql` would fail for a value: a text, or null if it would not.

    Return None if no value can fail in a way that this finds.
    """
    found = _fitting_and_test(value, source, target)
    if found is None:
        return None
    return f"if({value} is null or {found[1]}, null, {_fault(value, column, target.ddl)})"


def _fitting_and_test(value: str, source: Type, target: Type) -> tuple[str, str] | None:
    """Return SQL of a converted value, and of whether the value fits; None if `fitting_sql` returns None."""
    if source == target:
        return None
    if isinstance(target, Chars):
        if isinstance(source, Array | MapOf | Struct):
            return None
        text = f"cast({value} as string)"
        test, cast = f"char_length(rtrim({text})) <= {target.length}", f"left({text}, {target.length})"
        cast = f"rpad({cast}, {target.length}, ' ')" if target.is_fixed else cast
    else:
        is_text = isinstance(source, Chars) or source.ddl == "string"
        if not (_is_parsed(target) if is_text else _is_number(source) and _is_number(target)):
            return None
        cast = f"try_cast({value} as {target.ddl})"
        # A whole number would be cut, not rounded.
        is_cut = not is_text and _is_whole(target.ddl) and not _is_whole(source.ddl)
        test = f"{cast} = {value}" if is_cut else f"{cast} is not null"
        test = f"coalesce({test}, false)"
    return cast, test


def _is_number(kind: Type) -> bool:
    return isinstance(kind, Decimal) or kind.ddl in _NUMBER_NAMES


def _is_parsed(kind: Type) -> bool:
    """Return whether a text may fail to be a value of a type."""
    return _is_number(kind) or kind.ddl in {"boolean", "date", "timestamp", "timestamp_ntz"}


def length_fault_sql(value: str, length: int, *, column: str) -> str:
    """Return SQL of why `limited_sql` would fail for a text: a text, or null if it would not."""
    told = _fault(value, column, f"varchar({length})")
    return f"if(coalesce(char_length({value}), 0) <= {length}, null, {told})"


def _fault(value: str, column: str, target: str) -> str:
    start, end = text_sql(f"column {column!r}: the value '"), text_sql(f"' doesn't fit the type {target}")
    return f"concat({start}, left(cast({value} as string), 100), {end})"


def _cast_and_test(value: str, source: DataType, target: str, *, is_exact: bool) -> tuple[str, str]:
    """Return SQL of a cast that gives null instead of failing, and of whether it keeps the value."""
    kind = source.typeName().partition("(")[0]
    cast = f"try_cast({value} as {target})"
    test = f"{cast} is not null"
    if (is_exact and _may_round(kind, target)) or (kind in _NUMBERS - _WHOLE and _is_whole(target)):
        test = f"try_cast({cast} as {source.simpleString()}) = {value}"
    elif kind == "string" and (decimal := _DECIMAL.fullmatch(target)):
        test = f"{test} and {_has_no_more_digits(value, cast, int(decimal[1]), int(decimal[2]))}"
    return cast, test


def limited_sql(value: str, length: int, *, column: str) -> str:
    """Return SQL of a text of at most `length` characters; a longer one fails the query."""
    raised = _raise(value, column, f"varchar({length})")
    return f"if(coalesce(char_length({value}), 0) <= {length}, {value}, {raised})"


def micros_sql(value: str, *, column: str, is_utc: bool) -> str:
    """Return SQL that converts nanoseconds since 1970 to microseconds; a finer time fails the query."""
    time = f"timestamp_micros({value} div 1000)"
    kept = time if is_utc else f"cast({time} as timestamp_ntz)"
    return (
        f"if(coalesce({value} % 1000, 0) = 0, {kept}, {_raise(value, column, 'timestamp in microseconds')})"
    )


def cast_error(text: str, rebuild: str = _REBUILD) -> SchemaDriftError | None:
    """Return the error for a failed query, found in its message, if a value didn't fit its column's type.

    Args:
        text: The message.
        rebuild: The command that builds the table again.
    """
    found = _RAISED.search(text)
    if found is None:
        return None
    column, value, target = found.groups()
    misfit = Misfit.to(column, target)
    return SchemaDriftError(
        f"column {column!r}: the value {value!r} doesn't fit the type {target}",
        remedy=misfit.remedy(rebuild),
        details={"column": misfit.column, "type": misfit.type, "sample": value},
    )


class Misfit(NamedTuple):
    """A column with a value that doesn't fit its type.

    Attributes:
        is_of_table: Whether the type is that of the table's column, not the declared one.
    """

    column: str
    type: str
    is_of_table: bool

    @classmethod
    def to(cls, column: str, target: str) -> Misfit:
        """Return the misfit of a column with a type as messages name it."""
        return cls(column, target.removesuffix(f" {_OF_TABLE}"), target.endswith(_OF_TABLE))

    def remedy(self, rebuild: str) -> str:
        """Return what to do about it, given the command that builds the table again."""
        return _OTHER_COLUMN.format(rebuild=rebuild) if self.is_of_table else _OTHER_TYPE


def misfit_of(fault: str) -> Misfit | None:
    """Return the misfit that the text of a fault tells; None for other faults.

    Example:
        >>> misfit_of("column 'price': the value '1.5' doesn't fit the type int")
        Misfit(column='price', type='int', is_of_table=False)
    """
    found = _MISFIT.fullmatch(fault)
    return None if found is None else Misfit.to(found["column"], found["type"])


OF_EARLIER_SLICES = "the type that the earlier slices give the column"
"""What the type of the table is while slices are applied again: the user's table may have another one."""


def of_earlier_slices(text: str) -> str:
    """Return the text of an error about misfits as it is true of slices that are applied again.

    Example:
        >>> of_earlier_slices("column 'v': the value 'x' doesn't fit the type bigint of the table")
        "column 'v': the value 'x' doesn't fit bigint, the type that the earlier slices give the column"
    """
    return re.sub(
        rf"' doesn't fit the type (\S+) {_OF_TABLE}", rf"' doesn't fit \1, {OF_EARLIER_SLICES}", text
    )


def _raise(value: str, column: str, target: str) -> str:
    start = text_sql(f"column '{_SEPARATOR}{column}{_SEPARATOR}': the value '{_SEPARATOR}")
    end = text_sql(f"{_SEPARATOR}' doesn't fit the type {_SEPARATOR}{target}{_SEPARATOR}")
    return f"raise_error(concat({start}, left(cast({value} as string), 100), {end}))"


def _is_whole(target: str) -> bool:
    return (
        target in {"tinyint", "smallint", "int", "bigint"}
        or re.fullmatch(r"decimal\(\d+,0\)", target) is not None
    )


def _has_no_more_digits(value: str, cast: str, precision: int, scale: int) -> str:
    """Return SQL of whether a text has only zeros beyond the digits that the decimal can hold."""
    widest = f"decimal(38,{38 - precision + scale})"
    return (
        f"if({value} rlike '[eE]', try_cast({value} as {widest}) = {cast}, "
        f"not {value} rlike '[.][0-9]{{{scale}}}[0-9]*[1-9]')"
    )


def _may_round(kind: str, target: str) -> bool:
    is_number = target.partition("(")[0] in {
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "decimal",
    }
    if kind.startswith("timestamp"):
        return is_number or target == "date"
    return kind in _NUMBERS and is_number

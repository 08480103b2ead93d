"""Faults of rows in words, and what to do about them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from lakewright.errors import LakewrightError, SchemaDriftError
from lakewright.errors.phrase import Command, Phrase
from lakewright.schema.fault import Fault, Owner, Reason
from lakewright.schema.rules import Unit

_REBUILD = Command("rebuild", "ENTITY")

_OTHER_TYPE = "Correct the slice, or give the column another `datatype`; nothing was written."
_OTHER_COLUMN = (
    "Correct the slice; or declare a `datatype` that holds all values, and build the table again with "
)
_OTHER_FILE = (
    "Correct the file or the type that the relation declares, then run again; with the option "
    "`mode: PERMISSIVE` of the relation, what does not fit is null. Nothing was written."
)
_SAY_UNIT = "Correct the slice, or declare `unit: {unit}` for the column{why}; nothing was written."

_WHY = {
    Reason.INEXACT: "not without loss",
    Reason.OUT_OF_RANGE: "it is out of range",
    Reason.NO_UNIT: "a number has no date or time without a `unit`",
    Reason.NOT_MIDNIGHT: "it has a time of day",
    Reason.NO_SUCH_TIME: "clocks there never show it, or twice",
    Reason.NOT_JSON: "it is not JSON",
}

_PER_SECOND = {Unit.SECONDS: 1, Unit.MILLIS: 10**3, Unit.MICROS: 10**6, Unit.NANOS: 10**9}
_NEAR = range(1971, 2101)
"""Years for which a number is taken for a time."""

_FIRST_OF_DAYS = 1990
_LARGEST = 10**20

_EXCEL_START = datetime(1899, 12, 30, tzinfo=UTC)


def fault_error(text: str, rebuild: Command = _REBUILD) -> SchemaDriftError | None:
    """Return the error of a query that failed because of a fault, found in Spark's text; None for others.

    Args:
        text: The text.
        rebuild: The command that builds the table again.
    """
    fault = Fault.raised(text)
    if fault is None:
        return None
    return SchemaDriftError(
        fault_text(fault),
        remedy=fault_remedy(fault, rebuild),
        details={"column": fault.column, "type": fault.type, "sample": fault.value, "fault": fault.as_json()},
    )


def fault_of(error: LakewrightError) -> Fault | None:
    """Return the fault that an error of `fault_error` is about; None for other errors."""
    found = error.details.get("fault")
    return None if found is None else Fault.parsed(json.dumps(found))


def fault_text(fault: Fault, *, of_earlier_slices: bool = False) -> str:
    """Return what is wrong with a row.

    Args:
        fault: The fault.
        of_earlier_slices: Whether slices are applied again, so that the type of the table is the one that
            earlier slices give it: the user's table may have another one.

    Example:
        >>> fault_text(Fault(Reason.NULL_KEY, "id"))
        "column 'id' of the business key is null"
        >>> fault_text(Fault(Reason.INEXACT, "n", "int", "1.5", Owner.TABLE))
        "column 'n': the value '1.5' doesn't fit the type int of the table: not without loss"
    """
    if fault.reason is Reason.UNPARSED:
        return "the row does not parse"
    if fault.reason is Reason.NULL_KEY:
        return f"column {fault.column!r} of the business key is null"
    why = _WHY.get(fault.reason)
    place = fault.place and f"{fault.place}: "
    if fault.reason is Reason.NOT_AS_FOLDER:
        return (
            f"{place}column {fault.column!r}: the file has the value {fault.value!r}, its folder another one"
        )
    return (
        f"{place}column {fault.column!r}: the value {fault.value!r} doesn't fit "
        f"{_type_text(fault, of_earlier_slices=of_earlier_slices)}{'' if why is None else f': {why}'}"
    )


def _type_text(fault: Fault, *, of_earlier_slices: bool) -> str:
    if fault.owner is Owner.TABLE and of_earlier_slices:
        return f"{fault.type}, the type that the earlier slices give the column"
    whose = {Owner.TABLE: " of the table", Owner.SLICE: " of the column's other values"}
    return f"the type {fault.type}{whose.get(fault.owner, '')}"


def fault_remedy(fault: Fault, rebuild: Command = _REBUILD) -> str:
    """Return what to do about a value that does not fit.

    Args:
        fault: The fault.
        rebuild: The command that builds the table again.
    """
    if fault.reason is Reason.NOT_AS_FOLDER:
        return "Correct the slice: the file, or the name of its folder. Nothing was written."
    if fault.place:
        return _OTHER_FILE
    if fault.reason is Reason.NO_UNIT or fault.type in ("date", "timestamp", "timestamp_ntz"):
        found = _unit(fault)
        if found is not None:
            unit, year = found
            return _SAY_UNIT.format(unit=unit, why=f", with which it is in the year {year}")
    if fault.owner is Owner.TABLE:
        return Phrase(_OTHER_COLUMN, rebuild, ". Nothing was written.")
    return _OTHER_TYPE


def _unit(fault: Fault) -> tuple[str, int] | None:
    """Return the unit in which a number is a time near today, and its year; None if there is none."""
    try:
        number = Decimal(fault.value)
    except ArithmeticError:
        return None
    if not number.is_finite() or abs(number) > _LARGEST:
        return None
    if fault.type == "date":
        starts = {Unit.EXCEL: _EXCEL_START, Unit.DAYS: datetime(1970, 1, 1, tzinfo=UTC)}
        found = {unit: _year(start, number * 86400) for unit, start in starts.items()}
    else:
        start = datetime(1970, 1, 1, tzinfo=UTC)
        found = {unit: _year(start, number / factor) for unit, factor in _PER_SECOND.items()}
    near = [
        (unit.value, year)
        for unit, year in found.items()
        # A number such as 2024 is a year, not a day of 1975.
        if year is not None and year in _NEAR and (unit is not Unit.DAYS or year >= _FIRST_OF_DAYS)
    ]
    return next(iter(near), None)


def _year(start: datetime, seconds: Decimal) -> int | None:
    try:
        return (start + timedelta(seconds=float(seconds))).year
    except (OverflowError, ValueError):
        return None

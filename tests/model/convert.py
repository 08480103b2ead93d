"""A plain-Python model of conversion: what a value is in another type, or that it does not fit.

Source: the rules of reading, "What fits".
"""

from __future__ import annotations

import math
import re
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any
from zoneinfo import ZoneInfo

from lakewright.schema.rules import Unit, ValueRules
from lakewright.schema.types import Chars, Scalar, Type
from lakewright.schema.types import Decimal as DecimalType

MISFIT = object()
"""What a value becomes that does not fit."""

_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = re.compile(
    rf"({_DAY})(?:[T ]([0-9]{{2}}):([0-9]{{2}})(?::([0-9]{{2}})(?:\.([0-9]{{1,6}})0*)?)?"
    r"( ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)| ?[A-Za-z]+(?:/[A-Za-z_]+)+| UTC)?)?"
)
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_WIDE = Context(prec=100)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def converted(value: Any, source: Type, target: Type, rules: ValueRules) -> Any:
    """Return a value of one type in another; `MISFIT` if it does not fit, None if it is None."""
    if value is None:
        return None
    with localcontext(_WIDE):
        try:
            return _converted(value, source, target, rules)
        except (ValueError, OverflowError, ArithmeticError, LookupError):
            return MISFIT


def _converted(value: Any, source: Type, target: Type, rules: ValueRules) -> Any:
    name = "decimal" if isinstance(target, DecimalType) else target.ddl
    if isinstance(target, Chars):
        text = _text(value, source)
        text = "1.0E22" if text == "E" else text  # too long for all types of tests
        kept = text.rstrip(" ") if target.is_fixed else text
        if len(kept) > target.length:
            return MISFIT
        return kept.ljust(target.length) if target.is_fixed else text
    if name == "string":
        return _text(value, source)
    if name in _BITS:
        return _whole(value, source, _BITS[name], rules)
    if name == "decimal":
        assert isinstance(target, DecimalType)
        return _decimal(value, source, target, rules)
    if name in {"float", "double"}:
        return _float(value, source, name)
    if name == "boolean":
        return _boolean(value, source, rules)
    return _moment(value, source, name, rules)


def _text(value: Any, source: Type) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value, source)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return _clock_text(value)
        return _clock_text(value.astimezone(UTC).replace(tzinfo=None)) + "Z"
    return str(value)


def _clock_text(value: datetime) -> str:
    text = f"{value.year:04}-{value:%m-%dT%H:%M:%S}"
    return f"{text}.{value.microsecond:06}".rstrip("0") if value.microsecond else text


def _float_text(value: float, source: Type) -> str:
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if value == int(value) and -(2.0**63) <= value < 2.0**63:
        return str(int(value))
    number = Decimal(_shortest(value, source))
    is_plain = 0.001 <= abs(value) < 1e7
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if is_plain or (abs(number) < Decimal(10) ** 20 and exponent >= -18):
        return f"{number:f}"
    return "E"  # Java writes other digits than Python for some; the form alone is compared


def _shortest(value: float, source: Type) -> str:
    """Return the shortest text that gives the same number of the type back."""
    if source.ddl == "double":
        return repr(value)
    return next(text for digits in range(1, 18) if _single(float(text := f"{value:.{digits}g}")) == value)


def _single(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _whole(value: Any, source: Type, bits: int, rules: ValueRules) -> Any:
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?[0-9]+", value, re.ASCII):
            return MISFIT
        number = int(value)
    elif isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return MISFIT
    else:
        number = int(value)
        if number != value:
            return MISFIT
    return number if -(2**bits) <= number < 2**bits else MISFIT


def _decimal(value: Any, source: Type, target: DecimalType, rules: ValueRules) -> Any:
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            return MISFIT
        number = Decimal(value)
    elif isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return MISFIT
        is_whole = value == int(value) and -(2.0**63) <= value < 2.0**63
        number = Decimal(int(value)) if is_whole else Decimal(_shortest(value, source))
    elif isinstance(value, bool) or not isinstance(value, int | Decimal):
        return MISFIT
    else:
        number = Decimal(value)
    if abs(number.adjusted()) > 90 and number:
        return MISFIT if not rules.rounds or number.adjusted() > 0 else Decimal(0)
    kept = number.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP)
    if kept != number and not rules.rounds:
        return MISFIT
    return kept if abs(kept) < Decimal(10) ** (target.precision - target.scale) else MISFIT


def _float(value: Any, source: Type, name: str) -> Any:
    narrow = _single if name == "float" else float
    if isinstance(value, str):
        if re.fullmatch(r"NaN|[+-]?Inf(inity)?", value):
            return float(value.replace("Infinity", "inf").replace("Inf", "inf"))
        if not _NUMBER.fullmatch(value):
            return MISFIT
        found = narrow(float(value))
        return MISFIT if math.isinf(found) else found
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return MISFIT
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return value
        found = narrow(float(_shortest(value, source)))
        if value == int(value) and -(2.0**63) <= value < 2.0**63:
            return found if found == value else MISFIT
        same = float(_shortest(found, Scalar(name))) == float(_shortest(value, source))
        return found if same else MISFIT
    found = narrow(float(value))
    if math.isinf(found):
        return MISFIT
    if isinstance(value, int):
        return found if int(found) == value else MISFIT
    return found if Decimal(_shortest(found, Scalar(name)) if found else "0") == value else MISFIT


def _boolean(value: Any, source: Type, rules: ValueRules) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if rules.booleans:
            return rules.booleans.get(value, MISFIT)
        text = value.lower()
        return True if text in _TRUE else False if text in _FALSE else MISFIT
    if isinstance(value, int | float | Decimal) and value in (0, 1):
        return value == 1
    return MISFIT


def _moment(value: Any, source: Type, name: str, rules: ValueRules) -> Any:
    if (
        rules.unit is not None
        and isinstance(value, str | int | float | Decimal)
        and not isinstance(value, bool)
    ):
        return _counted(value, source, name, rules)
    if isinstance(value, str):
        value = _parsed(value, rules)
        if value is MISFIT:
            return MISFIT
    if isinstance(value, bool) or not isinstance(value, date):
        return MISFIT
    if not isinstance(value, datetime):
        if name == "date":
            return value
        value = datetime(value.year, value.month, value.day)
    if rules.zone is None and (value.tzinfo is None) is (name == "timestamp"):
        return MISFIT
    zone = ZoneInfo(rules.zone or "UTC")
    if name == "timestamp":
        return value if value.tzinfo is not None else _instant(value, zone)
    local = value if value.tzinfo is None else value.astimezone(zone).replace(tzinfo=None)
    if name == "timestamp_ntz":
        return local
    is_midnight = local == datetime(local.year, local.month, local.day)
    return local.date() if is_midnight else MISFIT


def _counted(value: Any, source: Type, name: str, rules: ValueRules) -> Any:
    number = _decimal(value, source, DecimalType(28, 9), ValueRules())
    if number is MISFIT:
        return MISFIT
    unit = rules.unit
    if unit in (Unit.DAYS, Unit.EXCEL):
        if name != "date" or number != int(number):
            return MISFIT
        if unit is Unit.DAYS:
            return date(1970, 1, 1) + timedelta(int(number))
        if number < 1 or number == 60:
            return MISFIT
        return (date(1899, 12, 31) if number < 60 else date(1899, 12, 30)) + timedelta(int(number))
    if name == "date":
        return MISFIT
    factor = {Unit.SECONDS: Decimal(10**6), Unit.MILLIS: Decimal(1000), Unit.MICROS: Decimal(1)}
    micros = number / 1000 if unit is Unit.NANOS else number * factor[unit]  # type: ignore[index]
    if micros != int(micros):
        return MISFIT
    found = _EPOCH + timedelta(microseconds=int(micros))
    if name == "timestamp":
        return found
    return MISFIT if rules.zone is None else found.astimezone(ZoneInfo(rules.zone)).replace(tzinfo=None)


def _parsed(text: str, rules: ValueRules) -> Any:
    found = _TIME.fullmatch(text) if text.isascii() else None
    if found is None:
        return MISFIT
    day, hour, minute, second, fraction, offset = found.groups()
    value = datetime.fromisoformat(day)
    if hour is None:
        return value
    value = value.replace(hour=int(hour), minute=int(minute), second=int(second or 0))
    value = value.replace(microsecond=int((fraction or "0").ljust(6, "0")))
    if offset is None:
        return value
    offset = offset.strip()
    if offset in ("Z", "UTC"):
        return value.replace(tzinfo=UTC)
    if offset[0] in "+-":
        hours, minutes = int(offset[1:3]), int(offset[3:].replace(":", "") or 0)
        if hours > 18 or minutes > 59 or (hours == 18 and minutes):
            return MISFIT
        shift = timedelta(hours=hours, minutes=minutes)
        return (value - (shift if offset[0] == "+" else -shift)).replace(tzinfo=UTC)
    return value.replace(tzinfo=ZoneInfo(offset)).astimezone(UTC)


def _instant(local: datetime, zone: ZoneInfo) -> Any:
    found = {
        value.astimezone(UTC)
        for fold in (0, 1)
        if (value := local.replace(tzinfo=zone, fold=fold))
        .astimezone(UTC)
        .astimezone(zone)
        .replace(tzinfo=None)
        == local
    }
    return found.pop() if len(found) == 1 else MISFIT

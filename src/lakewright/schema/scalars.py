"""SQL that converts single values: exactly, or to null.

A value that does not fit becomes null here; `schema.convert` makes a misfit of it. Spark's own casts guess:
`45352` as a date is the year 45352, `10:15` as a timestamp is a time of today, ` 12D ` is a number. So the
text of a value is tested before it is cast, and a number after it.

The SQL needs a session in ANSI mode with the time zone UTC, where decimals are written without an exponent.

Source: the rules of reading, "What fits".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import NamedTuple, TypeAlias

from lakewright.schema.fault import Reason
from lakewright.schema.rules import Unit, ValueRules
from lakewright.schema.sql import text_sql
from lakewright.schema.types import Chars, Decimal, Scalar, Type


class Leaf(NamedTuple):
    """A converted value.

    Attributes:
        sql: SQL of it; null if the value does not fit.
        reason: Why a value may not fit; None if each one fits.
    """

    sql: str
    reason: Reason | None = None


_Rule: TypeAlias = Callable[[str, Type, Type, ValueRules], Leaf | None]

WHOLE = ("tinyint", "smallint", "int", "bigint")
"""Types of whole numbers, from the narrowest to the widest."""

FLOATS = ("float", "double")
TIMES = ("timestamp", "timestamp_ntz")

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_EXACT_BITS = {"float": 24, "double": 53}
"""Bits of the whole numbers that a type of floating point has all of."""

_SAFE_DIGITS = {"float": 6, "double": 15}
"""Digits of the decimals that a type of floating point gives back as they were."""

# Java matches digits that are written out, groups that it need not keep, and an end that comes first faster.
_TWO = "[0-9][0-9]"
_DATE = f"{_TWO}{_TWO}-{_TWO}-{_TWO}"
_CLOCK = rf"{_TWO}:{_TWO}(?::{_TWO}(?:[.][0-9]{{1,6}}0*)?)?"
_OFFSET = rf"(?:Z|[+-]{_TWO}(?::?{_TWO})?)"
_ZONE = rf"(?: ?{_OFFSET}|(?: ?[A-Za-z]+(?:/[A-Za-z_]+)+| UTC))"

_IS_DATE = rf"^{_DATE}(?:\\z|[T ]00:00(?::00(?:[.]0+)?)?\\z)"
"""A date, also as the first moment of it without a zone."""

_IS_TIME = rf"^{_DATE}(?:\\z|[T ]{_CLOCK}(?:\\z|{_ZONE}\\z))"
_HAS_ZONE = rf"^.{{16,}}{_ZONE}\\z"

_IS_NUMBER = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?\\z"
_WITH_EXPONENT = r"^[+-]?([0-9]*)[.]?([0-9]*)[eE]([+-]?[0-9]{1,4})\\z"

_CLOCK_FORMAT, _MIDNIGHT = "HHmmss.SSSSSS", "000000.000000"

_FIRST, _LAST = "date'0001-01-01'", "date'9999-12-31'"
_FIRST_TIME, _LAST_TIME = "-62135596800000000L", "253402300799999999L"
"""Microseconds since 1970 of the years 0001 to 9999."""


def _in_any_case(*words: str) -> list[str]:
    """Return all ways to write words in upper and lower case letters."""
    return [
        "".join(letters)
        for word in words
        for letters in product(*(dict.fromkeys((letter, letter.upper())) for letter in word))
    ]


# Spark's first `lower` in a process costs three seconds: it makes a table of all characters in title case.
_TRUE = _in_any_case("true", "t", "yes", "y", "1")
_FALSE = _in_any_case("false", "f", "no", "n", "0")


def class_of(kind: Type) -> str:
    """Return what kind of values a type has: text, whole, decimal, float, or the name of another type.

    Example:
        >>> [class_of(each) for each in (Chars(3), Scalar("int"), Decimal(5, 2), Scalar("date"))]
        ['text', 'whole', 'decimal', 'date']
    """
    if isinstance(kind, Chars):
        return "text"
    if isinstance(kind, Decimal):
        return "decimal"
    if isinstance(kind, Scalar):
        if kind.name in WHOLE:
            return "whole"
        if kind.name in FLOATS:
            return "float"
        return "text" if kind.name.partition(" ")[0] == "string" else kind.name
    return type(kind).__name__.lower()


def convert_leaf(value: str, source: Type, target: Type, rules: ValueRules) -> Leaf | None:
    """Return a value converted from one type without others inside to another; None if no value can fit."""
    rule = _RULES.get((class_of(source), class_of(target)))
    return None if rule is None else rule(value, source, target, rules)


def within_years_sql(value: str, kind: Type) -> str | None:
    """Return SQL of a date or time in the years 0001 to 9999, else null; None for other types."""
    if kind.ddl == "date":
        return f"if({value} between {_FIRST} and {_LAST}, {value}, null)"
    if kind.ddl == "timestamp":
        return f"if(unix_micros({value}) between {_FIRST_TIME} and {_LAST_TIME}, {value}, null)"
    if kind.ddl == "timestamp_ntz":
        return f"if(year({value}) between 1 and 9999, {value}, null)"
    return None


def plain_number_sql(value: str, kind: Type) -> str:
    """Return SQL of a number as text, without an exponent where 38 digits hold it, and whole ones as such.

    Args:
        value: SQL of the number.
        kind: Its type.
    """
    text = f"cast({value} as string)"
    if class_of(kind) != "float":
        return text
    wide = f"cast({value} as double)"
    return (
        f"case when {_is_whole(wide)} then cast(cast({wide} as bigint) as string) "
        f"when not contains({text}, 'E') then {text} "
        f"else coalesce(rtrim('.', rtrim('0', cast({_exact_decimal(text)} as string))), {text}) end"
    )


def _is_whole(double: str, bits: int = 63) -> str:
    """Return SQL of whether a double is a whole number of so many bits beside its sign."""
    limit = f"{2.0**bits!r}D"
    return f"{double} >= -{limit} and {double} < {limit} and {double} = floor({double})"


def _exact_decimal(text: str) -> str:
    """Return SQL of a number in scientific notation as a decimal; null if none holds it."""
    cast = f"try_cast({text} as decimal(38,18))"
    return f"if(cast({cast} as double) = cast({text} as double), {cast}, null)"


# Texts


def _to_text(value: str, source: Type, target: Type, rules: ValueRules) -> Leaf:
    """Return a value as text: a time in ISO 8601, an instant in UTC."""
    text = f"cast({_bounded(value, source)} as string)"
    if class_of(source) in _NUMBERS:
        text = plain_number_sql(value, source)
    elif source.ddl == "string":
        text = value
    elif source.ddl in TIMES:
        text = f"replace({text}, ' ', 'T')"
        text = f"concat({text}, 'Z')" if source.ddl == "timestamp" else text
    made = _limited(text, target, rules)
    is_bounded = source.ddl in ("date", *TIMES)
    return Leaf(made.sql, made.reason or (Reason.OUT_OF_RANGE if is_bounded else None))


def _limited(text: str, target: Type, rules: ValueRules) -> Leaf:
    """Return a text for a column of texts, of which spaces at the end may be cut where SQL would cut them."""
    if not isinstance(target, Chars):
        return Leaf(text)
    may_cut = target.is_fixed or rules.is_assigned
    fits = f"char_length({f'rtrim({text})' if may_cut else text}) <= {target.length}"
    cut = f"left({text}, {target.length})" if may_cut else text
    made = f"rpad({cut}, {target.length}, ' ')" if target.is_fixed else cut
    return Leaf(f"if({fits}, {made}, null)", Reason.TOO_LONG)


def _text_to_whole(value: str, _source: Type, target: Type, _rules: ValueRules) -> Leaf:
    # Spark's cast takes digits only, but also spaces and control characters around them.
    digits = f"{value} >= '!' and right({value}, 1) between '0' and '9'"
    return Leaf(f"if({digits}, try_cast({value} as {target.ddl}), null)", Reason.NOT_WRITTEN_SO)


def _text_to_decimal(value: str, _source: Type, target: Type, rules: ValueRules) -> Leaf:
    _, scale = _precision(target)
    cast = f"try_cast({value} as {target.ddl})"
    if rules.rounds:
        return Leaf(f"if({value} rlike '{_IS_NUMBER}', {cast}, null)", Reason.NOT_WRITTEN_SO)
    fraction = f"([.][0-9]{{0,{scale}}}0*)?"
    plain = rf"^[+-]?([0-9]+{fraction}|[.][0-9]{{1,{scale}}}0*)\\z" if scale else r"^[+-]?[0-9]+([.]0*)?\\z"
    # Spark works out what is common to both sides of an `or` for each value, but not what is in a later case.
    fits = f"case when {value} rlike '{plain}' then true else {_has_no_more_places(value, scale)} end"
    return Leaf(f"if({fits}, {cast}, null)", Reason.NOT_WRITTEN_SO)


def _has_no_more_places(value: str, scale: int) -> str:
    """Return SQL of whether a number with an exponent has no digits but zeros after so many places."""
    whole, fraction, exponent = (f"regexp_extract({value}, '{_WITH_EXPONENT}', {n})" for n in (1, 2, 3))
    digits = f"rtrim('0', {fraction})"
    zeros = f"length({whole}) - length(rtrim('0', {whole}))"
    places = f"if({digits} = '', -({zeros}), length({digits})) - cast({exponent} as int)"
    is_zero = f"rtrim('0', concat({whole}, {fraction})) = ''"
    may_fit = f"{value} rlike '{_IS_NUMBER}' and {value} rlike '{_WITH_EXPONENT}'"
    return f"case when {may_fit} then {is_zero} or {places} <= {scale} else false end"


def _text_to_float(value: str, _source: Type, target: Type, _rules: ValueRules) -> Leaf:
    cast = f"try_cast({value} as {target.ddl})"
    limit = "3.4028235e38D" if target.ddl == "float" else "1.7976931348623157e308D"
    return Leaf(
        f"case when {value} rlike '{_IS_NUMBER}' then if(abs({cast}) <= {limit}, {cast}, null) "
        f"when {value} = 'NaN' or {value} rlike '^[+-]?Inf(inity)?\\\\z' then {cast} end",
        Reason.NOT_WRITTEN_SO,
    )


def _text_to_boolean(value: str, _source: Type, _target: Type, rules: ValueRules) -> Leaf:
    if rules.booleans:
        true, false = (
            [text for text, each in rules.booleans.items() if each is wanted] for wanted in (True, False)
        )
    else:
        true, false = _TRUE, _FALSE
    whens = [
        f"when {value} in ({', '.join(map(text_sql, texts))}) then {name}"
        for texts, name in ((true, "true"), (false, "false"))
        if texts
    ]
    return Leaf(f"case {' '.join(whens)} end", Reason.NOT_WRITTEN_SO)


def _text_to_date(value: str, source: Type, target: Type, rules: ValueRules) -> Leaf:
    if rules.format is not None:
        found = f"try_to_date({value}, {text_sql(rules.format)})"
        return Leaf(f"if({found} between {_FIRST} and {_LAST}, {found}, null)", Reason.NOT_WRITTEN_SO)
    if rules.unit is not None:
        return _text_to_counted(value, source, target, rules)
    date = f"if({value} rlike '{_IS_DATE}' and {value} >= '0001', try_cast({value} as date), null)"
    time = _text_to_time(value, Scalar("string"), Scalar("timestamp_ntz"), rules).sql
    is_midnight = f"date_format({time}, '{_CLOCK_FORMAT}') = '{_MIDNIGHT}'"
    of_zoned = f"if(length({value}) > 16 and {is_midnight}, cast({time} as date), null)"
    return Leaf(f"coalesce({date}, {of_zoned})", Reason.NOT_WRITTEN_SO)


def _text_to_time(value: str, source: Type, target: Type, rules: ValueRules) -> Leaf:
    if rules.unit is not None:
        return _text_to_counted(value, source, target, rules)
    if rules.format is not None:
        local = f"try_to_timestamp({value}, {text_sql(rules.format)})"
        if target.ddl == "timestamp_ntz":
            return Leaf(_bounded(f"cast({local} as timestamp_ntz)", target), Reason.NOT_WRITTEN_SO)
        has_zone = any(letter in rules.format for letter in "XxVzZO")
        if has_zone or rules.zone == "UTC":
            return Leaf(_bounded(local, target), Reason.NOT_WRITTEN_SO)
        naive = f"cast({local} as timestamp_ntz)"
        return Leaf(_bounded(_instant(naive, rules.zone), target), Reason.NO_SUCH_TIME)
    is_time = f"{value} rlike '{_IS_TIME}'"
    # No zone moves these out of the years that are taken, so that the time is computed once.
    is_inside = f"{value} >= '0001-01-03' and {value} < '9999-12-30'"
    instant = f"try_cast({value} as timestamp)"
    naive = f"try_cast({value} as timestamp_ntz)"
    if target.ddl == "timestamp_ntz":
        made = f"if({value} rlike '{_HAS_ZONE}', {_local(instant, rules.zone)}, {naive})"
    elif rules.zone == "UTC":
        made = instant
    else:
        made = f"if({value} rlike '{_HAS_ZONE}', {instant}, {_instant(naive, rules.zone)})"
    bounded = f"if({value} >= '0001', {_bounded(made, target)}, null)"
    return Leaf(f"if({is_time}, if({is_inside}, {made}, {bounded}), null)", Reason.NOT_WRITTEN_SO)


def _bounded(made: str, target: Type) -> str:
    return within_years_sql(made, target) or made


def _text_to_counted(value: str, _source: Type, target: Type, rules: ValueRules) -> Leaf:
    """Return a date or time of a text that is a number in a unit."""
    number = Decimal(38, 9)
    found = _text_to_decimal(value, Scalar("string"), number, rules).sql
    return _number_to_counted(found, number, target, rules) or Leaf("null", Reason.NO_UNIT)


# Numbers


def digits_of(kind: Type) -> tuple[int, int] | None:
    """Return the digits before and after the decimal point; None for types that have no number of them."""
    if isinstance(kind, Decimal):
        return kind.precision - kind.scale, kind.scale
    digits = _DIGITS.get(kind.ddl)
    return None if digits is None else (digits, 0)


def _precision(kind: Type) -> tuple[int, int]:
    before, after = digits_of(kind) or (0, 0)
    return before + after, after


def _whole_to_whole(value: str, source: Type, target: Type, _rules: ValueRules) -> Leaf:
    if WHOLE.index(source.ddl) <= WHOLE.index(target.ddl):
        return Leaf(f"cast({value} as {target.ddl})")
    return Leaf(f"try_cast({value} as {target.ddl})", Reason.OUT_OF_RANGE)


def _exact_to_decimal(value: str, source: Type, target: Type, rules: ValueRules) -> Leaf:
    (digits, places), (precision, scale) = _precision(source), _precision(target)
    cast = f"try_cast({value} as {target.ddl})"
    if places > scale and not rules.rounds:
        return Leaf(f"if(try_cast({cast} as {source.ddl}) = {value}, {cast}, null)", Reason.INEXACT)
    if digits - places <= precision - scale and places <= scale:
        return Leaf(f"cast({value} as {target.ddl})")
    return Leaf(cast, Reason.OUT_OF_RANGE)


def _decimal_to_whole(value: str, source: Type, target: Type, _rules: ValueRules) -> Leaf:
    # Only fractions are rounded, to fewer places.
    cast = f"try_cast({value} as {target.ddl})"
    _, places = _precision(source)
    if places == 0:
        return Leaf(cast, Reason.OUT_OF_RANGE)
    return Leaf(f"if({value} % 1 = 0, {cast}, null)", Reason.INEXACT)


def _float_to_whole(value: str, _source: Type, target: Type, _rules: ValueRules) -> Leaf:
    wide = f"cast({value} as double)"
    is_whole = _is_whole(wide, _BITS[target.ddl])
    return Leaf(f"if({is_whole}, try_cast({wide} as {target.ddl}), null)", Reason.INEXACT)


def _float_to_decimal(value: str, source: Type, target: Type, rules: ValueRules) -> Leaf:
    # By the shortest text: a float becomes a double with other digits when it is cast.
    cast = f"try_cast({plain_number_sql(value, source)} as {target.ddl})"
    finite = f"abs({value}) <= 1e39D"
    if rules.rounds:
        return Leaf(f"if({finite}, {cast}, null)", Reason.OUT_OF_RANGE)
    return Leaf(f"if({finite} and cast({cast} as {source.ddl}) = {value}, {cast}, null)", Reason.INEXACT)


def _whole_to_float(value: str, source: Type, target: Type, rules: ValueRules) -> Leaf:
    exact, bits = _EXACT_BITS[target.ddl], _BITS[source.ddl]
    cast = f"cast({value} as {target.ddl})"
    if bits <= exact or rules.rounds:
        return Leaf(cast)
    # Above 2^53, every second number is a double, above 2^54 every fourth.
    steps = "".join(
        f"when {value} between -{2**n} and {2**n} then {2 ** (n - exact)} " for n in range(exact, bits)
    )
    step = f"case {steps}else {2 ** (bits - exact)} end"
    return Leaf(f"if({value} % ({step}) = 0, {cast}, null)", Reason.INEXACT)


def _decimal_to_float(value: str, source: Type, target: Type, rules: ValueRules) -> Leaf:
    cast = f"cast({value} as {target.ddl})"
    precision, _ = _precision(source)
    if precision <= _SAFE_DIGITS[target.ddl] or rules.rounds:
        return Leaf(cast)
    return Leaf(
        f"if(try_cast(cast({cast} as string) as {source.ddl}) = {value}, {cast}, null)", Reason.INEXACT
    )


def _float_to_float(value: str, source: Type, target: Type, rules: ValueRules) -> Leaf:
    if source == target:
        return Leaf(value)
    # The shortest text is the number: 0.1 is 0.1 in both types. Java's text of whole ones may be longer.
    wide = f"cast({value} as double)"
    if target.ddl == "double":
        return Leaf(f"if({_is_whole(wide)}, {wide}, cast(cast({value} as string) as double))")
    narrow = f"cast({value} as float)"
    if rules.rounds:
        return Leaf(narrow)
    again = f"if({_is_whole(wide)}, cast({narrow} as double), cast(cast({narrow} as string) as double))"
    return Leaf(f"if({again} = {value}, {narrow}, null)", Reason.INEXACT)


def _number_to_boolean(value: str, _source: Type, _target: Type, _rules: ValueRules) -> Leaf:
    return Leaf(f"case when {value} = 1 then true when {value} = 0 then false end", Reason.OUT_OF_RANGE)


_MICROS = {Unit.SECONDS: 1_000_000, Unit.MILLIS: 1_000, Unit.MICROS: 1}


def _number_to_counted(value: str, source: Type, target: Type, rules: ValueRules) -> Leaf | None:
    """Return a date or time of a number in the declared unit; None if it has none, or one of another type."""
    if rules.unit in (Unit.DAYS, Unit.EXCEL):
        if target.ddl != "date":
            return None
        return _days_to_date(value, source, rules.unit)
    if rules.unit is None or target.ddl not in TIMES:
        return None
    is_whole = class_of(source) == "whole"
    number = f"cast({value} as bigint)" if is_whole else _numbers(value, source, Decimal(38, 9))
    if rules.unit is Unit.NANOS:
        micros, is_exact = f"{number} {'div' if is_whole else '/'} 1000", f"{number} % 1000 = 0"
    else:
        micros = f"try_multiply({number}, {_MICROS[rules.unit]}L)"
        is_exact = f"{micros} % 1 = 0"
    in_years = f"{micros} between {_FIRST_TIME} and {_LAST_TIME}"
    time = f"timestamp_micros(try_cast({micros} as bigint))"
    time = _bounded(_local(time, rules.zone), target) if target.ddl == "timestamp_ntz" else time
    return Leaf(f"if({in_years} and {is_exact}, {time}, null)", Reason.OUT_OF_RANGE)


def _numbers(value: str, source: Type, target: Decimal) -> str:
    """Return SQL of a number as a decimal for counting; null if it is no exact one."""
    made = convert_leaf(value, source, target, ValueRules())
    # Multiplied by a million, the widest decimals would lose their digits.
    return "null" if made is None else f"try_cast({made.sql} as decimal(28,9))"


def _days_to_date(value: str, source: Type, unit: Unit) -> Leaf:
    whole = convert_leaf(value, source, Scalar("int"), ValueRules())
    days = "null" if whole is None else whole.sql
    if unit is Unit.DAYS:
        date = f"if({days} between -719162 and 2932896, date_from_unix_date({days}), null)"
    else:
        # Excel has a 29 February 1900, which there was not: its day 60.
        date = (
            f"case when {days} between 61 and 2958465 then date_add(date'1899-12-30', {days}) "
            f"when {days} between 1 and 59 then date_add(date'1899-12-31', {days}) end"
        )
    return Leaf(date, Reason.OUT_OF_RANGE)


# Booleans, dates, times


def _date_to_time(value: str, _source: Type, target: Type, rules: ValueRules) -> Leaf | None:
    midnight = f"cast({value} as timestamp_ntz)"
    if target.ddl == "timestamp_ntz":
        return Leaf(midnight)
    if rules.zone is None:
        return None
    if rules.zone == "UTC":
        return Leaf(f"cast({value} as timestamp)")
    return Leaf(_bounded(_instant(midnight, rules.zone), target), Reason.NO_SUCH_TIME)


def _time_to_date(value: str, source: Type, _target: Type, rules: ValueRules) -> Leaf:
    local = _local(value, rules.zone) if source.ddl == "timestamp" else value
    day = f"cast({local} as date)"
    is_midnight = f"cast({day} as timestamp_ntz) = {local} and {day} between {_FIRST} and {_LAST}"
    return Leaf(f"if({is_midnight}, {day}, null)", Reason.NOT_MIDNIGHT)


def _time_to_time(value: str, source: Type, target: Type, rules: ValueRules) -> Leaf | None:
    if source == target:
        return Leaf(value)
    if rules.zone is None:
        return None
    if target.ddl == "timestamp_ntz":
        return Leaf(_bounded(_local(value, rules.zone), target), Reason.OUT_OF_RANGE)
    if rules.zone == "UTC":
        return Leaf(f"cast({value} as timestamp)")
    return Leaf(_bounded(_instant(value, rules.zone), target), Reason.NO_SUCH_TIME)


def _local(instant: str, zone: str | None) -> str:
    """Return SQL of the time that clocks of a zone show at an instant; null without a zone."""
    if zone is None:
        return "cast(null as timestamp_ntz)"
    utc = f"cast({instant} as timestamp_ntz)"
    return utc if zone == "UTC" else f"convert_timezone('UTC', {text_sql(zone)}, {utc})"


def _instant(local: str, zone: str | None) -> str:
    """Return SQL of the instant at which clocks of a zone show a time; see `utc_sql`. Null without a zone."""
    return "cast(null as timestamp)" if zone is None else f"cast({utc_sql(local, zone)} as timestamp)"


def utc_sql(local: str, zone: str) -> str:
    """Return SQL of the time in UTC at which clocks of a zone show a time; null if they never do, or twice.

    Clocks are put forward or back by less than a day: the offsets of a day before and after are those between
    which a time may lie.
    """
    before, after = (
        f"convert_timezone({text_sql(zone)}, 'UTC', {local} + interval '{days}' day) - interval '{days}' day"
        for days in (-1, 1)
    )
    one, other = (
        f"if(convert_timezone('UTC', {text_sql(zone)}, {utc}) = {local}, {utc}, null)"
        for utc in (before, after)
    )
    either = f"if(({one}) is null, {other}, if(({other}) is null, {one}, null))"
    return f"if({before} = {after}, {one}, {either})"


def _same(value: str, _source: Type, _target: Type, _rules: ValueRules) -> Leaf:
    return Leaf(value)


def _cast(value: str, _source: Type, target: Type, _rules: ValueRules) -> Leaf:
    return Leaf(f"cast({value} as {target.ddl})")


def _binary_to_text(value: str, _source: Type, target: Type, rules: ValueRules) -> Leaf:
    made = _limited(f"cast({value} as string)", target, rules)
    return Leaf(f"if(is_valid_utf8({made.sql}), {made.sql}, null)", Reason.NOT_WRITTEN_SO)


_NUMBERS = ("whole", "decimal", "float")

_RULES: Mapping[tuple[str, str], _Rule] = {
    **{(kind, "text"): _to_text for kind in ("text", *_NUMBERS, "boolean", "date", *TIMES)},
    ("text", "whole"): _text_to_whole,
    ("text", "decimal"): _text_to_decimal,
    ("text", "float"): _text_to_float,
    ("text", "boolean"): _text_to_boolean,
    ("text", "date"): _text_to_date,
    **{("text", time): _text_to_time for time in TIMES},
    ("text", "binary"): _cast,
    **{(kind, "boolean"): _number_to_boolean for kind in _NUMBERS},
    **{(kind, time): _number_to_counted for kind in _NUMBERS for time in ("date", *TIMES)},
    ("whole", "whole"): _whole_to_whole,
    ("whole", "decimal"): _exact_to_decimal,
    ("whole", "float"): _whole_to_float,
    ("decimal", "whole"): _decimal_to_whole,
    ("decimal", "decimal"): _exact_to_decimal,
    ("decimal", "float"): _decimal_to_float,
    ("float", "whole"): _float_to_whole,
    ("float", "decimal"): _float_to_decimal,
    ("float", "float"): _float_to_float,
    ("boolean", "boolean"): _same,
    ("date", "date"): _same,
    **{("date", time): _date_to_time for time in TIMES},
    **{(time, "date"): _time_to_date for time in TIMES},
    **{(one, other): _time_to_time for one in TIMES for other in TIMES},
    ("binary", "text"): _binary_to_text,
    ("binary", "binary"): _same,
    **{(kind, "variant"): _cast for kind in (*_NUMBERS, "boolean", "date", *TIMES, "binary")},
    ("variant", "variant"): _same,
}

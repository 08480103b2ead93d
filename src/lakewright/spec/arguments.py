"""The arguments of a job, and the instances that they expand to.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (parameters and ranges on the command line). A range
includes both ends, as in the document's example of ten days.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import product
from math import prod
from typing import Any

from lakewright.errors import Fault, SpecError
from lakewright.errors.phrase import Option, Phrase
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.secrets import HIDDEN, is_secret_name
from lakewright.spec.expressions.values import Duration, Value, ValueType, render_value
from lakewright.spec.models.job import Parameter, StepSize
from lakewright.spec.suggestions import suggestion

MOST_INSTANCES = 100_000
"""A run with more instances than this is assumed to be a mistake."""

_SUFFIXES = ("start", "end", "until", "step")
_NO_ORDER = "cannot have a range: only numbers, dates, timestamps and durations have an order"
_SAMPLES = {
    ValueType.STRING: ("text", '"text"'),
    ValueType.INTEGER: ("1", "1"),
    ValueType.FLOAT: ("1.5", "1.5"),
    ValueType.DECIMAL: ("1.5", "1.5"),
    ValueType.BOOLEAN: ("true", "True"),
    ValueType.DATE: ("2022-01-31", "date(2022, 1, 31)"),
    ValueType.TIMESTAMP: ("2022-01-31T12:00:00Z", "datetime(2022, 1, 31, 12, tzinfo=UTC)"),
    ValueType.DURATION: ("PT1H", "timedelta(hours=1)"),
}
"""A value of each type, as it is written on a command line and in Python."""

_UNORDERED = (ValueType.STRING, ValueType.BOOLEAN)
_VALUE = re.compile(r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>(?!")(?:\\,|[^,])*))(?=,|\Z)', re.DOTALL)
"""One of several values: in double quotes, or up to the next comma without a backslash before it."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_Given = Mapping[str, str]
"""The arguments for one parameter: the bounds of a range by suffix, or its values without a suffix."""


def expand_arguments(
    parameters: Sequence[Parameter], arguments: Sequence[str], scope: Scope, *, may_be_hidden: bool = False
) -> tuple[Mapping[str, Value], ...]:
    """Return the instances that arguments expand to: all combinations, in the order of the parameters.

    Args:
        parameters: The parameters that the job declares.
        arguments: `p=v`, `p=v1,v2`, `p:start=…`, `p:end=…` (included), `p:until=…` (excluded), `p:step=…`.
            `split_values` says how commas and quotes are read.
        scope: Evaluates the expressions of defaults and granularities.
        may_be_hidden: Whether the arguments come from a recorded run, in which secret values are hidden.

    Raises:
        SpecError: Some arguments are invalid: unknown or missing parameters, wrong values, incomplete or
            reversed ranges. The error has all faults.
    """
    faults: list[Fault] = []
    given = _read_arguments(parameters, arguments, faults)
    choices: list[tuple[Value, ...]] = []
    for parameter in parameters:
        try:
            choice = _ParameterValues(parameter, scope, may_be_hidden=may_be_hidden)
            choices.append(choice.values(given.get(parameter.name, {})))
        except (ValueError, OverflowError) as error:
            why = f"parameter {parameter.name}: {error}"
            faults.append(_usage(why, _remedy(parameter)))
    if faults:
        raise SpecError(faults)
    if prod(len(values) for values in choices) > MOST_INSTANCES:
        raise SpecError([_usage(f"the arguments expand to more than {MOST_INSTANCES} instances")])
    names = [parameter.name for parameter in parameters]
    return tuple(dict(zip(names, combination, strict=True)) for combination in product(*choices))


def expand_range(parameter: Parameter, bounds: Mapping[str, str]) -> tuple[Value, ...]:
    """Return the values of a range.

    Args:
        parameter: What the values are of.
        bounds: Texts of `start`, of `end` or `until`, and of `step`, as `expand_arguments` takes them.

    Raises:
        ValueError: The range is incomplete, reversed or too long, or a bound is no value.
        OverflowError: A value is out of range.
    """
    values = _ParameterValues(parameter, Scope(), may_be_hidden=False).values(bounds)
    if len(values) > MOST_INSTANCES:
        raise ValueError(f"has more than {MOST_INSTANCES} values")
    return values


def split_values(text: str) -> tuple[str, ...]:
    r"""Return the values in a comma-separated text.

    `\,` is a comma inside a value. A value in double quotes may contain commas; `\"` and `\\` are a quote and
    a backslash in it. Elsewhere, backslashes and quotes are literal.

    Raises:
        ValueError: The closing quote of a value is missing, or text follows it.

    Example:
        >>> split_values('a,b'), split_values('a\\,b'), split_values('"a,b",c')
        (('a', 'b'), ('a,b',), ('a,b', 'c'))
    """
    found: list[str] = []
    position = 0
    while True:
        match = _VALUE.match(text, position)
        if match is None:
            raise ValueError(
                f'{text[position:]!r} has no closing ", or text after it; write \\" for a quote at the start'
            )
        quoted, plain = match["quoted"], match["plain"]
        found.append(re.sub(r"\\([\"\\])", r"\1", quoted) if quoted is not None else _unescaped(plain))
        if match.end() == len(text):
            return tuple(found)
        position = match.end() + 1


def argument_text(name: str, *values: str) -> str:
    r"""Return the argument that gives a parameter these values, quoted as `split_values` reads them.

    Example:
        >>> argument_text("day", "1", "2"), argument_text("name", "a,b", "c")
        ('day=1,2', 'name="a,b",c')
    """
    return f"{name}={','.join(map(_quoted, values))}"


def _quoted(value: str) -> str:
    if not value.startswith('"') and not set(value) & set(",\\"):
        return value
    escaped = re.sub(r'(["\\])', r"\\\1", value)
    return f'"{escaped}"'


def _unescaped(plain: str) -> str:
    plain = plain.replace("\\,", ",")
    return plain[1:] if plain.startswith('\\"') else plain


def sample_arguments(parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """Return an arbitrary valid argument for each parameter that has no default.

    Example:
        >>> sample_arguments([Parameter(name="day", type=ValueType.DATE)])
        ('day=2022-01-31',)
    """
    return tuple(f"{each.name}={_SAMPLES[each.type][0]}" for each in parameters if each.default is None)


def _read_arguments(
    parameters: Sequence[Parameter], arguments: Sequence[str], faults: list[Fault]
) -> Mapping[str, _Given]:
    known = [parameter.name for parameter in parameters]
    given: dict[str, dict[str, str]] = {}
    for argument in arguments:
        left, equals, value = argument.partition("=")
        name, colon, suffix = left.partition(":")
        fault = _argument_fault(argument, name, suffix if colon else None, bool(equals), known)
        if fault is not None:
            faults.append(fault)
            continue
        if suffix in given.setdefault(name, {}):
            faults.append(_usage(f"{left} is given twice"))
        else:
            given[name][suffix] = value
    return given


def _argument_fault(
    argument: str, name: str, suffix: str | None, has_value: bool, known: Sequence[str]
) -> Fault | None:
    if not has_value:
        return _usage(f"{argument!r} is not an argument", "Write name=value, or name:start= and name:end=.")
    if name not in known:
        there = f"The job has the parameters {', '.join(known)}." if known else "The job has no parameters."
        remedy = suggestion(name, known) or there
        return _usage(f"unknown parameter {name!r}", remedy, unknown_parameter=name)
    if suffix is not None and suffix not in _SUFFIXES:
        why, remedy = (
            f"unknown suffix {suffix!r} of parameter {name}",
            "There are start, end, until and step.",
        )
        return _usage(why, remedy, unknown_suffix=suffix)
    return None


def _usage(message: str, remedy: str | None = None, **details: str) -> Fault:
    return Fault(message, remedy=remedy, code="usage", details=details)


def _remedy(parameter: Parameter) -> str:
    name, (sample, in_python) = parameter.name, _SAMPLES[parameter.type]
    value = Option(f"{name}={sample}", f"{name}={in_python}")
    single = Phrase(f"{name} is of type {parameter.type}: write ", value)
    if parameter.type in _UNORDERED:
        return single
    step = ", step=timedelta(hours=1)" if parameter.type is ValueType.TIMESTAMP else ""
    return Phrase(single, ", or ", Option(f"{name}:start=… {name}:end=…", f"{name}=Range(…, …{step})"))


class _ParameterValues:
    """The values of one parameter."""

    def __init__(self, parameter: Parameter, scope: Scope, *, may_be_hidden: bool) -> None:
        self.parameter = parameter
        self.scope = scope
        self.may_be_hidden = may_be_hidden
        self.granularity = parameter.step(scope)

    def values(self, given: _Given) -> tuple[Value, ...]:
        if not given:
            if self.parameter.default is None:
                raise ValueError("is missing and has no default")
            return (self._floored(self.parameter.default_value(self.scope)),)
        if "" not in given:
            return tuple(self._range(given))
        if len(given) > 1:
            raise ValueError("has both a value and a range")
        return tuple(dict.fromkeys(self._parse(text) for text in split_values(given[""])))

    def _range(self, bounds: Mapping[str, str]) -> Iterable[Value]:
        if "start" not in bounds:
            raise ValueError(f"has {', '.join(sorted(bounds))} but no start")
        if ("end" in bounds) == ("until" in bounds):
            raise ValueError("has a start, so it needs either end (included) or until (excluded)")
        bound = "end" if "end" in bounds else "until"
        if self.parameter.type is ValueType.STRING:
            return self._text_range(bounds, bounds[bound])
        start, stop = self._parse(bounds["start"]), self._parse(bounds[bound])
        if _order(start) > _order(stop):
            raise ValueError(f"starts at {bounds['start']}, which is after {bounds[bound]}")
        step = self._step(bounds.get("step"))
        if _order(_advanced(start, step, 1)) <= _order(start):
            raise ValueError(f"has a step of {bounds.get('step') or step}, which does not advance")
        return self._rounded(_walk(start, stop, step, is_included=bound == "end"))

    def _rounded(self, values: Iterable[Value]) -> Iterable[Value]:
        """Return the values of a range rounded down to the granularity, each once: a step may be finer."""
        found = list(values)
        if self.granularity is None or len(found) > MOST_INSTANCES:  # so many are refused
            return found
        return dict.fromkeys(map(self._floored, found))

    def _text_range(self, bounds: Mapping[str, str], stop: str) -> Iterable[Value]:
        """Return the texts of a range of dates or whole numbers: `string` is the type of most parameters."""
        start = bounds["start"]
        for each in (ValueType.DATE, ValueType.INTEGER):
            typed = self.parameter.model_copy(update={"type": each})
            try:
                typed.parse(start), typed.parse(stop)
            except ValueError:
                continue
            values = _ParameterValues(typed, self.scope, may_be_hidden=self.may_be_hidden)._range(bounds)
            width = len(start) if each is ValueType.INTEGER and start.startswith("0") else 0
            return (render_value(value).zfill(width) for value in values)
        raise ValueError("is of type string, whose ranges need dates or whole numbers")

    def _parse(self, text: str) -> Value:
        if text == HIDDEN and is_secret_name(self.parameter.name) and not self.may_be_hidden:
            raise ValueError(f"has the value {HIDDEN}, which marks a hidden secret; give the secret itself")
        return self._floored(self.parameter.parse(text))

    def _floored(self, value: Value) -> Value:
        return value if self.granularity is None else floor_value(value, self.granularity)

    def _step(self, text: str | None) -> StepSize:
        if text is not None:
            return self.parameter.parse_step(text)
        if self.granularity is not None:
            return self.granularity
        if self.parameter.type is ValueType.TIMESTAMP:
            raise ValueError("needs a step such as PT1H")
        return Duration(days=1) if self.parameter.type in (ValueType.DATE, ValueType.DURATION) else 1


def _walk(start: Value, stop: Value, step: StepSize, *, is_included: bool) -> Iterator[Value]:
    for count in range(MOST_INSTANCES + 1):
        try:
            value = _advanced(start, step, count)
        except OverflowError:  # the range ends with the last day that there is
            return
        if _order(value) > _order(stop) or (value == stop and not is_included):
            return
        yield value


def _advanced(start: Value, step: StepSize, count: int) -> Value:
    """Return `start` plus `count` steps, added at once, so months from 31 January end on last days."""
    if isinstance(step, Duration):
        if isinstance(start, Duration):
            return _exactly(start.exact + (step * count).exact)
        if isinstance(start, date):
            return (step * count).after(start)
    elif isinstance(start, (int, Decimal)) and not isinstance(start, bool):
        return start + step * count
    elif isinstance(start, float):
        return float(Decimal(str(start)) + step * count)
    raise ValueError(_NO_ORDER)


def _order(value: Value) -> Any:
    """Return what values of one type can be ordered by."""
    if value is None or isinstance(value, str | bool):
        raise ValueError(_NO_ORDER)
    return value.exact if isinstance(value, Duration) else value


def _exactly(delta: timedelta) -> Duration:
    return Duration(microseconds=delta // timedelta(microseconds=1))


def floor_value(value: Value, granularity: StepSize) -> Value:
    """Return the largest multiple of the granularity that is at most the value.

    Multiples count from 0, or from 1970-01-01 for dates and timestamps. Months and years count from year 0,
    so that `P3M` floors to quarters.

    Example:
        >>> floor_value(date(2022, 2, 17), Duration(months=1))
        datetime.date(2022, 2, 1)
    """
    if isinstance(granularity, Duration):
        if isinstance(value, datetime):
            return _floor_moment(value, granularity)
        if isinstance(value, date):
            return _floor_moment(datetime.combine(value, time.min), granularity).date()
        if isinstance(value, Duration):
            return _exactly(value.exact // granularity.exact * granularity.exact)
    elif isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return value // granularity * granularity
    elif isinstance(value, float):
        return float(Decimal(str(value)) // granularity * granularity)
    raise ValueError("has a granularity, but only numbers, dates, timestamps and durations can have one")


def _floor_moment(value: datetime, length: Duration) -> datetime:
    if not length.months:
        epoch = _EPOCH if value.tzinfo else _EPOCH.replace(tzinfo=None)
        return epoch + (value - epoch) // length.exact * length.exact
    if length.days or length.microseconds:
        raise ValueError(f"granularity {length} mixes months with days or time")
    months = (value.year * 12 + value.month - 1) // length.months * length.months
    return datetime(months // 12, months % 12 + 1, 1, tzinfo=value.tzinfo)

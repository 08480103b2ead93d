"""A job's arguments, and the instances that they expand to.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (parameters and ranges on the command line). Both ends
of a range are included, as in the document's example of ten days.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import product
from math import prod

from lakewright.errors import Fault, SpecError
from lakewright.spec.near import suggestion
from lakewright.spec.values import Duration, Value, ValueType, parse_value

__all__ = ["MOST_INSTANCES", "Parameter", "expand", "floor_value", "range_values"]

MOST_INSTANCES = 100_000
"""More instances than this in one run are taken for a mistake."""

_SUFFIXES = ("start", "end", "until", "step")
_NO_ORDER = "can't have a range: only numbers, dates, timestamps and durations have an order"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A job's parameter.

    Attributes:
        granularity: A number or an ISO 8601 duration: values are floored to it, and it is a range's step
            unless one is given.
        default: The text used where no argument is given; None makes the parameter required.
    """

    name: str
    type: ValueType = ValueType.STRING
    granularity: str | None = None
    default: str | None = None


@dataclass(slots=True)
class _Given:
    values: str | None = None
    bounds: dict[str, str] = field(default_factory=dict)


def expand(parameters: Sequence[Parameter], arguments: Sequence[str]) -> tuple[Mapping[str, Value], ...]:
    """Return the instances that arguments come to: all combinations, in the order of the parameters.

    Args:
        parameters: As the job declares them.
        arguments: `p=v`, `p=v1,v2`, `p:start=…`, `p:end=…` (included), `p:until=…` (excluded), `p:step=…`.

    Raises:
        SpecError: With every fault: unknown or missing parameters, wrong values, half or backward ranges.
    """
    faults: list[Fault] = []
    given = _read_arguments(parameters, arguments, faults)
    choices: list[tuple[Value, ...]] = []
    for parameter in parameters:
        try:
            choices.append(_values(parameter, given.get(parameter.name)))
        except (ValueError, OverflowError) as error:
            faults.append(Fault(f"parameter {parameter.name}: {error}", code="usage"))
    if faults:
        raise SpecError(faults)
    if prod(len(values) for values in choices) > MOST_INSTANCES:
        raise SpecError([Fault(f"the arguments come to more than {MOST_INSTANCES} instances", code="usage")])
    names = [parameter.name for parameter in parameters]
    return tuple(dict(zip(names, combination, strict=True)) for combination in product(*choices))


def _read_arguments(
    parameters: Sequence[Parameter], arguments: Sequence[str], faults: list[Fault]
) -> dict[str, _Given]:
    known = [parameter.name for parameter in parameters]
    given: dict[str, _Given] = {}
    for argument in arguments:
        left, equals, value = argument.partition("=")
        name, colon, suffix = left.partition(":")
        fault = _argument_fault(argument, name, suffix if colon else None, bool(equals), known)
        if fault is not None:
            faults.append(fault)
            continue
        entry = given.setdefault(name, _Given())
        if (entry.values is not None) if not colon else (suffix in entry.bounds):
            faults.append(Fault(f"{left} is given twice", code="usage"))
        elif colon:
            entry.bounds[suffix] = value
        else:
            entry.values = value
    return given


def _argument_fault(
    argument: str, name: str, suffix: str | None, has_value: bool, known: Sequence[str]
) -> Fault | None:
    if not has_value:
        return Fault(
            f"{argument!r} is no argument",
            remedy="Write name=value, or name:start= and name:end=.",
            code="usage",
        )
    if name not in known:
        there = f"The job has {', '.join(known)}." if known else "The job has no parameters."
        return Fault(f"unknown parameter {name!r}", remedy=suggestion(name, known) or there, code="usage")
    if suffix is not None and suffix not in _SUFFIXES:
        return Fault(
            f"unknown suffix {suffix!r} of parameter {name}",
            remedy="There are start, end, until and step.",
            code="usage",
        )
    return None


def _values(parameter: Parameter, given: _Given | None) -> tuple[Value, ...]:
    if given is None or (given.values is None and not given.bounds):
        if parameter.default is None:
            raise ValueError(f"is missing and has no default; give {parameter.name}=… or a range")
        return _listed(parameter, [parameter.default])
    if given.values is None:
        return tuple(range_values(parameter, given.bounds))
    if given.bounds:
        raise ValueError("is given both by value and by range")
    return _listed(parameter, given.values.split(","))


def _listed(parameter: Parameter, texts: Sequence[str]) -> tuple[Value, ...]:
    values = [floor_value(_parse(parameter, text), parameter.granularity) for text in texts]
    return tuple(dict.fromkeys(values))


def _parse(parameter: Parameter, text: str) -> Value:
    try:
        return parse_value(parameter.type, text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no {parameter.type}: {error}") from error


def range_values(parameter: Parameter, bounds: Mapping[str, str]) -> Iterator[Value]:
    """Yield the values of a range whose bounds are texts under `start`, `end` or `until`, and `step`.

    Raises:
        ValueError: The range is half, backward or has no usable step.
    """
    if "start" not in bounds:
        raise ValueError(f"has {', '.join(sorted(bounds))} but no start")
    if ("end" in bounds) == ("until" in bounds):
        raise ValueError("needs one of end (included) and until (excluded) with its start")
    bound = "end" if "end" in bounds else "until"
    start = floor_value(_parse(parameter, bounds["start"]), parameter.granularity)
    stop = floor_value(_parse(parameter, bounds[bound]), parameter.granularity)
    if _order(start) > _order(stop):
        raise ValueError(f"starts at {bounds['start']}, which is after {bounds[bound]}")
    advance = _advance(parameter, bounds.get("step"))
    if _order(advance(start, 1)) <= _order(start):
        raise ValueError(f"has a step of {bounds.get('step') or parameter.granularity}, which leads nowhere")
    return _walk(start, stop, advance, is_included=bound == "end")


def _walk(
    start: Value, stop: Value, advance: Callable[[Value, int], Value], *, is_included: bool
) -> Iterator[Value]:
    for count in range(MOST_INSTANCES + 1):
        value = advance(start, count)
        if _order(value) > _order(stop) or (value == stop and not is_included):
            return
        yield value


def _order(value: Value) -> float:
    """Return a number that orders values of one type."""
    if isinstance(value, Duration):
        return value.exact.total_seconds()
    if isinstance(value, datetime):
        epoch = _EPOCH if value.tzinfo else _EPOCH.replace(tzinfo=None)
        return (value - epoch) / timedelta(microseconds=1)
    if isinstance(value, date):
        return value.toordinal()
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float)):
        raise ValueError(_NO_ORDER)
    return value


def _advance(parameter: Parameter, step: str | None) -> Callable[[Value, int], Value]:
    text = step or parameter.granularity
    if parameter.type in (ValueType.DATE, ValueType.TIMESTAMP):
        if text is None and parameter.type is ValueType.TIMESTAMP:
            raise ValueError("needs a step, PT1H for example")
        length = Duration.parse(text or "P1D")
        return lambda start, count: _moved(length * count, start)
    if parameter.type is ValueType.DURATION:
        every = Duration.parse(text or "P1D").exact
        return lambda start, count: _exactly(_exact(start) + every * count)
    number = _number(parameter, text or "1")
    return lambda start, count: _added(start, number * count)


def _moved(length: Duration, start: Value) -> Value:
    if not isinstance(start, date):
        raise ValueError("a duration can only be added to a date or a timestamp")
    return length.after(start)


def _added(start: Value, number: int | float) -> Value:
    if not isinstance(start, (int, float)):
        raise ValueError(_NO_ORDER)
    return start + number


def _number(parameter: Parameter, text: str) -> int | float:
    value = _parse(parameter, text)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(_NO_ORDER)
    return value


def _exact(value: Value) -> timedelta:
    if not isinstance(value, Duration):
        raise ValueError("is no duration")
    return value.exact


def _exactly(delta: timedelta) -> Duration:
    return Duration(microseconds=delta // timedelta(microseconds=1))


def floor_value(value: Value, granularity: str | None) -> Value:
    """Return the value floored to the granularity: whole multiples, counted from 0 or from 1970-01-01.

    Months and years are counted from year 0, so that `P3M` floors to quarters.

    Example:
        >>> floor_value(date(2022, 2, 17), "P1M")
        datetime.date(2022, 2, 1)
    """
    if granularity is None:
        return value
    try:
        return _floored(value, granularity)
    except ZeroDivisionError:
        raise ValueError("has a granularity of zero") from None


def _floored(value: Value, granularity: str) -> Value:
    if isinstance(value, datetime):
        return _floor_datetime(value, Duration.parse(granularity))
    if isinstance(value, date):
        return _floor_date(value, Duration.parse(granularity))
    if isinstance(value, Duration):
        size = Duration.parse(granularity).exact
        return _exactly(value.exact // size * size)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        unit = float(granularity) if isinstance(value, float) else int(granularity)
        return value // unit * unit
    raise ValueError("has a granularity, which only numbers, dates, timestamps and durations can have")


def _floor_months(value: date, length: Duration) -> date:
    if length.days or length.microseconds:
        raise ValueError(f"granularity {length} mixes months with days or time")
    months = (value.year * 12 + value.month - 1) // length.months * length.months
    return date(months // 12, months % 12 + 1, 1)


def _floor_date(value: date, length: Duration) -> date:
    if length.months:
        return _floor_months(value, length)
    size = length.exact.days
    if size < 1:
        return value
    days = (value - _EPOCH.date()).days
    return _EPOCH.date() + timedelta(days=days // size * size)


def _floor_datetime(value: datetime, length: Duration) -> datetime:
    if length.months:
        day = _floor_months(value.date(), length)
        return datetime(day.year, day.month, day.day, tzinfo=value.tzinfo)
    epoch = _EPOCH if value.tzinfo else _EPOCH.replace(tzinfo=None)
    return epoch + (value - epoch) // length.exact * length.exact

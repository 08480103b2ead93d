"""The arguments of the API, checked by their annotations; those of a job are written as on the command line.

A run is thereby recorded, and resumed, in the same way whoever starts it.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, wraps
from math import isnan
from reprlib import repr as short
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo

from lakewright.errors import UsageError
from lakewright.plan.phase import Phase
from lakewright.run.request import JobRequest
from lakewright.spec.arguments import argument_text, expand_arguments
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import (
    Duration,
    Value,
    ValueType,
    parse_datetime,
    parse_timestamp,
    render_value,
)
from lakewright.spec.grants import Grant
from lakewright.spec.models.job import Job, Parameter
from lakewright.spec.suggestions import hint
from lakewright.usecases.reading import check_single

N = TypeVar("N", int, int | None)


def job_request(
    job: str,
    phase: str,
    arguments: tuple[str, ...],
    *,
    targets: str | Iterable[str] | None = None,
    dirty: str | Iterable[str] | None = None,
    jobs: int | None = None,
    **options: bool,
) -> JobRequest:
    """Return the request for a job with these arguments and options, as `Project.run` explains them.

    Raises:
        UsageError: There is no such phase.
    """
    return JobRequest.typed(
        job,
        Phase.named(phase),
        arguments,
        targets=_chosen("targets", targets),
        dirty=_chosen("dirty", dirty),
        jobs=count_of("jobs", jobs),
        **options,
    )


def _chosen(name: str, texts: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return what selects targets; none if that is None.

    Raises:
        UsageError: It is no text, or an empty collection, which would mean all although it has none.
    """
    found = () if texts is None else texts_of(name, texts)
    if texts is not None and not found:
        raise UsageError(f"{name}={texts!r} selects no target", remedy=f"Leave {name} out, or give None.")
    return found


def texts_of(name: str, texts: str | Iterable[str]) -> tuple[str, ...]:
    """Return the texts of an argument that takes one or several.

    Raises:
        UsageError: It is something else.
    """
    is_one = isinstance(texts, str) or not isinstance(texts, Iterable)
    found: tuple[Any, ...] = (texts,) if is_one else tuple(texts)
    if not all(isinstance(text, str) for text in found):
        raise UsageError(f"{name}={texts!r} is neither a text nor a list of texts")
    return found


def texts_by_name(name: str, texts: object) -> Mapping[str, str] | None:
    """Return the texts of an argument that takes them by name.

    Raises:
        UsageError: It is something else.
    """
    if texts is None:
        return None
    if not isinstance(texts, Mapping):
        raise UsageError(f"{name}={texts!r} has no texts by name")
    for key, value in texts.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise UsageError(f"{name}: the value of {key} is {value!r}, not text")
    return texts


def count_of(name: str, value: N) -> N:
    """Return a number of things, from 1 on, or None.

    Raises:
        UsageError: It is something else.
    """
    given: Any = value
    if given is not None and (type(given) is not int or given < 1):
        raise UsageError(f"{name}={value!r} is not a whole number from 1 on")
    return value


def grants_of(values: str | Iterable[str]) -> frozenset[Grant]:
    """Return the grants that have these names.

    Example:
        >>> grants_of("foreign")
        frozenset({<Grant.FOREIGN: 'foreign'>})

    Raises:
        UsageError: There is no such grant.
    """
    names = (values,) if isinstance(values, str) else tuple(values)
    known = [grant.value for grant in Grant]
    for name in names:
        if name not in known:
            raise UsageError(f"{name!r} is no grant; {hint(name, known)}")
    return frozenset(map(Grant, names))


def time_text(value: str | date | datetime | None, zone: ZoneInfo) -> str | None:
    """Return a processing time as the text that the command line takes.

    The second of the two times of a clock that is put back (`fold=1`) gets its offset.

    Args:
        value: The time; without an offset it is in `zone`.
        zone: The lake's time zone.

    Example:
        >>> from zoneinfo import ZoneInfo
        >>> zone = ZoneInfo("Europe/Amsterdam")
        >>> time_text(date(2024, 5, 1), zone), time_text("${slice.date}", zone)
        ('2024-05-01', '${slice.date}')
        >>> time_text(datetime(2024, 10, 27, 2, 30, fold=1), zone)
        '2024-10-27T02:30:00+01:00'
    """
    if isinstance(value, datetime) and value.tzinfo is None and value.fold:
        value = value.replace(tzinfo=zone)
    return value.isoformat() if isinstance(value, date) else value


def key_text(value: Any) -> str:
    """Return a value of a business key as Spark writes it as text.

    Example:
        >>> key_text(7), key_text(datetime(2024, 5, 1, 12)), key_text(True), key_text(2.0)
        ('7', '2024-05-01 12:00:00', 'true', '2')

    Raises:
        UsageError: It is null, which no business key has.
    """
    value = of_numpy(value)
    if value is None or (isinstance(value, float) and isnan(value)):  # as pandas writes null
        raise UsageError("a business key has no null", remedy="Give the value that the record has.")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # pandas makes floats of whole numbers beside nulls
    if isinstance(value, datetime):
        return (value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value).isoformat(" ")
    return render_value(value)


def of_numpy(value: Any) -> Any:
    """Return a number, text or boolean of numpy as Python's; other values as they are."""
    return value.item() if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0 else value


@dataclass(frozen=True, slots=True)
class Range:
    """The values of a parameter from a start to an end, with an instance of the job for each.

    Attributes:
        start: The first value.
        end: The last value, which is included. Give either this or `until`.
        until: The end that is not included.
        step: The distance between two values: a number, a `timedelta` or ISO 8601 text such as `P1M`; by
            default the granularity of the parameter, a day or 1.
    """

    start: object
    end: object = None
    until: object = None
    step: object = None

    def __post_init__(self) -> None:
        if (self.end is None) == (self.until is None):
            raise UsageError(
                "a Range has either an end or an until",
                remedy="Range(start, end) includes the end; Range(start, until=…) does not.",
            )


def all_values(parameters: Mapping[str, object] | None, values: Mapping[str, object]) -> dict[str, object]:
    """Return the values of parameters that are given as a map and as arguments.

    Raises:
        UsageError: One is given in both ways.
    """
    for name in values.keys() & (parameters or {}).keys():
        raise UsageError(
            f"parameter {name} is given twice: as an argument, and in `parameters`",
            remedy="Give it once; `parameters` is for names that are arguments of the method too.",
        )
    return {**(parameters or {}), **values}


_OF_ONE_METHOD = {"preview": "plan", "jobs": "run", "on_event": "run"}
"""Arguments that only one of `plan` and `run` has; the other takes them for parameters of the job."""


def job_arguments(
    parameters: Sequence[Parameter], texts: Sequence[str], values: Mapping[str, object]
) -> tuple[str, ...]:
    """Return the arguments of a job as texts, which `expand_arguments` checks.

    Args:
        parameters: The parameters that the job declares.
        texts: Arguments that are texts already: `p=v`, `p:start=…` and so on.
        values: A value, a collection of values or a `Range` by name of the parameter.

    Raises:
        UsageError: A value has no text as an argument, or is a time for a parameter of type date; or a name
            is an argument of another method.

    Example:
        >>> day = Parameter(name="day", type=ValueType.DATE)
        >>> job_arguments([day], [], {"day": Range(date(2024, 5, 1), date(2024, 5, 3))})
        ('day:start=2024-05-01', 'day:end=2024-05-03')
    """
    types = {parameter.name: parameter.type for parameter in parameters}
    for name in values.keys() & _OF_ONE_METHOD.keys() - types.keys():
        method = _OF_ONE_METHOD[name]
        raise UsageError(
            f"{name} is an argument of `{method}` alone", remedy=f"Leave it out, or call `{method}`."
        )
    typed = (text for name, value in values.items() for text in _texts(name, value, types.get(name)))
    return (*texts, *typed)


def values_of(jobs: Iterable[Job], scope: Scope, values: Mapping[str, object]) -> dict[str, Value]:
    """Return the values that `read` is given as a run has them.

    A name that jobs declare as a parameter has the parameter's type and granularity, if all of them declare
    the same. Others have the type of Python, in which a time with an offset is a timestamp in UTC.

    Raises:
        UsageError: A value is not of its parameter's type, or can't be the value of a parameter.

    Example:
        >>> from datetime import timezone
        >>> values_of([], Scope(), {"t": datetime(2024, 5, 1, 10, tzinfo=timezone(timedelta(hours=2)))})
        {'t': datetime.datetime(2024, 5, 1, 8, 0, tzinfo=datetime.timezone.utc)}
    """
    declared = [parameter for job in jobs for parameter in job.parameters]
    return {
        name: _value_of(name, value, [each for each in declared if each.name == name], scope)
        for name, value in values.items()
    }


def _value_of(name: str, value: Any, declared: Sequence[Parameter], scope: Scope) -> Value:
    check_single(name, value, is_range=isinstance(value, Range))
    types = {parameter.type for parameter in declared}
    text = _text(name, value, next(iter(types)) if len(types) == 1 else None)
    if len(types) != 1:
        value = of_numpy(value)
        if isinstance(value, datetime):
            return parse_timestamp(text) if value.tzinfo else parse_datetime(text)
        return Duration.parse(text) if isinstance(value, timedelta) else value
    granularities = {parameter.granularity for parameter in declared}
    parameter = declared[0] if len(granularities) == 1 else Parameter(name=name, type=declared[0].type)
    (instance,) = expand_arguments((parameter,), (argument_text(name, text),), scope)
    return instance[name]


def _texts(name: str, value: object, type_: ValueType | None) -> Iterable[str]:
    if isinstance(value, Range):
        ends = {"start": value.start, "end": value.end, "until": value.until, "step": value.step}
        return [
            f"{name}:{suffix}={_text(name, each, None if suffix == 'step' else type_)}"
            for suffix, each in ends.items()
            if each is not None
        ]
    if getattr(value, "ndim", None) == 1 and isinstance(value, Iterable):  # an index of pandas, an array
        value = list(value)
    if isinstance(value, Sequence | Set | range) and not isinstance(value, str | bytes):
        if not value:
            raise UsageError(f"parameter {name}: the collection of values is empty")
        ordered = sorted(value) if isinstance(value, Set) else value
        return [argument_text(name, *(_text(name, each, type_) for each in ordered))]
    return [argument_text(name, _text(name, value, type_))]


def _text(name: str, value: Any, type_: ValueType | None) -> str:
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    value = of_numpy(value)
    if kind in ("m", "M") and isinstance(value, int):  # numpy gives nanoseconds as their number
        raise UsageError(
            f"parameter {name}: a time of numpy with nanoseconds can't be the value of a parameter",
            remedy="Give pandas.Timestamp(value), or a datetime.",
        )
    is_nothing = not isinstance(value, str) and str(value) in ("nan", "NaT")  # NaT is a datetime
    if not is_nothing and any(getattr(value, each, None) for each in ("nanosecond", "nanoseconds")):
        raise UsageError(
            f"parameter {name}: {value!r} has nanoseconds, and times have microseconds",
            remedy='Round it: value.floor("us").',
        )
    if isinstance(value, datetime) and type_ is ValueType.DATE and not is_nothing:
        if value.time() != time():
            raise UsageError(
                f"parameter {name} is of type date, and {value!r} has a time of day",
                remedy=f"Give {name}=value.date().",
            )
        return render_value(value.date())
    if isinstance(value, datetime) and not is_nothing:
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(Duration(microseconds=value // timedelta(microseconds=1)))
    if value is None or is_nothing or isinstance(value, bytes) or not _is_scalar(value):
        raise UsageError(
            f"parameter {name}: {value!r} can't be the value of a parameter",
            remedy="Give a text, number, boolean, date, datetime or timedelta, a list of them, or a Range.",
        )
    return render_value(value)


def _is_scalar(value: object) -> bool:
    from decimal import Decimal

    return isinstance(value, str | bool | int | float | Decimal | date | Duration)


C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


def checked_methods(cls: C) -> C:
    """Make each public method of a class refuse arguments of types that its annotations do not have."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod):
            setattr(cls, name, classmethod(checked(member.__func__)))
        elif inspect.isfunction(member):
            setattr(cls, name, checked(member))
    return cls


def checked(method: F) -> F:
    """Make a method raise `UsageError` if an argument is not of the type that its annotation has.

    Numbers, texts and booleans of numpy are given to the method as Python's.

    Only the outermost type is checked: that `targets` is a collection, not that of texts. What exists for
    type checkers only, such as `DataFrame`, may be anything.
    """
    signature = inspect.signature(method)

    @cache
    def hints() -> Mapping[str, Any]:
        return get_type_hints(method, localns=_Names(method.__globals__))

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # a call that names or counts its arguments wrongly: Python says so
            return method(*args, **kwargs)
        for name, value in bound.arguments.items():
            parameter = signature.parameters[name]
            if parameter.kind is parameter.VAR_KEYWORD or name not in hints():
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                found = bound.arguments[name] = tuple(map(of_numpy, value))
            else:
                found = (of_numpy(value),)
                (bound.arguments[name],) = found
            for each in found:
                _check(method, name, each, hints()[name])
        return method(*bound.args, **bound.kwargs)

    return call  # type: ignore[return-value]


class _Names(dict[str, Any]):
    """The names of a module, with `object` for those that it imports for type checkers only."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, object)


def _check(method: Callable[..., Any], name: str, value: object, hint: Any) -> None:
    accepted = _classes(hint)
    if isinstance(value, accepted) and (type(value) is not bool or not {bool, object}.isdisjoint(accepted)):
        return
    called = method.__qualname__.removesuffix(".__init__")
    *first, last = ("None" if each is type(None) else each.__name__ for each in accepted)
    known = f"{', '.join(first)} or {last}" if first else last
    raise UsageError(
        f"{called}: {name}={short(value)} is of type {type(value).__name__}, not {known}",
        remedy=f"help(lakewright.{called}) explains the arguments.",
    )


def _classes(hint: Any) -> tuple[type, ...]:
    if get_origin(hint) in (Union, UnionType):
        return tuple(found for each in get_args(hint) for found in _classes(each))
    found = get_origin(hint) or hint
    return (object if getattr(found, "_is_protocol", False) else found,)

"""Arguments and ranges: `lifecycles-and-phases.md`, "Jobs & Lifecycles"."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.errors import SpecError
from lakewright.spec.arguments import expand_arguments, floor_value
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import Duration, Value, ValueType, render_value
from lakewright.spec.models.job import Parameter

DAY = Parameter(name="day", type=ValueType.DATE)
MONTH = Parameter(name="day", type=ValueType.DATE, granularity="P1M")
TEXT = Parameter(name="t")
"""E13: `string` is Flowman's default type, also of parameters that take dates."""
NUMBER = Parameter(name="n", type=ValueType.INTEGER)


def texts(parameter: Parameter, *arguments: str) -> list[str]:
    return [
        render_value(instance[parameter.name])
        for instance in expand_arguments([parameter], arguments, Scope())
    ]


def test_both_ends_of_a_range_are_included() -> None:
    """Flowman's command cycles through ten days."""
    days = texts(DAY, "day:start=2022-11-01", "day:end=2022-11-10")

    assert days == [f"2022-11-{day:02}" for day in range(1, 11)]


@pytest.mark.parametrize(
    ("parameter", "arguments", "values"),
    [
        (DAY, ["day=2022-11-01"], ["2022-11-01"]),
        (DAY, ["day=2022-11-01,2022-11-05"], ["2022-11-01", "2022-11-05"]),
        (DAY, ["day:start=2022-11-01", "day:until=2022-11-03"], ["2022-11-01", "2022-11-02"]),
        (DAY, ["day:start=2022-11-01", "day:until=2022-11-01"], []),
        (
            DAY,
            ["day:start=2022-11-01", "day:end=2022-11-06", "day:step=P2D"],
            ["2022-11-01", "2022-11-03", "2022-11-05"],
        ),
        (
            DAY,
            ["day:start=2022-01-31", "day:end=2022-03-31", "day:step=P1M"],
            ["2022-01-31", "2022-02-28", "2022-03-31"],
        ),
        (MONTH, ["day:start=2022-01-15", "day:end=2022-03-20"], ["2022-01-01", "2022-02-01", "2022-03-01"]),
        (MONTH, ["day=2022-01-15,2022-01-20"], ["2022-01-01"]),
        (
            MONTH,
            ["day:start=2024-01-31", "day:end=2024-03-03", "day:step=P1D"],
            ["2024-01-01", "2024-02-01", "2024-03-01"],
        ),
        (
            MONTH,
            ["day:start=2024-01-31", "day:until=2024-03-03", "day:step=P1W"],
            ["2024-01-01", "2024-02-01"],
        ),
        (
            Parameter(name="day", type=ValueType.DATE, granularity="P2D"),
            ["day:start=2017-12-11", "day:until=2017-12-19"],
            ["2017-12-10", "2017-12-12", "2017-12-14", "2017-12-16"],
        ),
        (Parameter(name="day", type=ValueType.DATE, granularity="P5D"), ["day=2017-12-24"], ["2017-12-20"]),
        (NUMBER, ["n:start=1", "n:end=3"], ["1", "2", "3"]),
        (TEXT, ["t:start=2022-11-29", "t:end=2022-12-01"], ["2022-11-29", "2022-11-30", "2022-12-01"]),
        (TEXT, ["t:start=2022-01-31", "t:until=2022-03-31", "t:step=P1M"], ["2022-01-31", "2022-02-28"]),
        (TEXT, ["t:start=09", "t:end=11"], ["09", "10", "11"]),
        (NUMBER, ["n:start=1", "n:end=6", "n:step=2"], ["1", "3", "5"]),
        (
            Parameter(name="n", type=ValueType.INTEGER, granularity="2"),
            ["n:start=2", "n:until=8"],
            ["2", "4", "6"],
        ),
        (
            Parameter(name="n", type=ValueType.INTEGER, granularity="2"),
            ["n:start=1", "n:until=7"],
            ["0", "2", "4"],
        ),
        (Parameter(name="n", type=ValueType.INTEGER, granularity="2"), ["n:start=7", "n:until=8"], ["6"]),
        (Parameter(name="n", type=ValueType.INTEGER, default="4"), [], ["4"]),
        (Parameter(name="n"), ["n=a=b"], ["a=b"]),
        (Parameter(name="n"), ["n="], [""]),
        (Parameter(name="n"), ["n=a,,b"], ["a", "", "b"]),
        (Parameter(name="n"), ["n=a\\,b,c"], ["a,b", "c"]),
        (Parameter(name="n"), ['n="a,b",c'], ["a,b", "c"]),
        (Parameter(name="n"), [r'n="say \"hi\", C:\\",x'], ['say "hi", C:\\', "x"]),
        (Parameter(name="n"), [r'n=5" pipe,\"x"'], ['5" pipe', '"x"']),
        (Parameter(name="n"), ["n=C:\\temp\\x"], ["C:\\temp\\x"]),
        (DAY, ['day="2022-11-01",2022-11-02'], ["2022-11-01", "2022-11-02"]),
        (
            Parameter(name="t", type=ValueType.TIMESTAMP),
            ["t:start=2022-01-01T22:00:00Z", "t:end=2022-01-02T00:00:00Z", "t:step=PT1H"],
            ["2022-01-01T22:00:00.0", "2022-01-01T23:00:00.0", "2022-01-02T00:00:00.0"],
        ),
        (
            Parameter(name="d", type=ValueType.DURATION),
            ["d:start=PT1H", "d:end=PT2H", "d:step=PT30M"],
            ["PT1H", "PT1H30M", "PT2H"],
        ),
    ],
)
def test_arguments_come_to_values(parameter: Parameter, arguments: list[str], values: list[str]) -> None:
    """A9: also with commas and quotes inside values."""
    assert texts(parameter, *arguments) == values


def test_several_parameters_give_every_combination_in_their_order() -> None:
    instances = expand_arguments([NUMBER, Parameter(name="x")], ["x=a,b", "n:start=1", "n:end=2"], Scope())

    assert [tuple(instance.values()) for instance in instances] == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("parameter", "arguments", "message"),
    [
        (DAY, [], "missing"),
        (DAY, ["dya=2022-01-01"], "unknown parameter 'dya'"),
        (DAY, ["day:begin=2022-01-01"], "unknown suffix 'begin'"),
        (DAY, ["day"], "is not an argument"),
        (DAY, ["day=yesterday"], "^parameter day: 'yesterday' is not a date such as 2022-11-01"),
        (DAY, ["day:start=2022-01-01"], "needs either end"),
        (DAY, ["day:end=2022-01-01"], "no start"),
        (DAY, ["day:step=P1D"], "no start"),
        (DAY, ["day:start=2022-01-01", "day:end=2022-01-02", "day:until=2022-01-02"], "needs either end"),
        (DAY, ["day:start=2022-01-02", "day:end=2022-01-01"], "is after"),
        (DAY, ["day:start=2022-01-01", "day:end=2022-01-02", "day:step=P0D"], "does not advance"),
        (DAY, ["day:start=2022-01-01", "day:end=2022-01-02", "day:step=-P1D"], "does not advance"),
        (DAY, ["day:start=2022-01-01", "day:end=2022-01-02", "day:step=x"], "not a duration"),
        (DAY, ["day:start=0001-01-01", "day:end=9999-12-31"], "more than 100000"),
        (
            Parameter(name="t", type=ValueType.TIMESTAMP, granularity="P1D"),
            ["t:start=2022-01-01", "t:end=2022-01-09", "t:step=PT1S"],
            "more than 100000",
        ),
        (DAY, ["day=2022-01-01", "day=2022-01-02"], "given twice"),
        (DAY, ["day=2022-01-01", "day:start=2022-01-02", "day:end=2022-01-03"], "both a value and a range"),
        (NUMBER, ["n:start=1", "n:end=3", "n:step=0"], "does not advance"),
        (Parameter(name="s"), ["s:start=a", "s:end=b"], "whose ranges need dates or whole numbers"),
        (Parameter(name="s"), ['s="a,b'], 'has no closing "'),
        (Parameter(name="s"), ['s="a"b,c'], "or text after it; write"),
        (Parameter(name="token"), ["token=***"], "marks a hidden secret"),
        (
            Parameter(name="t", type=ValueType.TIMESTAMP),
            ["t:start=2022-01-01T00:00:00Z", "t:end=2022-01-02T00:00:00Z"],
            "needs a step",
        ),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(
    parameter: Parameter, arguments: list[str], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        expand_arguments([parameter], arguments, Scope())


def test_all_faults_come_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        expand_arguments([DAY, NUMBER], ["day=x", "n=y", "z=1"], Scope())

    assert len(caught.value.faults) == 3


@given(st.dates(date(1970, 1, 1), date(2200, 1, 1)), st.sampled_from(["P1D", "P3D", "P1M", "P3M", "P1Y"]))
def test_flooring_is_idempotent_and_never_later(day: date, granularity: str) -> None:
    length = Duration.parse(granularity)
    floored: Value = floor_value(day, length)

    assert isinstance(floored, date)
    assert floored <= day < length.after(floored)
    assert floor_value(floored, length) == floored

"""D2: values of Python become the arguments that the command line takes."""

from __future__ import annotations

from collections import deque
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lakewright.api.arguments import (
    Range,
    all_values,
    job_arguments,
    job_request,
    key_text,
    texts_by_name,
    texts_of,
    values_of,
)
from lakewright.errors import SpecError, UsageError
from lakewright.spec.arguments import expand_arguments
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import Duration, ValueType
from lakewright.spec.models.job import Job, Parameter

DAY = date(2024, 5, 1)


@pytest.mark.parametrize("value", [2, 2.0, np.float64(2), "2"])
def test_a_key_of_pandas_is_found_although_it_is_a_float(value: object) -> None:
    assert key_text(value) == "2"


@pytest.mark.parametrize("value", [None, float("nan"), np.float64("nan")])
def test_a_key_that_is_null_is_told(value: object) -> None:
    with pytest.raises(UsageError, match="a business key has no null"):
        key_text(value)


@pytest.mark.parametrize(
    ("type_", "value", "texts"),
    [
        ("date", DAY, ["p=2024-05-01"]),
        ("date", datetime(2024, 5, 1, tzinfo=UTC), ["p=2024-05-01"]),
        ("date", pd.Timestamp("2024-05-01"), ["p=2024-05-01"]),
        ("date", [DAY, date(2024, 5, 3)], ["p=2024-05-01,2024-05-03"]),
        ("date", {date(2024, 5, 3), DAY}, ["p=2024-05-01,2024-05-03"]),
        ("date", Range(DAY, date(2024, 5, 3)), ["p:start=2024-05-01", "p:end=2024-05-03"]),
        (
            "date",
            Range(DAY, until=date(2024, 6, 1), step="P7D"),
            ["p:start=2024-05-01", "p:until=2024-06-01", "p:step=P7D"],
        ),
        ("timestamp", datetime(2024, 5, 1, 6, tzinfo=UTC), ["p=2024-05-01T06:00:00+00:00"]),
        (
            "timestamp",
            Range(datetime(2024, 5, 1), datetime(2024, 5, 2), step=timedelta(hours=6)),
            ["p:start=2024-05-01T00:00:00", "p:end=2024-05-02T00:00:00", "p:step=PT6H"],
        ),
        ("date", pd.date_range("2024-05-01", periods=2), ["p=2024-05-01,2024-05-02"]),
        ("integer", np.array([1, 2]), ["p=1,2"]),
        ("string", pd.Index(["a", "b"]), ["p=a,b"]),
        ("duration", timedelta(minutes=90), ["p=PT1H30M"]),
        ("integer", range(1, 4), ["p=1,2,3"]),
        ("integer", np.int64(7), ["p=7"]),
        ("float", 0.5, ["p=0.5"]),
        ("decimal", Decimal("1.50"), ["p=1.50"]),
        ("boolean", True, ["p=true"]),
        ("string", "a b", ["p=a b"]),
        ("string", ("a", "b"), ["p=a,b"]),
        ("string", deque(["x"]), ["p=x"]),
    ],
)
def test_a_value_has_the_text_of_the_command_line(type_: str, value: object, texts: list[str]) -> None:
    parameter = Parameter(name="p", type=ValueType(type_))
    given = job_arguments([parameter], [], {"p": value})
    assert list(given) == texts
    assert expand_arguments([parameter], given, Scope())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "None can't be the value"),
        ({"a": 1}, "can't be the value"),
        (b"a", "can't be the value"),
        ([], "the collection of values is empty"),
        (float("nan"), "can't be the value"),
        (pd.NaT, "can't be the value"),
        ([["a"]], "can't be the value"),
        (pd.DatetimeIndex([]), "the collection of values is empty"),
        (pd.Timestamp("2024-05-01T00:00:00.000000001"), "has nanoseconds"),
        (pd.Timedelta(1, "ns"), "has nanoseconds"),
        (np.datetime64("2024-05-01", "ns"), "a time of numpy with nanoseconds"),
        (datetime(2024, 5, 1, 6), "has a time of day"),
    ],
)
def test_what_is_no_value_is_refused(value: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        job_arguments([Parameter(name="p", type=ValueType.DATE)], [], {"p": value})


def test_a_parameter_is_given_once() -> None:
    assert all_values({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}
    with pytest.raises(UsageError, match="parameter a is given twice"):
        all_values({"a": 1}, {"a": 1})


def test_an_argument_of_another_method_is_no_parameter() -> None:
    """`run(preview=True)` said "unknown parameter", without the method that has it."""
    with pytest.raises(UsageError, match="preview is an argument of `plan` alone"):
        job_arguments([], [], {"preview": True})
    assert job_arguments([Parameter(name="jobs")], [], {"jobs": "3"}) == ("jobs=3",)


def test_a_range_has_one_end() -> None:
    for arguments in ({}, {"end": 3, "until": 4}):
        with pytest.raises(UsageError, match="either an end or an until"):
            Range(1, **arguments)


def test_texts_come_first_and_unknown_names_are_left_to_the_job() -> None:
    assert job_arguments([], ["a=1"], {"b": 2}) == ("a=1", "b=2")


@pytest.mark.parametrize(
    "text", ["a,b", '"a"', '"a", b', "\\,", 'a\\"b', '\\"a', "a\\", "a\\,b", ",", "plain"]
)
def test_a_text_arrives_as_it_is(text: str) -> None:
    parameter = Parameter(name="p", type=ValueType.STRING)
    for value, expected in ((text, [text]), ([text, "other"], [text, "other"])):
        given = job_arguments([parameter], [], {"p": value})
        assert [each["p"] for each in expand_arguments([parameter], given, Scope())] == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"targets": 5}, "targets=5 is neither a text nor a list of texts"),
        ({"targets": []}, "targets=[] selects no target"),
        ({"dirty": ()}, "dirty=() selects no target"),
        ({"dirty": [1]}, "dirty=[1] is neither a text nor a list of texts"),
        ({"jobs": "4"}, "jobs='4' is not a whole number from 1 on"),
        ({"jobs": 0}, "jobs=0 is not a whole number from 1 on"),
        ({"jobs": True}, "jobs=True is not a whole number from 1 on"),
    ],
)
def test_an_option_of_another_type_is_refused_before_a_run_begins(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        job_request("daily", "build", (), **given)
    assert refused.value.message == said


def test_texts_are_given_one_by_one_in_a_list_or_by_name() -> None:
    assert texts_of("profiles", "prod") == ("prod",)
    assert texts_of("profiles", ["dev", "prod"]) == ("dev", "prod")
    assert texts_by_name("definitions", {"least": "10"}) == {"least": "10"}
    assert texts_by_name("definitions", None) is None
    with pytest.raises(UsageError, match="definitions: the value of least is 10, not text"):
        texts_by_name("definitions", {"least": 10})
    with pytest.raises(UsageError, match="definitions=5 has no texts by name"):
        texts_by_name("definitions", 5)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("timestamp", datetime(2024, 5, 1, 10, tzinfo=timezone(timedelta(hours=2)))),
        ("timestamp", datetime(2024, 5, 1, 10)),
        ("timestamp", "2024-05-01T10:00:00+02:00"),
        ("timestamp", pd.Timestamp("2024-05-01T10:00:00.123456", tz="Europe/Berlin")),
        ("duration", timedelta(hours=25)),
        ("date", datetime(2024, 5, 1)),
        ("date", "2024-05-01"),
        ("string", DAY),
        ("integer", np.int64(7)),
        ("integer", "7"),
        ("decimal", 0.1),
        ("boolean", "true"),
    ],
)
def test_read_has_the_value_that_a_run_has(type_: str, value: object) -> None:
    parameter = Parameter(name="p", type=ValueType(type_))
    given = job_arguments([parameter], [], {"p": value})
    (expected,) = expand_arguments([parameter], given, Scope())
    found = values_of([Job(parameters=(parameter,))], Scope(), {"p": value})
    assert found == expected
    assert type(found["p"]) is type(expected["p"])


def test_read_rounds_to_a_granularity_that_all_jobs_declare() -> None:
    month = Job(parameters=(Parameter(name="p", type=ValueType.DATE, granularity="P1M"),))
    day = Job(parameters=(Parameter(name="p", type=ValueType.DATE),))
    assert values_of([month], Scope(), {"p": "2024-05-17"}) == {"p": DAY}
    assert values_of([month, day], Scope(), {"p": "2024-05-17"}) == {"p": date(2024, 5, 17)}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2024, 5, 1, 10, tzinfo=timezone(timedelta(hours=2))), datetime(2024, 5, 1, 8, tzinfo=UTC)),
        (datetime(2024, 5, 1, 10), datetime(2024, 5, 1, 10)),
        (pd.Timestamp("2024-05-01T10:00:00.123456"), datetime(2024, 5, 1, 10, 0, 0, 123456)),
        (timedelta(hours=25), Duration(microseconds=25 * 3_600_000_000)),
        (np.int64(7), 7),
        ("7", "7"),
        (DAY, DAY),
    ],
)
def test_a_name_of_no_parameter_has_the_type_of_python(value: object, expected: object) -> None:
    found = values_of([], Scope(), {"p": value})["p"]
    assert found == expected
    assert type(found) is type(expected)


def test_read_refuses_what_a_run_refuses() -> None:
    job = Job(parameters=(Parameter(name="p", type=ValueType.TIMESTAMP),))
    with pytest.raises(UsageError, match="parameter p: None can't be the value of a parameter"):
        values_of([job], Scope(), {"p": None})
    with pytest.raises(SpecError, match="parameter p: 'soon' is not a timestamp"):
        values_of([job], Scope(), {"p": "soon"})

"""D2: values of Python become the arguments that the command line takes."""

from __future__ import annotations

from collections import deque
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lakewright.api.arguments import Range, all_values, job_arguments, job_request, texts_by_name, texts_of
from lakewright.errors import UsageError
from lakewright.spec.arguments import expand_arguments
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import ValueType
from lakewright.spec.models.job import Parameter

DAY = date(2024, 5, 1)


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

"""B4: errors about values name the value that was given and the nearest right one, in plain words."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, ValidationError

from lakewright.errors import Location
from lakewright.spec.definitions.definition import faults_of
from lakewright.spec.models.base import Listed, Model

FOREIGN = ("Input", "should", "valid integer", "Value error")


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Inner(Model):
    size: int = 1


class Everything(Model):
    strategy: Literal["full", "merge", "historic"] | None = None
    colour: Colour | None = None
    name: str | None = None
    key: Annotated[str | None, Field(pattern="^[a-z]+$")] = None
    title: Annotated[str | None, Field(min_length=1)] = None
    limit: int | None = None
    ratio: Annotated[float | None, Field(ge=0, le=1)] = None
    price: Decimal | None = None
    count: Annotated[int | None, Field(gt=0, lt=10)] = None
    header: bool | None = None
    inner: Inner | None = None
    inners: Listed[Inner] = ()
    names: Annotated[tuple[str, ...] | None, Field(min_length=2)] = None
    labels: dict[str, str] | None = None
    wait: timedelta | None = None
    day: date | None = None
    at: datetime | None = None


def faults(**declared: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        Everything.model_validate(declared)
    found = faults_of(caught.value, "it", lambda _: Location("m.yml", 1), is_rendered=True)
    return [str(fault).removeprefix("m.yml:1: it: ") for fault in found]


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        (
            {"strategy": "histroic"},
            "strategy: must be 'full', 'merge' or 'historic', not 'histroic' (did you mean 'historic'?)",
        ),
        ({"strategy": "upsert"}, "strategy: must be 'full', 'merge' or 'historic', not 'upsert'"),
        ({"strategy": ["full"]}, "strategy: must be 'full', 'merge' or 'historic', not a list"),
        ({"colour": "gren"}, "colour: must be 'red' or 'green', not 'gren' (did you mean 'green'?)"),
        ({"name": ["x"]}, "name: must be a text, not a list"),
        ({"name": {"x": "y"}}, "name: must be a text, not a map"),
        ({"key": "A b"}, "key: 'A b' does not match ^[a-z]+$"),
        ({"title": ""}, "title: must not be empty"),
        ({"limit": "many"}, "limit: must be a whole number, not 'many'"),
        ({"limit": "1.5"}, "limit: must be a whole number, not '1.5'"),
        ({"ratio": "half"}, "ratio: must be a number, not 'half'"),
        ({"ratio": "-1"}, "ratio: must be at least 0.0, not '-1'"),
        ({"ratio": "2"}, "ratio: must be at most 1.0, not '2'"),
        ({"price": "cheap"}, "price: must be a number, not 'cheap'"),
        ({"count": "0"}, "count: must be greater than 0, not '0'"),
        ({"count": "10"}, "count: must be less than 10, not '10'"),
        ({"header": "falsy"}, "header: must be true or false, not 'falsy'"),
        ({"inner": "x"}, "inner: must be a map, not a single value"),
        ({"inners": [{"size": "x"}]}, "inners[0].size: must be a whole number, not 'x'"),
        ({"names": ["x"]}, "names: needs at least 2 entries"),
        ({"names": "x"}, "names: must be a list, not a single value"),
        ({"labels": "x"}, "labels: must be a map, not a single value"),
        ({"wait": "soon"}, "wait: must be a duration such as PT15M, not 'soon'"),
    ],
)
def test_an_error_about_a_value_is_in_plain_words(declared: dict[str, Any], fault: str) -> None:
    assert faults(**declared) == [fault]


@pytest.mark.parametrize("name", sorted(set(Everything.model_fields) - {"inners"}))
@pytest.mark.parametrize("value", ["", "x y", -1, [], {}, ["x", {}], {"x": []}, "2022-13-01", 1e400])
def test_no_error_speaks_in_the_words_of_the_library(name: str, value: Any) -> None:
    try:
        Everything.model_validate({name: value})
    except ValidationError:
        for fault in faults(**{name: value}):
            assert not any(word in fault for word in FOREIGN), fault

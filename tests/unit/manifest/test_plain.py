"""Plain JSON objects that keep their text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakewright.errors import UsageError
from lakewright.manifest.plain_values import json_text, plain


def test_a_value_becomes_what_json_has_of_it_and_shares_nothing_with_it() -> None:
    given: dict[Any, Any] = {"rows": (1, 2), 3: {"ä": None}}
    made = plain(given)
    assert made == {"rows": [1, 2], "3": {"ä": None}}
    given[3]["ä"] = "changed later"
    assert made["3"] == {"ä": None}


def test_the_text_is_that_of_the_value() -> None:
    made = plain({"rows": (1, 2)})
    assert json.loads(json_text(made)) == json.loads(json_text(dict(made))) == made


@pytest.mark.parametrize("value", [{"x": float("nan")}, {"x": object()}, {("a", "b"): 1}])
def test_what_json_cannot_hold_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="can't be written as JSON"):
        plain(value)

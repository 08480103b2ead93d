"""Payloads accept any error and have a bounded size: `processing-manifest.md`, "Record"."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakewright.errors import CommitConflict, Fault, NullKeyError
from lakewright.manifest.payload import LARGEST, LONGEST_TEXT, LONGEST_TRACE, bounded, failure, payload
from lakewright.manifest.record import State


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("no column id"), "no column id"),
        (ValueError(), "ValueError"),
        (ValueError(None), "None"),
        (MuteError(), "MuteError"),
        (ValueError("\ud800 \x00 \x1b[31m"), "\ud800 \x00 \x1b[31m"),
        (NullKeyError("3 records without id"), "3 records without id"),
        (Fault("said so"), "said so"),
    ],
)
def test_any_error_gives_a_payload(error: Exception | Fault, message: str) -> None:
    content = failure(error)
    assert content["error"]["message"] == message
    assert json.loads(json.dumps(payload(State.FAILED, content)))["data"] == content


def test_a_lakewright_error_gives_its_code_its_remedy_and_whether_to_retry() -> None:
    conflict = failure(CommitConflict("lost a race", remedy="Run again."), stack_trace="Traceback …")
    assert conflict == {
        "error": {
            "class": "CommitConflict",
            "code": "commit_conflict",
            "message": "lost a race",
            "remedy": "Run again.",
            "location": None,
            "may_skip": False,
            "permitted_by": None,
        },
        "stack_trace": "Traceback …",
        "is_retryable": True,
        "holds_back": True,
    }
    assert failure(ValueError("x"))["is_retryable"] is False


def test_the_middle_of_long_texts_is_left_out() -> None:
    error = ValueError("a" * 5_000 + "z")
    content = bounded(failure(error, stack_trace="b" * 50_000 + "y", fingerprint={"size": 1}))
    message, trace = content["error"]["message"], content["stack_trace"]
    assert len(message) <= LONGEST_TEXT
    assert message.startswith("aaa")
    assert message.endswith("az")
    assert "characters left out" in message
    assert len(trace) <= LONGEST_TRACE
    assert trace.endswith("by")
    assert content["fingerprint"] == {"size": 1}


def test_long_lists_and_objects_are_shortened_with_a_note() -> None:
    cut = bounded({"files": list(range(5_000)), "columns": {str(n): n for n in range(5_000)}})
    assert cut["files"][-1] == "… 4000 more"
    assert cut["columns"]["…"] == "… 4000 more"


def test_the_largest_entries_are_left_out_except_those_that_later_runs_read() -> None:
    content: dict[str, Any] = {
        "drift": {str(n): "x" * 2_000 for n in range(100)},
        "metrics": {"inserted": 1},
        "watermarks": {"id": {"type": "string", "value": "w" * 3_000}},
        "fingerprint": {"files": [{"name": "f" * 200, "size": n} for n in range(2_000)]},
    }
    cut = bounded(content)
    assert cut["drift"] == {"omitted": f"{len(json.dumps(content['drift']))} characters"}
    assert cut["watermarks"] == content["watermarks"]
    assert cut["fingerprint"] == content["fingerprint"]


def test_deep_nesting_is_cut() -> None:
    value: Any = "core"
    for _ in range(5_000):
        value = [value]
    assert len(json.dumps(bounded({"x": value}))) < 200


def test_values_that_json_cannot_hold_become_text() -> None:
    content = {
        "metrics": {"when": date(2022, 1, 1), "ratio": float("nan"), "ids": {1}, 3: Decimal("1.50")},
        "watermarks": {"day": {"type": "date", "value": date(2022, 1, 1)}},
    }
    assert bounded(content) == {
        "metrics": {"when": "2022-01-01", "ratio": "nan", "ids": "{1}", "3": "1.50"},
        "watermarks": {"day": {"type": "date", "value": "2022-01-01"}},
    }


# Long texts repeat short ones: Hypothesis takes milliseconds for each hundred characters that it draws.
LONG = st.builds(str.__mul__, st.text(max_size=30), st.integers(0, 100))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | LONG,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(max_size=20), JSON, max_size=4))
def test_any_content_becomes_json_of_bounded_size(content: dict[str, Any]) -> None:
    text = json.dumps(bounded(content))
    assert len(text) <= LARGEST + 2_000
    assert isinstance(json.loads(text), dict)

"""What earlier runs left, as their history has it."""

from __future__ import annotations

from typing import Any

import pytest

from lakewright.run.leftovers import is_entry_undone


@pytest.mark.parametrize(
    ("entry", "is_undone"),
    [
        ({"status": "FAILED", "is_reached": True}, True),
        ({"status": "BLOCKED", "is_reached": True}, True),
        ({"status": "SKIPPED", "is_reached": False}, True),
        ({"status": "SKIPPED", "is_reached": True}, False),
        ({"status": "SUCCESS", "is_reached": True}, False),
        # As versions before the field recorded it.
        ({"status": "SKIPPED", "reasons": ["not reached: orders failed"]}, True),
        ({"status": "SKIPPED", "reasons": ["is filled"]}, False),
        ({"status": "SUCCESS", "reasons": ["is dirty"]}, False),
    ],
)
def test_what_failed_or_was_not_reached_is_undone(entry: dict[str, Any], is_undone: bool) -> None:
    assert is_entry_undone(entry) is is_undone

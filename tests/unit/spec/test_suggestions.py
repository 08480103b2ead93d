"""Suggestions for unknown names."""

from __future__ import annotations

import pytest

from lakewright.spec.suggestions import nearest, suggestion


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("relatoin", ["relation", "target"], "relation"),
        ("RELATION", ["relation"], "relation"),
        ("xyz", ["relation"], None),
        ("x" * 1000, ["relation"], None),
    ],
)
def test_a_near_name_is_found(name: str, known: list[str], found: str | None) -> None:
    assert nearest(name, known) == found


def test_without_a_near_name_there_is_a_list() -> None:
    assert suggestion("xyz", ["b", "a"]) == "there are: a, b"
    assert suggestion("xyz", ["c", "b", "a"], shown=2) == "there are: a, b, …"
    assert suggestion("xyz", []) is None

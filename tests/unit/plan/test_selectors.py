"""Choosing targets: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (active targets)."""

from __future__ import annotations

import pytest

from lakewright.errors import SpecError
from lakewright.plan.selectors import Selectable, select

CHOICES = [
    Selectable("land", "relation"),
    Selectable("regions", "entity", frozenset({"nightly", "team=sales", "team"}), frozenset({"land"})),
    Selectable("gold", "relation", sources=frozenset({"regions"})),
    Selectable("gold_more", "measure", sources=frozenset({"gold"})),
    Selectable("alone", "copy"),
]


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        ([], "alone gold gold_more land regions"),
        (["regions"], "regions"),
        (["gold"], "gold"),
        (["gold.*"], "gold gold_more"),
        (["+gold"], "gold land regions"),
        (["regions+"], "gold gold_more regions"),
        (["+regions+"], "gold gold_more land regions"),
        (["tag:nightly"], "regions"),
        (["tag:team=sales"], "regions"),
        (["kind:entity"], "regions"),
        (["kind:entity+"], "gold gold_more regions"),
        (["+kind:measure"], "gold gold_more land regions"),
        (["state:failed"], "gold"),
        (["land", "alone"], "alone land"),
        (["regions|al.+"], "alone regions"),
    ],
)
def test_a_text_chooses_targets(texts: list[str], names: str) -> None:
    assert " ".join(sorted(select(texts, CHOICES, undone=frozenset({"gold"})))) == names


def test_no_failure_is_no_error() -> None:
    assert select(["state:failed"], CHOICES, undone=frozenset()) == frozenset()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("region", "selects no target"),
        ("(", "not a regular expression"),
        ("state:odd", "only state"),
        ("tag:x", "no target"),
    ],
)
def test_what_chooses_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        select([text], CHOICES, undone=frozenset())

"""Targets in an object store are observed several at once, and none that does not take part."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from threading import Barrier

import pytest

from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.graph import Node
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.plan.planner import Candidate, Instance
from lakewright.plan.reason import note
from lakewright.run.planning import observed_ahead


def candidate(name: str, observe: Callable[[], Observation]) -> Candidate:
    node = Node(name)
    return Candidate(name, "relation", {Phase.BUILD: node}, observe, lambda *_: Dirtiness.no(note("clean")))


def test_targets_are_observed_at_the_same_time_and_keep_their_own_observation() -> None:
    both = Barrier(2)

    def look(name: str) -> Observation:
        both.wait(60)  # one after the other, the first would wait in vain
        return Observation(f"file:{name}")

    instance = Instance({}, tuple(candidate(name, lambda name=name: look(name)) for name in "ab"))  # type: ignore[misc]
    with closing(observed_ahead([instance], None)) as ahead:
        found = next(ahead)
        assert [each.observation.subject for each in found.candidates] == ["file:a", "file:b"]


def test_a_target_that_is_not_selected_is_not_observed() -> None:
    looks: list[str] = []

    def look(name: str) -> Observation:
        looks.append(name)
        return Observation(name)

    instance = Instance({}, tuple(candidate(name, lambda name=name: look(name)) for name in "ab"))  # type: ignore[misc]
    list(observed_ahead([instance], frozenset("a")))
    assert looks in ([], ["a"])


def test_what_a_look_raises_is_raised_where_the_planner_asks() -> None:
    def fail() -> Observation:
        raise RuntimeError("the store is away")

    with closing(observed_ahead([Instance({}, (candidate("a", fail),))], None)) as ahead:
        for found in ahead:
            with pytest.raises(RuntimeError, match="the store is away"):
                _ = found.candidates[0].observation


def test_an_instance_ends_when_no_look_at_its_targets_is_under_way() -> None:
    begun, ended = Barrier(2), []

    def look() -> Observation:
        begun.wait(60)
        ended.append("a")
        return Observation("a")

    two = [Instance({}, (candidate("a", look),)), Instance({}, ())]
    with closing(observed_ahead(two, None)) as instances:
        next(instances)
        begun.wait(60)
        next(instances)
        assert ended == ["a"]

"""Order, circles and choices of random projects, against a model that asks every pair.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles".
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lakewright.errors import SpecError
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.graph import Node, build_graph
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.plan.planner import Candidate, Instance, PlanRequest, build_plan
from lakewright.plan.reason import note
from lakewright.plan.resource import Resource
from lakewright.spec.models.job import Execution

NAMES = ("a", "ab", "b", "c", "d", "e")
RESOURCES = st.one_of(
    st.sampled_from(["/x", "/x/1", "/x/2", "/x/*/p", "/x/1/p", "/y", "/y/q=1", "/z"]).map(Resource.file),
    st.builds(
        Resource.table,
        st.sampled_from(["t", "T", "u"]),
        st.dictionaries(st.sampled_from(["p", "q"]), st.integers(1, 2)),
    ),
)

Edges = set[tuple[str, str]]
"""Pairs of a name and one that must come after it."""


@st.composite
def projects(draw: st.DrawFn) -> list[Node]:
    """Some targets in any order, with few links and resources, so that many of them form no circle."""
    names = draw(st.permutations(NAMES[: draw(st.integers(1, len(NAMES)))]))
    links = st.lists(st.sampled_from([*names, "nobody"]), max_size=1).map(tuple)
    resources = st.frozensets(RESOURCES, max_size=1)
    return [
        Node(
            name,
            before=tuple(other for other in draw(links) if other != name),
            after=tuple(other for other in draw(links) if other != name),
            requires=draw(resources),
            provides=draw(resources),
        )
        for name in names
    ]


def edges_of(nodes: list[Node]) -> Edges:
    edges: Edges = set()
    for late in nodes:
        for early in nodes:
            reads = any(r.intersects(p) for r in late.requires for p in early.provides)
            is_linked = early.name in late.after or late.name in early.before
            if early is not late and (reads or is_linked):
                edges.add((early.name, late.name))
    return edges


def order_of(names: list[str], edges: Edges) -> list[str] | None:
    """The first of those left that waits for none of those left, again and again; None for a circle."""
    left, order = list(names), []
    while left:
        free = [name for name in left if not any((other, name) in edges for other in left)]
        if not free:
            return None
        order.append(free[0])
        left.remove(free[0])
    return order


@given(projects())
def test_the_order_is_the_one_written_but_for_what_must_come_before(nodes: list[Node]) -> None:
    expected = order_of([node.name for node in nodes], edges_of(nodes))
    assume(expected is not None)

    graph = build_graph(nodes, Phase.BUILD)

    assert list(graph.order) == expected
    assert list(build_graph(nodes, Phase.DESTROY).order) == list(reversed(expected or []))
    assert {(early, late) for late in graph.order for early in graph.predecessors[late]} == edges_of(nodes)


@st.composite
def circles(draw: st.DrawFn) -> list[Node]:
    """Projects in which some targets come after each other in a circle."""
    nodes = draw(projects().filter(lambda nodes: len(nodes) > 1))
    names = [node.name for node in nodes]
    circle = draw(st.permutations(names))[: draw(st.integers(2, len(names)))]
    before = dict(zip(circle, [*circle[1:], circle[0]], strict=True))
    return [
        replace(node, after=(*node.after, before[node.name])) if node.name in before else node
        for node in nodes
    ]


@given(circles())
def test_a_circle_is_refused_and_each_of_its_steps_is_there(nodes: list[Node]) -> None:
    edges = edges_of(nodes)
    assert order_of([node.name for node in nodes], edges) is None

    with pytest.raises(SpecError) as caught:
        build_graph(nodes, Phase.CREATE)

    chain = str(caught.value.faults[0].message).partition("cycle: ")[2].split(" -> ")
    assert chain[0] == chain[-1]
    steps = list(pairwise(chain))
    assert all(step in edges for step in steps) or all(step[::-1] in edges for step in steps)


PATTERNS = st.lists(st.sampled_from(["a", "a.*", ".", ".*", "[b-d]"]), min_size=1, max_size=2).map(tuple)
EXECUTIONS = st.lists(
    st.builds(
        Execution,
        phase=st.sampled_from(["create", "build"]),
        cycle=st.sampled_from(["always", "first", "last", "never"]),
        targets=PATTERNS,
    ),
    max_size=3,
).map(tuple)


@given(projects(), EXECUTIONS, st.one_of(st.none(), st.frozensets(st.sampled_from(NAMES))), st.integers(1, 3))
def test_only_what_is_active_and_chosen_is_planned_in_the_order_of_all(
    nodes: list[Node], executions: tuple[Execution, ...], chosen: frozenset[str] | None, count: int
) -> None:
    order = order_of([node.name for node in nodes], edges_of(nodes))
    assume(order is not None)
    phases = (Phase.CREATE, Phase.BUILD)
    candidates = tuple(
        Candidate(
            node.name,
            "fake",
            dict.fromkeys(phases, node),
            lambda name=node.name: Observation(name),  # type: ignore[misc]  # a default binds the name
            lambda phase, found: Dirtiness.yes(note("always")),
        )
        for node in nodes
    )
    selection = PlanRequest(phases, executions, targets=chosen)

    instances = [Instance({"day": str(n)}, candidates) for n in range(count)]
    plan = build_plan("p", "j", instances, selection, count=count)

    expected = [
        (index, phase, name)
        for index in range(count)
        for phase in phases
        for name in order or ()
        if is_active(executions, phase, name, index, count) and (chosen is None or name in chosen)
    ]
    assert expected == [
        (index, step.phase, step.target)
        for index, instance in enumerate(plan.instances)
        for phase in instance.phases
        for step in phase.steps
    ]


def is_active(executions: tuple[Execution, ...], phase: Phase, name: str, index: int, count: int) -> bool:
    listed = [entry for entry in executions if entry.phase == phase]
    turns = {"always": True, "never": False, "first": index == 0, "last": index == count - 1}
    return not listed or any(
        turns[entry.cycle] and any(re.fullmatch(pattern, name) for pattern in entry.targets)
        for entry in listed
    )

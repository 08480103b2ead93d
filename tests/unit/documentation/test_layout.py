"""Boxes of the graph do not overlap, and lines go from left to right."""

from __future__ import annotations

import time
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from lakewright.documentation.pages.layout import Box, lay_out

NODES = st.integers(0, 12)
EDGES = st.lists(st.tuples(NODES, NODES), max_size=30)


def overlap(a: Box, b: Box) -> bool:
    return (
        a.x < b.x + b.width
        and b.x < a.x + a.width
        and a.y < b.y + b.height - 0.01
        and b.y < a.y + a.height - 0.01
    )


@given(EDGES)
@settings(max_examples=examples(150), deadline=None)
def test_boxes_of_any_graph_lie_within_the_drawing_without_overlap(edges: list[tuple[int, int]]) -> None:
    drawing = lay_out({node: 40.0 + node for node in range(13)}, edges)

    real = {(a, b) for a, b in edges if a != b}
    assert set(drawing.boxes) == {node for edge in real for node in edge}
    assert set(drawing.lines) == real
    assert not any(overlap(a, b) for a, b in combinations(drawing.boxes.values(), 2))
    for box in drawing.boxes.values():
        assert box.x >= 0
        assert box.y >= -0.01
        assert box.x + box.width <= drawing.width + 0.01
        assert box.y + box.height <= drawing.height + 0.01


@given(EDGES)
@settings(max_examples=examples(100), deadline=None)
def test_lines_of_an_acyclic_graph_go_to_the_right(edges: list[tuple[int, int]]) -> None:
    forward = {(min(a, b), max(a, b)) for a, b in edges if a != b}
    drawing = lay_out(dict.fromkeys(range(13), 50.0), forward)
    for (a, b), points in drawing.lines.items():
        assert drawing.boxes[a].x + drawing.boxes[a].width < drawing.boxes[b].x
        assert [x for x, _ in points] == sorted(x for x, _ in points)


def test_a_chain_is_straight() -> None:
    drawing = lay_out(dict.fromkeys("abcd", 50.0), [("a", "b"), ("b", "c"), ("c", "d")])
    assert len({round(box.y, 3) for box in drawing.boxes.values()}) == 1


def test_an_avoidable_crossing_is_avoided() -> None:
    drawing = lay_out(dict.fromkeys("abcd", 50.0), [("a", "d"), ("b", "c"), ("a", "c")])
    a, b, c, d = (drawing.boxes[node].y for node in "abcd")
    assert (a < b) == (d < c)


@pytest.mark.parametrize("size", [0, 400])
def test_large_graphs_are_laid_out_quickly(size: int) -> None:
    edges = [(n, n + step) for n in range(size) for step in (1, 7, 31)]
    begin = time.perf_counter()
    lay_out(dict.fromkeys(range(size + 31), 60.0), edges)
    assert time.perf_counter() - begin < 20

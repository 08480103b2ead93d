"""The drawings of the page: bars of slices, and the lineage in parts beside each other."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from lakewright.documentation.document import Ref
from lakewright.serve.page.drawing import draw_flows
from lakewright.usecases.data_flow import Flows

NODES = [Ref("entity", f"e{number}") for number in range(12)]


@given(st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=20))
def test_each_connected_item_has_one_box_and_no_two_overlap(edges: list[tuple[Ref, Ref]]) -> None:
    kept = tuple(dict.fromkeys(edge for edge in edges if edge[0] != edge[1]))
    drawing = draw_flows(Flows(tuple(NODES), kept, {}))
    connected = {ref for edge in kept for ref in edge}
    assert sorted(box.ref for box in drawing.boxes) == sorted(connected)
    assert set(drawing.alone) == set(NODES) - connected
    named = {(f"{a.category}:{a.name}", f"{b.category}:{b.name}") for a, b in kept}
    assert {(line.start, line.end) for line in drawing.lines} == named
    for one, other in combinations(drawing.boxes, 2):
        (x, y, width, height), place = one.place, other.place
        is_apart = x + width <= place.x or place.x + place.width <= x
        assert is_apart or y + height <= place.y or place.y + place.height <= y
    for box in drawing.boxes:
        assert box.place.x + box.place.width <= drawing.width
        assert box.place.y + box.place.height <= drawing.height


def test_many_small_parts_are_drawn_beside_each_other() -> None:
    pairs = [(Ref("entity", f"entity_{n:03d}"), Ref("relation", f"relation_{n:03d}")) for n in range(150)]
    drawing = draw_flows(Flows(tuple(ref for pair in pairs for ref in pair), tuple(pairs), {}))
    assert drawing.width < 1300
    assert drawing.height < 4000

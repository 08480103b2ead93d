"""The order of targets in a phase: `lifecycles-and-phases.md`, "Jobs & Lifecycles"."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.errors import SpecError
from lakewright.plan.graph import Node, build_graph
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource


def chain_of_files() -> list[Node]:
    return [
        Node("t4", requires=frozenset({Resource.file("/lake/t3")})),
        Node(
            "t2",
            requires=frozenset({Resource.file("/lake/t1")}),
            provides=frozenset({Resource.file("/lake/t2")}),
        ),
        Node("t1", provides=frozenset({Resource.file("/lake/t1")})),
        Node(
            "t3",
            requires=frozenset({Resource.file("/lake/t2")}),
            provides=frozenset({Resource.file("/lake/t3")}),
        ),
    ]


def test_a_chain_of_files_is_built_from_its_source_and_destroyed_from_its_end() -> None:
    assert build_graph(chain_of_files(), Phase.BUILD).order == ("t1", "t2", "t3", "t4")
    assert build_graph(chain_of_files(), Phase.DESTROY).order == ("t4", "t3", "t2", "t1")


@pytest.mark.parametrize("partition", [{"p1": "1"}, {"p2": "2"}, {}])
def test_a_reader_of_any_part_of_a_partition_comes_after_its_writer(partition: dict[str, str]) -> None:
    reader = Node("reader", requires=frozenset({Resource.table("t", partition)}))
    writer = Node("writer", provides=frozenset({Resource.table("t", {"p1": "1", "p2": "2"})}))

    assert build_graph([reader, writer], Phase.BUILD).order == ("writer", "reader")


def test_a_glob_matches_what_is_written_below_it() -> None:
    reader = Node("reader", requires=frozenset({Resource.file("/some/t1/*/xyz")}))
    writer = Node("writer", provides=frozenset({Resource.file("/some/t1/p1/xyz")}))

    assert build_graph([reader, writer], Phase.BUILD).order == ("writer", "reader")


def test_before_and_after_are_kept_and_reversed_in_clean_up() -> None:
    nodes = [Node("c", after=("b",)), Node("b"), Node("a", before=("b",))]

    assert build_graph(nodes, Phase.BUILD).order == ("a", "b", "c")
    assert build_graph(nodes, Phase.TRUNCATE).order == ("c", "b", "a")


def test_independent_targets_keep_the_order_written_and_reverse_it_in_clean_up() -> None:
    nodes = [Node("z"), Node("a"), Node("m")]

    assert build_graph(nodes, Phase.BUILD).order == ("z", "a", "m")
    assert build_graph(nodes, Phase.DESTROY).order == ("m", "a", "z")


def test_a_cycle_is_refused_and_shown() -> None:
    with pytest.raises(SpecError, match=r"cycle: .*a -> "):
        build_graph([Node("a", before=("b",)), Node("b", before=("a",))], Phase.BUILD)


def test_a_link_taints_only_in_the_direction_of_after() -> None:
    graph = build_graph([Node("a", before=("b",)), Node("b"), Node("c", after=("b",))], Phase.BUILD)

    assert graph.sources["b"] == frozenset()
    assert graph.sources["c"] == {"b"}
    assert graph.predecessors["b"] == {"a"}


@given(st.permutations(range(8)), st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7))))
def test_any_acyclic_links_are_respected(order: list[int], pairs: set[tuple[int, int]]) -> None:
    links = {(low, high) for low, high in pairs if low < high}
    nodes = [Node(f"t{n}", after=tuple(f"t{low}" for low, high in links if high == n)) for n in order]

    position = {name: index for index, name in enumerate(build_graph(nodes, Phase.BUILD).order)}

    assert all(position[f"t{low}"] < position[f"t{high}"] for low, high in links)


@pytest.mark.parametrize(
    ("outer", "inner", "is_contained"),
    [
        (Resource.file("/a"), Resource.file("/a/b"), True),
        (Resource.file("/a/b"), Resource.file("/a"), False),
        (Resource.file("file:///a"), Resource.file("/a/b"), True),
        (Resource.file("s3a://bucket/a"), Resource.file("s3://bucket/a/b"), True),
        (Resource.file("/a/*"), Resource.file("/a/b"), True),
        (Resource.file("/a[1]"), Resource.file("/a[1]/b"), True),
        (Resource.file("/a/*/c"), Resource.file("/a/b/b/c"), False),
        (Resource.table("DB.T"), Resource.table("db.t"), True),
        (Resource.jdbc("T"), Resource.jdbc("t"), False),
        (Resource.table("t"), Resource.table("t", {"p": 1}), True),
        (Resource.table("t", {"p": 1}), Resource.table("t"), False),
        (Resource.table("t"), Resource.file("t"), False),
    ],
)
def test_what_contains_what(outer: Resource, inner: Resource, is_contained: bool) -> None:
    assert outer.contains(inner) is is_contained


def test_partitions_that_differ_have_nothing_in_common() -> None:
    assert not Resource.table("t", {"p": 1}).intersects(Resource.table("t", {"p": 2}))
    assert Resource.table("t", {"p": 1}).intersects(Resource.table("t", {"q": 2}))

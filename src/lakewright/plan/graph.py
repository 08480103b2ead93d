"""The dependency graph of a phase: the order of its targets, and which target depends on which.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (dependency analysis).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush

from lakewright.errors import SpecError
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.resource_index import ResourceIndex


@dataclass(frozen=True, slots=True)
class Node:
    """The dependencies that one target declares in one phase."""

    name: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    requires: frozenset[Resource] = frozenset()
    provides: frozenset[Resource] = frozenset()


@dataclass(frozen=True, slots=True)
class Graph:
    """The ordered targets of one phase.

    Attributes:
        order: Names of the targets, in order of execution.
        predecessors: For each target, those that must run before it because of a link or a resource.
        sources: For each target, those whose run taints it and whose failure blocks it. It requires what
            they provide, or names them in `after`.
    """

    order: tuple[str, ...]
    predecessors: Mapping[str, frozenset[str]]
    sources: Mapping[str, frozenset[str]]

    def nearest(self, names: Collection[str]) -> dict[str, frozenset[str]]:
        """Return, for each of these targets, its direct predecessors within the set.

        The order also holds across targets outside the set: if a runs before b and b before c, then a is a
        predecessor of c if b is not in the set.
        """
        before: dict[str, frozenset[str]] = {}
        for name in self.order:
            parts = ({n} if n in names else before[n] for n in self.predecessors[name])
            before[name] = frozenset().union(*parts)
        return {name: before[name] for name in names}


def build_graph(nodes: Sequence[Node], phase: Phase) -> Graph:
    """Return the graph of `nodes` in `phase`. Targets without dependencies keep the order given.

    TRUNCATE and DESTROY run in reverse order. Links to targets that are not among the nodes are ignored.

    Raises:
        SpecError: The targets form a cycle. The message shows it.
    """
    names = {node.name for node in nodes}
    sources = direct_sources(nodes)
    edges = _edges(nodes, sources)
    order = _stable_order([node.name for node in nodes], edges)
    if phase.is_cleanup:
        return Graph(tuple(reversed(order)), _reversed(edges), _reversed(sources))
    return Graph(tuple(order), {name: frozenset(edges[name]) for name in names}, sources)


def find_cycle(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the targets of a cycle, the first one again at the end, or an empty tuple if there is none."""
    try:
        TopologicalSorter(_edges(nodes, direct_sources(nodes))).prepare()
    except CycleError as cycle:
        return tuple(reversed(cycle.args[1]))
    return ()


def _edges(nodes: Sequence[Node], sources: Mapping[str, frozenset[str]]) -> dict[str, set[str]]:
    edges = {node.name: set(sources[node.name]) for node in nodes}
    for node in nodes:
        for later in edges.keys() & set(node.before):
            edges[later].add(node.name)
    return edges


def direct_sources(nodes: Sequence[Node]) -> dict[str, frozenset[str]]:
    """Return, for each target, those whose output it requires and those that it names in `after`."""
    names = {node.name for node in nodes}
    writers: ResourceIndex[str] = ResourceIndex()
    for node in nodes:
        for resource in node.provides:
            writers.add(resource, node.name)
    sources: dict[str, frozenset[str]] = {}
    for node in nodes:
        needed = {name for resource in node.requires for name in writers.touching(resource)}
        sources[node.name] = frozenset((needed - {node.name}) | (names & set(node.after)))
    return sources


def _stable_order(names: Sequence[str], edges: Mapping[str, set[str]]) -> list[str]:
    sorter = TopologicalSorter(edges)
    try:
        sorter.prepare()
    except CycleError as cycle:
        chain = " -> ".join(reversed(cycle.args[1]))
        raise SpecError.of(
            f"targets depend on each other in a cycle: {chain}",
            remedy="Remove one of the links: a `before`, an `after`, or what one of them reads.",
        ) from cycle
    position = {name: index for index, name in enumerate(names)}
    ready = [position[name] for name in sorter.get_ready()]
    heapify(ready)
    order: list[str] = []
    while ready:
        name = names[heappop(ready)]
        order.append(name)
        sorter.done(name)
        for following in sorter.get_ready():
            heappush(ready, position[following])
    return order


def _reversed(edges: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    after: dict[str, set[str]] = {name: set() for name in edges}
    for name, before in edges.items():
        for other in before:
            after[other].add(name)
    return {name: frozenset(found) for name, found in after.items()}

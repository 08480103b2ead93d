"""The order in which targets run in a phase, and what depends on what.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (dependency analysis).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from lakewright.errors import SpecError
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource

__all__ = ["Graph", "Node", "build_graph"]


@dataclass(frozen=True, slots=True)
class Node:
    """What one target says about its place in one phase."""

    name: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    requires: frozenset[Resource] = frozenset()
    provides: frozenset[Resource] = frozenset()


@dataclass(frozen=True, slots=True)
class Graph:
    """Targets in the order of one phase.

    Attributes:
        order: Names, first to run first.
        predecessors: For each name, those that run before it because of a link or a resource.
        sources: For each name, those whose run taints it and whose failure blocks it: it requires what
            they provide, or names them in `after`.
    """

    order: tuple[str, ...]
    predecessors: Mapping[str, frozenset[str]]
    sources: Mapping[str, frozenset[str]]

    def ancestors(self, name: str) -> frozenset[str]:
        """Return every target that runs before `name`, through any chain."""
        seen: set[str] = set()
        waiting = [*self.predecessors[name]]
        while waiting:
            current = waiting.pop()
            if current not in seen:
                seen.add(current)
                waiting.extend(self.predecessors[current])
        return frozenset(seen)


def build_graph(nodes: Sequence[Node], phase: Phase) -> Graph:
    """Return the order of `nodes` in `phase`; without a reason otherwise it is the order given.

    TRUNCATE and DESTROY run the other way round. Links to targets that aren't among the nodes are ignored.

    Raises:
        SpecError: The targets form a cycle; the message shows it.
    """
    names = {node.name for node in nodes}
    sources = {node.name: _sources(node, nodes, names) for node in nodes}
    edges = {node.name: set(sources[node.name]) for node in nodes}
    for node in nodes:
        for later in set(node.before) & names:
            edges[later].add(node.name)
    order = _stable_order([node.name for node in nodes], edges)
    if phase.is_cleanup:
        return Graph(tuple(reversed(order)), _reversed(edges), _reversed(sources))
    return Graph(tuple(order), {name: frozenset(edges[name]) for name in names}, sources)


def _sources(node: Node, nodes: Iterable[Node], names: set[str]) -> frozenset[str]:
    by_resource = {
        other.name
        for other in nodes
        if other.name != node.name
        and any(ours.intersects(theirs) for ours in node.requires for theirs in other.provides)
    }
    return frozenset(by_resource | (set(node.after) & names))


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
    ready = sorted(sorter.get_ready(), key=position.__getitem__)
    order: list[str] = []
    while ready:
        name = ready.pop(0)
        order.append(name)
        sorter.done(name)
        ready = sorted([*ready, *sorter.get_ready()], key=position.__getitem__)
    return order


def _reversed(edges: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    return {name: frozenset(other for other, before in edges.items() if name in before) for name in edges}

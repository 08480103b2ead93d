"""The layout of a directed graph in layers from left to right, with few crossings.

Layers are assigned by longest path, edges that span several layers get a dummy node in each, and nodes are
ordered by the barycentre of their neighbours: Sugiyama, Tagawa, Toda, "Methods for Visual Understanding of
Hierarchical System Structures" (1981). docs/decisions/014-graph-layout.md says why no library does this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

N = TypeVar("N", bound=Hashable)

BOX_HEIGHT, DUMMY_HEIGHT = 30.0, 10.0
BOX_GAP, LAYER_GAP, PART_GAP = 12.0, 64.0, 36.0
"""Pixels between the boxes of a layer, between layers, and between connected parts of the graph."""

ROW_WIDTH = 1100.0
"""Connected parts are drawn beside each other up to this width."""

LONGEST = 30
"""Letters of the longest label."""

SWEEPS = 8
"""Passes over the layers, to and fro, for order and position."""


class Box(NamedTuple):
    """A box by its upper left corner and size, in pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Drawing(Generic[N]):
    """A graph with the positions of its nodes and edges, in pixels.

    Attributes:
        boxes: The box of each node.
        lines: The points of each edge, from the right side of one box to the left side of another.
    """

    width: float
    height: float
    boxes: Mapping[N, Box]
    lines: Mapping[tuple[N, N], Sequence[tuple[float, float]]]


def lay_out(widths: Mapping[N, float], edges: Iterable[tuple[N, N]]) -> Drawing[N]:
    """Return the positions of all nodes that have an edge: connected parts in rows, the highest first.

    Args:
        widths: Width of each node's box.
        edges: Pairs of nodes, drawn from left to right; one edge of each cycle goes back.
    """
    known = dict.fromkeys((a, b) for a, b in edges if a != b and a in widths and b in widths)
    boxes: dict[N, Box] = {}
    lines: dict[tuple[N, N], Sequence[tuple[float, float]]] = {}
    left, top, low, right = 0.0, 0.0, 0.0, 0.0
    for part in sorted(
        (_Layers(widths, each).drawn() for each in _parts(known)), key=lambda part: -part.height
    ):
        if left and left + part.width > ROW_WIDTH:
            left, top = 0.0, low + PART_GAP
        boxes |= {node: box._replace(x=box.x + left, y=box.y + top) for node, box in part.boxes.items()}
        lines |= {edge: [(x + left, y + top) for x, y in way] for edge, way in part.lines.items()}
        low, right = max(low, top + part.height), max(right, left + part.width)
        left += part.width + PART_GAP
    return Drawing(right, low, boxes, lines)


def svg_path(points: Sequence[tuple[float, float]]) -> str:
    """Return a line through points as an SVG path: straight where two are level, else a curve."""
    x, y = points[0]
    parts = [f"M{x:.1f} {y:.1f}"]
    for next_x, next_y in points[1:]:
        half = (next_x - x) / 2
        parts.append(
            f"L{next_x:.1f} {next_y:.1f}"
            if abs(next_y - y) < 0.5
            else f"C{x + half:.1f} {y:.1f} {next_x - half:.1f} {next_y:.1f} {next_x:.1f} {next_y:.1f}"
        )
        x, y = next_x, next_y
    return " ".join(parts)


def shortened(name: str) -> str:
    """Return a name as a label, cut if it is long."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _parts(edges: Iterable[tuple[N, N]]) -> list[list[tuple[N, N]]]:
    """Return the edges of each connected part."""
    owner: dict[N, N] = {}

    def root(node: N) -> N:
        while owner.setdefault(node, node) != node:
            owner[node] = node = owner[owner[node]]
        return node

    kept = list(edges)
    for a, b in kept:
        owner[root(a)] = root(b)
    parts: dict[N, list[tuple[N, N]]] = defaultdict(list)
    for edge in kept:
        parts[root(edge[0])].append(edge)
    return list(parts.values())


class _Dummy(NamedTuple):
    """A placeholder for an edge in a layer that it crosses."""

    edge: tuple[Hashable, Hashable]
    layer: int


@dataclass(slots=True)
class _Layers(Generic[N]):
    """A connected part of the graph."""

    widths: Mapping[N, float]
    edges: list[tuple[N, N]]
    layers: list[list[N | _Dummy]] = field(init=False, default_factory=list)
    before: dict[N | _Dummy, list[N | _Dummy]] = field(init=False, default_factory=dict)
    after: dict[N | _Dummy, list[N | _Dummy]] = field(init=False, default_factory=dict)
    chains: dict[tuple[N, N], list[N | _Dummy]] = field(init=False, default_factory=dict)

    def drawn(self) -> Drawing[N]:
        """Return the drawing of this part."""
        self._arrange()
        middles = self._middles()
        highest = min(middles[n] - _height(n) / 2 for layer in self.layers for n in layer)
        x = 0.0
        boxes: dict[N, Box] = {}
        sides: dict[N | _Dummy, tuple[float, float]] = {}
        wides = [max(self._width(node) for node in layer) for layer in self.layers]
        for layer, wide in zip(self.layers, wides, strict=True):
            for node in layer:
                y = middles[node] - highest
                sides[node] = (x, y)
                if not isinstance(node, _Dummy):
                    boxes[node] = Box(x, y - BOX_HEIGHT / 2, self._width(node), BOX_HEIGHT)
            x += wide + LAYER_GAP
        lines = {edge: list(self._points(chain, sides, wides)) for edge, chain in self.chains.items()}
        low = max(y + _height(node) / 2 for node, (_, y) in sides.items())
        return Drawing(x - LAYER_GAP, low, boxes, lines)

    def _arrange(self) -> None:
        """Assign each node to a layer and order the layers."""
        forward = _acyclic(self.edges)
        ranks = _ranks(forward)
        self.layers = [[] for _ in range(max(ranks.values()) + 1)]
        self.before, self.after = defaultdict(list), defaultdict(list)
        for node, rank in ranks.items():
            self.layers[rank].append(node)
        for a, b in self.edges:
            first, last = (a, b) if (a, b) in forward else (b, a)
            passed: list[N | _Dummy] = [
                _Dummy((first, last), rank) for rank in range(ranks[first] + 1, ranks[last])
            ]
            for each, rank in zip(passed, range(ranks[first] + 1, ranks[last]), strict=True):
                self.layers[rank].append(each)
            chain: list[N | _Dummy] = [first, *passed, last]
            self.chains[a, b] = chain if first == a else chain[::-1]
            for left, right in pairwise(chain):
                self.after[left].append(right)
                self.before[right].append(left)
        self._order()

    def _order(self) -> None:
        places = {node: float(at) for layer in self.layers for at, node in enumerate(layer)}
        for layer, neighbours in self._sweeps():
            wanted = {n: _middle([places[o] for o in neighbours[n]], places[n]) for n in layer}
            layer.sort(key=wanted.__getitem__)
            places |= {node: at for at, node in enumerate(layer)}

    def _sweeps(self) -> Iterator[tuple[list[N | _Dummy], Mapping[N | _Dummy, list[N | _Dummy]]]]:
        """Yield each layer with its nodes' neighbours in the one before: to and fro, several times."""
        for sweep in range(SWEEPS):
            is_down = sweep % 2 == 0
            for layer in self.layers if is_down else self.layers[::-1]:
                yield layer, self.before if is_down else self.after

    def _points(
        self,
        chain: Sequence[N | _Dummy],
        sides: Mapping[N | _Dummy, tuple[float, float]],
        wides: Sequence[float],
    ) -> Iterable[tuple[float, float]]:
        first, *passed, last = chain
        is_forward = sides[first][0] <= sides[last][0]
        x, y = sides[first]
        yield (x + self._width(first) if is_forward else x), y
        for node in passed:
            x, y = sides[node]
            wide = wides[node.layer] if isinstance(node, _Dummy) else 0.0
            ends = [(x, y), (x + wide, y)]
            yield from ends if is_forward else ends[::-1]
        x, y = sides[last]
        yield (x if is_forward else x + self._width(last)), y

    def _width(self, node: N | _Dummy) -> float:
        return 0.0 if isinstance(node, _Dummy) else self.widths[node]

    def _middles(self) -> dict[N | _Dummy, float]:
        """Return the vertical centre of each node, close to those of its neighbours."""
        middles: dict[N | _Dummy, float] = {}
        for layer in self.layers:
            _spread(layer, dict.fromkeys(layer, 0.0), middles)
        for layer, neighbours in self._sweeps():
            wanted = {n: _middle([middles[o] for o in neighbours[n]], middles[n]) for n in layer}
            _spread(layer, wanted, middles)
        return middles


def _height(node: object) -> float:
    return DUMMY_HEIGHT if isinstance(node, _Dummy) else BOX_HEIGHT


def _middle(places: Sequence[float], otherwise: float) -> float:
    return sum(places) / len(places) if places else otherwise


def _spread(layer: Sequence[N], wanted: Mapping[N, float], middles: dict[N, float]) -> None:
    """Place the nodes of a layer as close to their wanted positions as order and heights allow.

    Nodes that would overlap are joined into a block, placed at the mean of the positions they want.
    """
    blocks: list[tuple[float, float, list[N]]] = []  # sum of wanted tops, height with gaps, members
    for node in layer:
        members, height = [node], _height(node) + BOX_GAP
        total = wanted[node] - _height(node) / 2
        while blocks and blocks[-1][0] / len(blocks[-1][2]) + blocks[-1][1] > total / len(members):
            last_total, last_height, last_members = blocks.pop()
            # A member's wanted position is expressed as the top of its block.
            total = last_total + total - last_height * len(members)
            members, height = last_members + members, last_height + height
        blocks.append((total, height, members))
    for total, _, members in blocks:
        top = total / len(members)
        for node in members:
            middles[node] = top + _height(node) / 2
            top += _height(node) + BOX_GAP


def _acyclic(edges: Sequence[tuple[N, N]]) -> dict[tuple[N, N], None]:
    """Return the edges, with those reversed that would close a cycle."""
    after: dict[N, list[N]] = defaultdict(list)
    for a, b in edges:
        after[a].append(b)
    turned: set[tuple[N, N]] = set()
    done: set[N] = set()
    for start in list(after):
        path: dict[N, Iterable[N]] = {}
        if start not in done:
            path[start] = iter(after[start])
        while path:
            node, inner = next(reversed(path.items()))
            following = next(iter(inner), None)
            if following is None:
                path.popitem()
                done.add(node)
            elif following in path:
                turned.add((node, following))
            elif following not in done:
                path[following] = iter(after.get(following, []))
    return dict.fromkeys((b, a) if (a, b) in turned else (a, b) for a, b in edges)


def _ranks(edges: Mapping[tuple[N, N], None]) -> dict[N, int]:
    """Return the layer of each node by longest path; nodes without predecessors move next to a successor."""
    before: dict[N, list[N]] = defaultdict(list)
    after: dict[N, list[N]] = defaultdict(list)
    sorter: TopologicalSorter[N] = TopologicalSorter()
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
        sorter.add(a)
        sorter.add(b, a)
    ranks: dict[N, int] = {}
    for node in sorter.static_order():
        ranks[node] = max((ranks[other] + 1 for other in before[node]), default=0)
    for node in reversed(ranks):
        if after[node] and not before[node]:
            ranks[node] = min(ranks[other] for other in after[node]) - 1
    return ranks

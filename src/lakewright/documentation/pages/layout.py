"""Where the boxes and lines of a graph stand: in layers from left to right, with few crossings.

Layers by longest path, lines that pass a layer by stand-ins in it, order by the middle of the neighbours:
Sugiyama, Tagawa, Toda, "Methods for Visual Understanding of Hierarchical System Structures" (1981).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

__all__ = ["Box", "Drawing", "lay_out"]

N = TypeVar("N", bound=Hashable)

HEIGHT, GAP, BETWEEN, THROUGH, APART = 30.0, 12.0, 64.0, 10.0, 28.0
"""Of a box, between boxes, between layers, of a line that passes a layer, between parts of the graph."""

SWEEPS = 8


class Box(NamedTuple):
    """A box by its left upper corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Drawing(Generic[N]):
    """A graph with places.

    Attributes:
        lines: For each edge the points that it passes, from the right side of one box to the left of another.
    """

    width: float
    height: float
    boxes: Mapping[N, Box]
    lines: Mapping[tuple[N, N], Sequence[tuple[float, float]]]


def lay_out(widths: Mapping[N, float], edges: Iterable[tuple[N, N]]) -> Drawing[N]:
    """Return places for nodes that have an edge; those without any are left out.

    Args:
        widths: Width of each node's box.
        edges: Pairs of nodes, drawn from left to right; in a circle, one of them goes back.
    """
    known = dict.fromkeys((a, b) for a, b in edges if a != b and a in widths and b in widths)
    boxes: dict[N, Box] = {}
    lines: dict[tuple[N, N], Sequence[tuple[float, float]]] = {}
    top, width = 0.0, 0.0
    for part in _parts(known):
        layers = _Layers(widths, part)
        layers.arrange()
        low, right = layers.place(top, boxes, lines)
        top, width = low + APART, max(width, right)
    return Drawing(width, max(0.0, top - APART), boxes, lines)


def _parts(edges: Iterable[tuple[N, N]]) -> list[list[tuple[N, N]]]:
    """Return the edges of each connected part, the largest first."""
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
    return sorted(parts.values(), key=len, reverse=True)


class _Through(NamedTuple):
    """Stands for an edge in a layer that it passes."""

    edge: tuple[Hashable, Hashable]
    layer: int


@dataclass(slots=True)
class _Layers(Generic[N]):
    """One connected part."""

    widths: Mapping[N, float]
    edges: list[tuple[N, N]]
    layers: list[list[N | _Through]] = field(init=False, default_factory=list)
    before: dict[N | _Through, list[N | _Through]] = field(init=False, default_factory=dict)
    after: dict[N | _Through, list[N | _Through]] = field(init=False, default_factory=dict)
    chains: dict[tuple[N, N], list[N | _Through]] = field(init=False, default_factory=dict)

    def arrange(self) -> None:
        """Give every node a layer, and a place in its order."""
        forward = _without_circles(self.edges)
        ranks = _ranks(forward)
        self.layers = [[] for _ in range(max(ranks.values()) + 1)]
        self.before, self.after = defaultdict(list), defaultdict(list)
        for node, rank in ranks.items():
            self.layers[rank].append(node)
        for a, b in self.edges:
            first, last = (a, b) if (a, b) in forward else (b, a)
            passed: list[N | _Through] = [
                _Through((first, last), rank) for rank in range(ranks[first] + 1, ranks[last])
            ]
            for each, rank in zip(passed, range(ranks[first] + 1, ranks[last]), strict=True):
                self.layers[rank].append(each)
            chain: list[N | _Through] = [first, *passed, last]
            self.chains[a, b] = chain if first == a else chain[::-1]
            for left, right in pairwise(chain):
                self.after[left].append(right)
                self.before[right].append(left)
        self._order()

    def _order(self) -> None:
        places = {node: float(at) for layer in self.layers for at, node in enumerate(layer)}
        for sweep in range(SWEEPS):
            is_down = sweep % 2 == 0
            neighbours = self.before if is_down else self.after
            for layer in self.layers if is_down else self.layers[::-1]:
                wanted = {n: _middle([places[o] for o in neighbours[n]], places[n]) for n in layer}
                layer.sort(key=wanted.__getitem__)
                places |= {node: at for at, node in enumerate(layer)}

    def place(
        self,
        top: float,
        boxes: dict[N, Box],
        lines: dict[tuple[N, N], Sequence[tuple[float, float]]],
    ) -> tuple[float, float]:
        """Put down boxes and lines below `top`; return the lowest and the rightmost point."""
        middles = self._middles()
        highest = min(middles[n] - _height(n) / 2 for layer in self.layers for n in layer)
        x = 0.0
        sides: dict[N | _Through, tuple[float, float]] = {}
        wides = [max(self._width(node) for node in layer) for layer in self.layers]
        for layer, wide in zip(self.layers, wides, strict=True):
            for node in layer:
                y = middles[node] - highest + top
                sides[node] = (x, y)
                if not isinstance(node, _Through):
                    boxes[node] = Box(x, y - HEIGHT / 2, self._width(node), HEIGHT)
            x += wide + BETWEEN
        for edge, chain in self.chains.items():
            lines[edge] = list(self._points(chain, sides, wides))
        low = max(y + _height(node) / 2 for node, (_, y) in sides.items())
        return low, x - BETWEEN

    def _points(
        self,
        chain: Sequence[N | _Through],
        sides: Mapping[N | _Through, tuple[float, float]],
        wides: Sequence[float],
    ) -> Iterable[tuple[float, float]]:
        first, *passed, last = chain
        is_forward = sides[first][0] <= sides[last][0]
        x, y = sides[first]
        yield (x + self._width(first) if is_forward else x), y
        for node in passed:
            x, y = sides[node]
            wide = wides[node.layer] if isinstance(node, _Through) else 0.0
            ends = [(x, y), (x + wide, y)]
            yield from ends if is_forward else ends[::-1]
        x, y = sides[last]
        yield (x if is_forward else x + self._width(last)), y

    def _width(self, node: N | _Through) -> float:
        return 0.0 if isinstance(node, _Through) else self.widths[node]

    def _middles(self) -> dict[N | _Through, float]:
        """Return the height at which each node stands, near those before and after it."""
        middles: dict[N | _Through, float] = {}
        for layer in self.layers:
            _spread(layer, dict.fromkeys(layer, 0.0), middles)
        for sweep in range(SWEEPS):
            is_down = sweep % 2 == 0
            neighbours = self.before if is_down else self.after
            for layer in self.layers if is_down else self.layers[::-1]:
                wanted = {n: _middle([middles[o] for o in neighbours[n]], middles[n]) for n in layer}
                _spread(layer, wanted, middles)
        return middles


def _height(node: object) -> float:
    return THROUGH if isinstance(node, _Through) else HEIGHT


def _middle(places: Sequence[float], otherwise: float) -> float:
    return sum(places) / len(places) if places else otherwise


def _spread(layer: Sequence[N], wanted: Mapping[N, float], middles: dict[N, float]) -> None:
    """Put the nodes of a layer as near to where they are wanted as their order and their heights let them.

    Neighbours that would overlap become a block, which stands at the mean of what its members want.
    """
    blocks: list[tuple[float, float, list[N]]] = []  # sum of wanted tops, height with gaps, members
    for node in layer:
        members, height = [node], _height(node) + GAP
        total = wanted[node] - _height(node) / 2
        while blocks and blocks[-1][0] / len(blocks[-1][2]) + blocks[-1][1] > total / len(members):
            last_total, last_height, last_members = blocks.pop()
            # What a member wants is told as the top that its block would have.
            total = last_total + total - last_height * len(members)
            members, height = last_members + members, last_height + height
        blocks.append((total, height, members))
    for total, _, members in blocks:
        top = total / len(members)
        for node in members:
            middles[node] = top + _height(node) / 2
            top += _height(node) + GAP


def _without_circles(edges: Sequence[tuple[N, N]]) -> dict[tuple[N, N], None]:
    """Return the edges, those turned round that would close a circle."""
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
    """Return the layer of each node: as far left as what comes before it lets it, but near what follows."""
    before: dict[N, list[N]] = defaultdict(list)
    after: dict[N, list[N]] = defaultdict(list)
    nodes: dict[N, None] = {}
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
        nodes |= {a: None, b: None}
    waiting = {node: len(before[node]) for node in nodes}
    ready = [node for node in nodes if not waiting[node]]
    ranks: dict[N, int] = {}
    for node in ready:
        ranks[node] = max((ranks[other] + 1 for other in before[node]), default=0)
        for other in after[node]:
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    for node in reversed(ready):
        if after[node] and not before[node]:
            ranks[node] = min(ranks[other] for other in after[node]) - 1
    return ranks

"""Positions of a graph's nodes in layers, so that edges run downwards and past the boxes between their ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Edge = tuple[int, int]

GAP = 26.0  # between boxes of one layer
BEND_WIDTH = 8.0  # of a point where an edge passes a layer
_LONGEST = 40  # layers that an edge may pass; past that its line would be as long as the picture and say nothing
_ROUNDS = 6


@dataclass
class Layout:
    """Where nodes are.

    layers: nodes from top to bottom, left to right. x: centre of each node. bends: for each edge that passes layers,
    (layer, x) of the points on its way. cut: edges too long to be drawn.
    """

    layers: list[list[int]]
    x: list[float]
    bends: dict[Edge, list[tuple[int, float]]] = field(default_factory=dict)
    cut: list[Edge] = field(default_factory=list)
    width: float = 0.0


def lay_out(widths: Sequence[float], edges: Sequence[Edge]) -> Layout:
    """Place nodes 0 .. len(widths) - 1; `edges` are (from, to), in an order in which every `from` is final."""
    depth = _depths(len(widths), edges)
    sizes, layer_of = list(widths), list(depth)
    links: list[Edge] = []
    passing: dict[Edge, int] = {}  # (from, layer) -> point that all edges of `from` share
    ways: dict[Edge, list[int]] = {}
    cut = []
    for a, b in dict.fromkeys(edges):
        if depth[b] - depth[a] > _LONGEST:
            cut.append((a, b))
            continue
        way = []
        for layer in range(depth[a] + 1, depth[b]):
            if (a, layer) not in passing:
                passing[a, layer] = len(sizes)
                sizes.append(BEND_WIDTH)
                layer_of.append(layer)
            way.append(passing[a, layer])
        ways[a, b] = way
        links += zip([a, *way], [*way, b], strict=True)
    links = list(dict.fromkeys(links))
    above, below = _neighbours(len(sizes), links)
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for node, layer in enumerate(layer_of):
        layers[layer].append(node)
    x = _place(layers, sizes, above, below, real=len(widths))
    left = min((x[n] - sizes[n] / 2 for n in range(len(sizes))), default=0.0)
    x = [at - left for at in x]
    return Layout(
        [[n for n in layer if n < len(widths)] for layer in layers],
        x[: len(widths)],
        {edge: [(layer_of[p], x[p]) for p in way] for edge, way in ways.items()},
        cut,
        max((x[n] + sizes[n] / 2 for n in range(len(sizes))), default=0.0),
    )


def _depths(count: int, edges: Sequence[Edge]) -> list[int]:
    """The longest path from a source; sources themselves are just above the first node that reads from them."""
    depth = [0] * count
    readers: list[list[int]] = [[] for _ in range(count)]
    fed = [False] * count
    for a, b in edges:
        depth[b] = max(depth[b], depth[a] + 1)
        readers[a].append(b)
        fed[b] = True
    for node in range(count):
        if not fed[node] and readers[node]:
            depth[node] = min(depth[b] for b in readers[node]) - 1
    return depth


def _neighbours(count: int, links: Sequence[Edge]) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for a, b in links:
        above[b].append(a)
        below[a].append(b)
    return above, below


def _place(
    layers: list[list[int]], sizes: Sequence[float], above: list[list[int]], below: list[list[int]], real: int
) -> list[float]:
    """Centres of nodes, by sweeps that order each layer by its neighbours' places, then draw it towards them."""
    x = [0.0] * len(sizes)
    for layer in layers:
        _space(layer, [0.0] * len(layer), sizes, x, real)
    for round_ in range(2 * _ROUNDS):
        down = round_ % 2 == 0
        near = above if down else below
        for layer in layers if down else reversed(layers):
            wanted = {n: sum(x[m] for m in near[n]) / len(near[n]) if near[n] else x[n] for n in layer}
            if round_ < _ROUNDS:
                layer.sort(key=wanted.__getitem__)
            _space(layer, [wanted[n] for n in layer], sizes, x, real)
    return x


def _space(layer: list[int], wanted: list[float], sizes: Sequence[float], x: list[float], real: int) -> None:
    """Places in order and without overlap that differ least from `wanted` (least squares; edges' points weigh more)."""
    offsets, at = [], 0.0
    for i, n in enumerate(layer):
        at += (sizes[layer[i - 1]] + sizes[n]) / 2 + GAP if i else 0.0
        offsets.append(at)
    # pool adjacent violators: groups of (weight, mean, members)
    groups: list[tuple[float, float, int]] = []
    for n, want, offset in zip(layer, wanted, offsets, strict=True):
        weight, mean, members = (1.0 if n < real else 4.0), want - offset, 1
        while groups and groups[-1][1] > mean:
            w, m, k = groups.pop()
            mean = (weight * mean + w * m) / (weight + w)
            weight, members = weight + w, members + k
        groups.append((weight, mean, members))
    means = [mean for _, mean, members in groups for _ in range(members)]
    for n, mean, offset in zip(layer, means, offsets, strict=True):
        x[n] = mean + offset

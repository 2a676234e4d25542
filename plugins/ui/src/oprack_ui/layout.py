"""Places for boxes and ways for lines: one engine for the page, the command line's SVG and the documents' pictures.

The engine is graphlay's: layers from top to bottom, few crossings, straight chains, and lines around boxes. This module
is all that knows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import graphlay
from oprack.errors import InvalidArgumentError

Edge = tuple[int, int]
Point = tuple[float, float]

MAX_BOXES = 20_000
ROUNDED = 6.0  # radius of a line's corners
_OPTIONS: dict[str, Any] = {
    "direction": "topbottom",
    "spacing": {"layer_gap": 34.0, "node_gap": 26.0, "dummy_gap": 14.0, "port_gap": 12.0},
    # of a cycle the edge runs upwards that goes from a later to an earlier box
    "cycles": {"strategy": "follow_flow"},
    # points where an edge passes a layer: they, not the boxes, are what takes time and memory
    "limits": {"max_nodes": MAX_BOXES, "max_edges": 4 * MAX_BOXES, "max_dummies": 10 * MAX_BOXES},
    # moving the ends of lines apart takes the cube of the lines at one box
    "tuning": {"routing": {"port_relax_rounds": 0}},
}


@dataclass(frozen=True)
class Layout:
    """Where all is; x runs to the right and y down, in pixels from the corner at the upper left.

    Attributes:
        boxes: The upper left corner of each box.
        lines: The points of each edge, from the border of its first box to that of its last.
        notes: The middle of the text of each edge that has one.
        width: Of all.
        height: Of all.
    """

    boxes: list[Point]
    lines: dict[Edge, list[Point]]
    notes: dict[Edge, Point]
    width: float
    height: float


def lay_out(
    sizes: Sequence[Point], edges: Sequence[Edge], notes: Mapping[Edge, Point] | None = None, layer_gap: float = 34.0
) -> Layout:
    """Place boxes in layers, so that edges run down wherever they do not close a cycle.

    Args:
        sizes: Width and height of each box.
        edges: The numbers of the boxes that each edge joins, first and last.
        notes: Width and height of the text of edges that have one.
        layer_gap: Least room between two layers.

    Raises:
        InvalidArgumentError: There are too many boxes or edges to be laid out.
    """
    if not sizes:
        return Layout([], {}, {}, 0.0, 0.0)
    kept = list(dict.fromkeys(edges))
    request = {
        "nodes": [{"size": {"width": width, "height": height}} for width, height in sizes],
        "edges": [{"source": a, "target": b} | _note_size((notes or {}).get((a, b))) for a, b in kept],
    }
    options = _OPTIONS | {"spacing": _OPTIONS["spacing"] | {"layer_gap": layer_gap}}
    if len(sizes) > 1000:
        options = options | {"effort": "fast"}
    try:
        found = graphlay.layout(request, options=options)
    except graphlay.GraphlayError as error:
        raise InvalidArgumentError(
            f"a graph of {len(sizes)} boxes and {len(kept)} lines can't be laid out ({error}); expected at most "
            f"{MAX_BOXES} boxes; fold chains of ops, or open one block at a time"
        ) from error
    low, high = found.bounds["min"], found.bounds["max"]

    def point(at: Mapping[str, float]) -> Point:
        return at["x"] - low["x"], at["y"] - low["y"]

    corners = []
    for node, (width, height) in zip(found.nodes, sizes, strict=True):
        x, y = point(node["center"])
        corners.append((x - width / 2, y - height / 2))
    lines = {edge: [point(p) for p in line["points"]] for edge, line in zip(kept, found.edges, strict=True)}
    anchors = {edge: line["label_anchor"] for edge, line in zip(kept, found.edges, strict=True)}
    return Layout(
        corners,
        lines,
        {edge: point(at) for edge, at in anchors.items() if at is not None},
        high["x"] - low["x"],
        high["y"] - low["y"],
    )


def _note_size(size: Point | None) -> dict[str, Any]:
    return {} if size is None else {"label_size": {"width": size[0], "height": size[1]}}


def path(points: Sequence[Point]) -> str:
    """The points of a line as SVG's path, with round corners.

    Args:
        points: Those that a `Layout` gives.
    """
    parts = ["M{:.1f} {:.1f}".format(*points[0])]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        first, last = _towards(corner, before), _towards(corner, after)
        parts.append("L{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*first, *corner, *last))
    parts.append("L{:.1f} {:.1f}".format(*points[-1]))
    return "".join(parts)


def _towards(corner: Point, other: Point) -> Point:
    """The point where a round corner begins: on the way to `other`, and not past its middle."""
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = max((dx * dx + dy * dy) ** 0.5, 1e-9)
    part = min(ROUNDED / length, 0.5)
    return corner[0] + dx * part, corner[1] + dy * part


def depths(count: int, edges: Sequence[Edge]) -> list[int]:
    """The longest way from a source to each node; sources are just above the first node that reads from them.

    Args:
        count: How many nodes there are.
        edges: From and to, in an order in which every `from` is final.
    """
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

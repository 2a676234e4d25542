"""The ops of a block and the variables between them, as nodes and edges, laid out and drawn as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oprack.desc import BlockDesc, OpDesc
    from oprack.program import Program

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


WIDTH, HEIGHT, GAP_Y, MARGIN, TITLE = 150, 34, 44, 20, 24
_PALETTE = ("#dbeafe", "#dcfce7", "#fef9c3", "#fee2e2", "#ede9fe", "#ffedd5", "#cffafe", "#fce7f3")


@dataclass
class _Node:
    """A box: an op, or a variable that comes from or goes to the outside."""

    label: str
    title: str
    color: str
    rounding: int = 5
    dash: str = ""


def draw_program(program: Program) -> str:
    """The SVG document: the blocks one below the other.

    Boxes are ops; their titles list slots and attributes. Round boxes are variables that enter or leave the block.
    """
    types = sorted({op.type for block in program.blocks for op in block.ops if op.type not in SKIPPED})
    # By sorted type, so that a program looks the same each time it is drawn.
    colors = {t: _PALETTE[k % len(_PALETTE)] for k, t in enumerate(types)}
    drawings = [_draw_block(block, colors, titled=len(program.blocks) > 1) for block in program.blocks]
    width = max(w for w, _, _ in drawings)
    height = sum(h for _, h, _ in drawings)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#64748b"/></marker></defs>',
    ]
    top = 0.0
    for _, h, drawn in drawings:
        parts += [f'<g transform="translate(0 {top:.1f})">', *drawn, "</g>"]
        top += h
    return "\n".join([*parts, "</svg>\n"])


def _graph(block: BlockDesc, colors: dict[str, str]) -> tuple[list[_Node], dict[Edge, str]]:
    """Boxes of a block, and the variable of each edge."""
    nodes, edges = block_graph(block)
    return [_op(n.op, colors[n.name]) if n.op is not None else _variable(block, n.name) for n in nodes], edges


def _op(op: OpDesc, color: str) -> _Node:
    inside = ", ".join(f"block {i}" for i in op.sub_blocks())
    label = f"{op.type} ({inside})" if inside else op.type
    return _Node(label, str(op), color, dash="4 3" if inside else "")


def _variable(block: BlockDesc, name: str) -> _Node:
    var = block.find_var_recursive(name)
    return _Node(name, str(var) if var is not None else name, "white", rounding=HEIGHT // 2)


def _draw_block(block: BlockDesc, colors: dict[str, str], titled: bool) -> tuple[float, float, list[str]]:
    """Width, height and elements of one block."""
    nodes, edges = _graph(block, colors)
    layout = lay_out([float(WIDTH)] * len(nodes), list(edges))
    start = MARGIN + (TITLE if titled else 0)
    tops = [start + row * (HEIGHT + GAP_Y) for row in range(len(layout.layers))]
    row_of = {n: row for row, layer in enumerate(layout.layers) for n in layer}
    parts = []
    if titled:
        text = f"block {block.idx}" + (f", inside block {block.parent_idx}" if block.parent_idx >= 0 else "")
        parts.append(f'<text x="{MARGIN}" y="{MARGIN + 4}" font-weight="bold">{text}</text>')
    for (a, b), name in edges.items():
        if (a, b) in layout.bends:
            parts.append(_line(layout, a, b, tops, row_of, name))
    for a, b in layout.cut:
        parts.append(_note(layout, b, tops[row_of[b]] + 14, f"← {edges[a, b]}", f"from {nodes[a].label}"))
        parts.append(_note(layout, a, tops[row_of[a]] + 27, f"→ {edges[a, b]}", f"to {nodes[b].label}"))
    for n, node in enumerate(nodes):
        x, y = MARGIN + layout.x[n] - WIDTH / 2, tops[row_of[n]]
        dash = f' stroke-dasharray="{node.dash}"' if node.dash else ""
        parts.append(
            f'<g><title>{_text(node.title)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{WIDTH}" height="{HEIGHT}" '
            f'rx="{node.rounding}" fill="{node.color}" stroke="#475569"{dash}/>'
            f'<text x="{x + WIDTH / 2:.1f}" y="{y + HEIGHT / 2 + 4:.1f}" text-anchor="middle">'
            f"{_text(_short(node.label, 22))}</text></g>"
        )
    labels = 160 if layout.cut else 0
    bottom = (tops[-1] + HEIGHT if tops else start) + MARGIN
    return 2 * MARGIN + max(layout.width, WIDTH) + labels, bottom, parts


def _note(layout: Layout, node: int, y: float, text: str, title: str) -> str:
    """Beside a box: the variable of an edge that is too long to be drawn."""
    return (
        f'<text x="{MARGIN + layout.x[node] + WIDTH / 2 + 4:.1f}" y="{y:.1f}" font-size="9" fill="#64748b">'
        f"{_text(_short(text, 30))}<title>{_text(title)}</title></text>"
    )


def _line(layout: Layout, a: int, b: int, tops: list[int], row_of: dict[int, int], name: str) -> str:
    """The path of an edge: from below `a`, straight through the layers that it passes, to the top of `b`."""
    x, y = MARGIN + layout.x[a], tops[row_of[a]] + HEIGHT
    path = [f"M{x:.1f} {y:.1f}"]
    for row, at in [*layout.bends[a, b], (row_of[b], layout.x[b])]:
        px, top = MARGIN + at, tops[row]
        middle = (y + top) / 2
        path.append(f"C{x:.1f} {middle:.1f} {px:.1f} {middle:.1f} {px:.1f} {top:.1f}")
        x, y = px, top + HEIGHT
        if row != row_of[b]:
            path.append(f"V{y:.1f}")
    return (
        f'<path d="{"".join(path)}" fill="none" stroke="#64748b" marker-end="url(#tip)">'
        f"<title>{_text(name)}</title></path>"
    )


def _text(text: str) -> str:
    """Escaped, without the characters that XML can't hold: names come from a file."""
    return escape("".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text))


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


SKIPPED = ("feed", "fetch")


@dataclass(frozen=True)
class Node:
    """An op, or a variable that comes from or goes to the outside.

    Attributes:
        name: Type of the op, or name of the variable.
        op: The op; None for a variable.
        number: Of the op in its block; -1 for a variable.
    """

    name: str
    op: OpDesc | None = None
    number: int = -1


def block_graph(block: BlockDesc) -> tuple[list[Node], dict[Edge, str]]:
    """Nodes of a block, and the variable of each edge; sources of an edge come before its target.

    Args:
        block: The block; ops feed and fetch are left out, and parameters, which would crowd the picture.

    Returns:
        The nodes, and the edges by the numbers of their nodes.
    """
    nodes: list[Node] = []
    edges: dict[Edge, str] = {}
    writer: dict[str, int] = {}
    for number, op in enumerate(block.ops):
        if op.type in SKIPPED:
            continue
        for name in dict.fromkeys(op.input_arg_names()):
            if name not in writer and _is_drawn(block, name):
                writer[name] = len(nodes)
                nodes.append(Node(name))
        index = len(nodes)
        nodes.append(Node(op.type, op, number))
        for name in op.input_arg_names():
            if name in writer:
                edges.setdefault((writer[name], index), name)
        writer.update(dict.fromkeys(op.output_arg_names(), index))
    for name in _leaving(block, writer):
        index = writer[name]
        if nodes[index].op is not None:  # what only passes through has its box already
            edges[index, len(nodes)] = name
            nodes.append(Node(name))
    return nodes, edges


def _leaving(block: BlockDesc, written: Iterable[str]) -> list[str]:
    """What is fetched, and of a sub-block what it writes outside."""
    fetched = {name for op in block.ops if op.type == "fetch" for name in op.input_arg_names()}
    outer = block.idx > 0
    return [n for n in written if n in fetched or (outer and n not in block.vars and _is_drawn(block, n))]


def _is_drawn(block: BlockDesc, name: str) -> bool:
    """Whether a variable gets a box where it enters or leaves."""
    var = block.find_var_recursive(name)
    return var is None or not var.persistable

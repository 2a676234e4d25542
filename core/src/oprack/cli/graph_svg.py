"""A program drawn as SVG: per block, ops from inputs down to outputs, and a line per variable between two ops."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from oprack.cli.block_graph import SKIPPED, block_graph
from oprack.cli.graph_layout import Edge, Layout, lay_out

if TYPE_CHECKING:
    from oprack.desc import BlockDesc, OpDesc
    from oprack.program import Program

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

"""A block drawn as SVG: ops in layers from inputs down to outputs, and an arrow per variable between two ops."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oprack.desc import BlockDesc

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 150, 34, 26, 44, 20
_SKIPPED = ("feed", "fetch")
_PALETTE = ("#dbeafe", "#dcfce7", "#fef9c3", "#fee2e2", "#ede9fe", "#ffedd5", "#cffafe", "#fce7f3")


def _edges(block: BlockDesc) -> tuple[list[int], list[tuple[int, int, str]]]:
    """Indices of the ops that are drawn, and (from, to, variable) between them."""
    drawn = [i for i, op in enumerate(block.ops) if op.type not in _SKIPPED]
    writer: dict[str, int] = {}
    edges = []
    for i in drawn:
        op = block.ops[i]
        edges += [(writer[n], i, n) for n in dict.fromkeys(op.input_arg_names()) if n in writer]
        writer.update(dict.fromkeys(op.output_arg_names(), i))
    return drawn, edges


def _layers(drawn: list[int], edges: list[tuple[int, int, str]]) -> list[list[int]]:
    """Ops by the longest path from an input; within a layer, near the ops that they read from."""
    depth = dict.fromkeys(drawn, 0)
    sources: dict[int, list[int]] = {i: [] for i in drawn}
    for a, b, _ in edges:  # in the order of b, so depth[a] is final
        depth[b] = max(depth[b], depth[a] + 1)
        sources[b].append(a)
    layers: list[list[int]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for i in drawn:
        layers[depth[i]].append(i)
    column = {i: float(k) for k, i in enumerate(layers[0])} if layers else {}
    for layer in layers[1:]:
        layer.sort(key=lambda i: sum(column[a] for a in sources[i]) / len(sources[i]) if sources[i] else 0.0)
        column.update({i: float(k) for k, i in enumerate(layer)})
    return layers


def draw_block(block: BlockDesc) -> str:
    """The SVG document. Each box is an op; its title lists the op's slots and attributes."""
    drawn, edges = _edges(block)
    layers = _layers(drawn, edges)
    columns = max((len(layer) for layer in layers), default=1)
    width = 2 * MARGIN + columns * WIDTH + (columns - 1) * GAP_X
    height = 2 * MARGIN + max(1, len(layers)) * HEIGHT + max(0, len(layers) - 1) * GAP_Y
    at: dict[int, tuple[float, float]] = {}
    for row, layer in enumerate(layers):
        left = (width - len(layer) * WIDTH - (len(layer) - 1) * GAP_X) / 2
        at.update({i: (left + k * (WIDTH + GAP_X), MARGIN + row * (HEIGHT + GAP_Y)) for k, i in enumerate(layer)})
    types = sorted({block.ops[i].type for i in drawn})
    color = {t: _PALETTE[k % len(_PALETTE)] for k, t in enumerate(types)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#64748b"/></marker></defs>',
    ]
    for a, b, name in edges:
        x1, y1, x2, y2 = at[a][0] + WIDTH / 2, at[a][1] + HEIGHT, at[b][0] + WIDTH / 2, at[b][1]
        bend = (y2 - y1) / 2
        parts.append(
            f'<path d="M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}" '
            f'fill="none" stroke="#64748b" marker-end="url(#tip)"><title>{_text(name)}</title></path>'
        )
    for i in drawn:
        op = block.ops[i]
        x, y = at[i]
        parts.append(
            f'<g><title>{_text(str(op))}</title><rect x="{x:.1f}" y="{y:.1f}" width="{WIDTH}" height="{HEIGHT}" '
            f'rx="5" fill="{color[op.type]}" stroke="#475569"/>'
            f'<text x="{x + WIDTH / 2:.1f}" y="{y + HEIGHT / 2 + 4:.1f}" text-anchor="middle">'
            f"{_text(_short(op.type))}</text></g>"
        )
    return "\n".join([*parts, "</svg>\n"])


def _text(text: str) -> str:
    """Escaped, without the characters that XML can't hold: names come from a file."""
    return escape("".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text))


def _short(text: str) -> str:
    return text if len(text) <= 22 else text[:21] + "…"

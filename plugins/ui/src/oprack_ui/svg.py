"""The graph of a program as an SVG document, with the boxes, places and colours that the page has."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from oprack_ui.graph import LINE, MARGIN, draw

if TYPE_CHECKING:
    from oprack.desc import ProgramDesc

TITLE = 24
PALETTE = ("#dbeafe", "#dcfce7", "#fef9c3", "#fee2e2", "#ede9fe", "#ffedd5", "#cffafe", "#fce7f3")
_HEAD = (
    '<rect width="100%" height="100%" fill="white"/>'
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#64748b"/></marker></defs>'
)


def draw_program(program: ProgramDesc, owners: Mapping[str, str], folded: bool = False) -> str:
    """The SVG document: a legend, and the blocks one below the other.

    Args:
        program: The program.
        owners: Distributions by op type.
        folded: Whether to draw chains of ops as one box each.

    Raises:
        InvalidArgumentError: There are too many ops to be drawn.
    """
    packs = sorted({owners[op.type] for block in program.blocks for op in block.ops})
    colors = {pack: PALETTE[i % len(PALETTE)] for i, pack in enumerate(packs)}
    parts = _legend(colors)
    width, top = 2 * MARGIN + sum(40 + len(pack) * 7 for pack in packs), MARGIN + TITLE
    for block in program.blocks:
        drawn = draw(block, owners, [], folded)
        if len(program.blocks) > 1:
            inside = f", inside block {block.parent_idx}" if block.parent_idx >= 0 else ""
            parts.append(_label(MARGIN, top + MARGIN, f"block {block.idx}{inside}", 'font-weight="bold"'))
            top += TITLE
        parts += [f'<g transform="translate(0 {top:.1f})">', *map(_line, drawn["lines"])]
        parts += [*(_box(box, colors) for box in drawn["boxes"]), "</g>"]
        width, top = max(width, drawn["width"]), top + drawn["height"]
    size = f'width="{width:.0f}" height="{top:.0f}" viewBox="0 0 {width:.0f} {top:.0f}"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([start, _HEAD, *parts, "</svg>\n"])


def _legend(colors: Mapping[str, str]) -> list[str]:
    parts, x = [], MARGIN
    for pack, color in colors.items():
        parts.append(f'<rect x="{x:.0f}" y="{MARGIN - 8:.0f}" width="12" height="12" fill="{color}" stroke="#475569"/>')
        parts.append(_label(x + 18, MARGIN + 3, pack))
        x += 40 + len(pack) * 7
    return parts


def _label(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{_text(text)}</text>'


def _line(line: Mapping[str, Any]) -> str:
    title = _text("\n".join(line["names"]))
    return f'<path d="{line["path"]}" fill="none" stroke="#64748b" marker-end="url(#tip)"><title>{title}</title></path>'


def _box(box: Mapping[str, Any], colors: Mapping[str, str]) -> str:
    fill = colors[box["packs"][0]] if box["packs"] else "white"
    rounding = 14 if box["kind"] == "variable" else 5
    inside = box["kind"] == "chain" or any(detail.get("blocks") for detail in box["details"])
    dash = ' stroke-dasharray="5 3"' if inside else ""
    middle, top = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 - (len(box["lines"]) - 1) * LINE / 2 + 4
    texts = "".join(
        f'<text x="{middle:.1f}" y="{top + i * LINE:.1f}" text-anchor="middle">{_text(name)}'
        f'<tspan fill="#475569" font-size="11">{" " if name and more else ""}{_text(more)}</tspan></text>'
        for i, (name, more) in enumerate(box["lines"])
    )
    return (
        f'<g><title>{_text(_title(box))}</title><rect x="{box["x"]:.1f}" y="{box["y"]:.1f}" '
        f'width="{box["width"]:.1f}" height="{box["height"]:.1f}" rx="{rounding}" fill="{fill}" stroke="#475569"'
        f"{dash}/>{texts}</g>"
    )


def _title(box: Mapping[str, Any]) -> str:
    """What is said of a box when it is pointed at: of each op its slots and attributes."""
    lines = []
    for detail in box["details"]:
        lines.append(detail["title"])
        for slot in detail.get("slots", ()):
            lines.append(f"  {slot['direction']} {slot['slot']}: {', '.join(v['text'] for v in slot['variables'])}")
        lines += [f"  {name} = {value}" for name, value in detail.get("attrs", {}).items()]
    return "\n".join(lines)


def _text(text: str) -> str:
    """Escaped, without the characters that XML can't hold: names come from a file."""
    return escape("".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text))

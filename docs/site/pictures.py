"""Flowcharts of Mermaid drawn as SVG when the site is built, so that no page needs a script for them.

The part of Mermaid that the documents use: `flowchart TB`, nodes `a["text<br>more"]`, edges `a --> b` and
`a -. "text" .-> b`, chains of them, and `subgraph name ["title"] ... end`, which colours its nodes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from typing import Any

from oprack_ui.layout import lay_out, path

LINE, PAD, GAP, MARGIN, LETTER = 17, 11, 46, 16, 7.3
COLORS = ("#dbeafe", "#dcfce7", "#fef3c7", "#ede9fe", "#fee2e2")
_NODE = r"(\w+)(?:\[\"?(.*?)\"?\](?=\s|$))?"  # text may have brackets
_ARROW = r"(-->|--\s*\"(.*?)\"\s*-->|-\.\s*\"(.*?)\"\s*\.->|-\.->)"


@dataclass
class Chart:
    """A flowchart.

    Attributes:
        labels: Lines of each node.
        group: Index of the subgraph of each node.
        titles: Of subgraphs, by name.
        edges: (from, to) -> (text, whether it is dashed).
    """

    labels: dict[str, list[str]] = field(default_factory=dict)
    group: dict[str, int] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    edges: dict[tuple[str, str], tuple[str, bool]] = field(default_factory=dict)


def fence(source: str, *_: Any, **__: Any) -> str:
    """A fenced block `mermaid` as a picture; for pymdownx.superfences."""
    return f'<div class="picture">{draw(parse(source))}</div>'


def parse(source: str) -> Chart:
    """Read a flowchart.

    Args:
        source: Text of Mermaid.

    Raises:
        ValueError: A line is none of those that the documents use.
    """
    chart, inside = Chart(), ""
    for line in filter(None, map(str.strip, source.splitlines())):
        if re.fullmatch(r"flowchart TB", line):
            continue
        if found := re.fullmatch(r"subgraph (\w+) \[\"(.*)\"\]", line):
            inside, chart.titles[found[1]] = found[1], found[2]
        elif line == "end":
            inside = ""
        else:
            _statement(chart, line, inside)
    for end, name in [(end, name) for ends in chart.edges for end, name in enumerate(ends)]:
        if name in chart.titles:
            _redirect(chart, name, end)
    return chart


def _statement(chart: Chart, line: str, inside: str) -> None:
    """A node, or several with arrows between them."""
    at, last, arrow = 0, "", ("", False)
    while at < len(line):
        node = re.compile(_NODE).match(line, at)
        if node is None:
            raise ValueError(
                f"picture: {line!r} is no part of Mermaid that the documents use; see docs/site/pictures.py"
            )
        name, at = node[1], node.end()
        if node[2] is not None or (name not in chart.labels and name not in chart.titles):
            chart.labels[name] = re.split(r"<br/?>", node[2] or name)
            if inside:
                chart.group[name] = list(chart.titles).index(inside)
        if last:
            chart.edges[last, name] = arrow
        found = re.compile(rf"\s*{_ARROW}\s*").match(line, at)
        if found is None and line[at:].strip():
            raise ValueError(f"picture: {line[at:]!r} in {line!r} is no arrow that the documents use")
        if found is not None:
            at, last = found.end(), name
            arrow = (found[2] or found[3] or "", found[1].startswith("-."))
        else:
            at = len(line)


def _redirect(chart: Chart, name: str, end: int) -> None:
    """An edge of a subgraph goes to its first node."""
    first = next(n for n, group in chart.group.items() if group == list(chart.titles).index(name))
    for ends in [e for e in chart.edges if e[end] == name]:
        note = chart.edges.pop(ends)
        chart.edges[(first, ends[1]) if end == 0 else (ends[0], first)] = note


def draw(chart: Chart) -> str:
    """The flowchart as an element `svg`."""
    names = list(chart.labels)
    index = {name: i for i, name in enumerate(names)}
    sizes = [_size(chart.labels[name]) for name in names]
    edges = {(index[a], index[b]): said for (a, b), said in chart.edges.items()}
    notes = {edge: (len(text) * 6.2 + 8, float(LINE)) for edge, (text, _) in edges.items() if text}
    layout = lay_out(sizes, list(edges), notes, layer_gap=GAP)
    legend = sum(40 + len(title) * LETTER for title in chart.titles.values())
    width = max(layout.width, legend) + 2 * MARGIN
    height = layout.height + 2 * MARGIN + (LINE + 8) * bool(chart.titles)
    left = (width - layout.width) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="sans-serif" font-size="13" role="img"><defs><marker id="arrow" viewBox="0 0 8 8" refX="8" '
        'refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" '
        'fill="#64748b"/></marker></defs>'
    ]
    for edge, (_, dashed) in edges.items():
        parts.append(_line(path([(left + x, MARGIN + y) for x, y in layout.lines[edge]]), dashed))
    for edge, (x, y) in layout.notes.items():
        parts.append(_label(left + x, MARGIN + y, edges[edge][0]))
    for name, (x, y), size in zip(names, layout.boxes, sizes, strict=True):
        color = COLORS[chart.group[name] % len(COLORS)] if name in chart.group else "#f8fafc"
        parts.append(_box(left + x, MARGIN + y, size, chart.labels[name], color))
    x = float(MARGIN)
    for i, title in enumerate(chart.titles.values()):
        y = height - MARGIN - 10
        parts.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="14" height="14" fill="{COLORS[i]}" stroke="#475569"/>')
        parts.append(f'<text x="{x + 20:.0f}" y="{y + 12:.0f}" fill="#0f172a">{escape(title)}</text>')
        x += 40 + len(title) * LETTER
    return "".join([*parts, "</svg>"])


def _size(lines: list[str]) -> tuple[float, float]:
    return max(map(len, lines)) * LETTER + 2 * PAD, float(len(lines) * LINE + 2 * PAD)


def _line(path: str, dashed: bool) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<path d="{path}" fill="none" stroke="#64748b" marker-end="url(#arrow)"{dash}/>'


def _label(x: float, y: float, text: str) -> str:
    """The text of an edge around a point; its rim hides lines below it."""
    return (
        f'<text x="{x:.1f}" y="{y + 4:.1f}" font-size="11.5" text-anchor="middle" fill="#475569" stroke="white" '
        f'stroke-width="4" paint-order="stroke">{escape(text)}</text>'
    )


def _box(x: float, y: float, size: tuple[float, float], lines: list[str], color: str) -> str:
    """x, y: of the corner at the upper left."""
    width, height = size
    middle, start = x + width / 2, y + height / 2 - (len(lines) - 1) * LINE / 2 + 4.5
    texts = "".join(
        f'<text x="{middle:.1f}" y="{start + i * LINE:.1f}" text-anchor="middle" '
        f'fill="{"#0f172a" if not i else "#475569"}">{escape(text.strip())}</text>'
        for i, text in enumerate(lines)
    )
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6" fill="{color}" '
        f'stroke="#475569"/>{texts}'
    )

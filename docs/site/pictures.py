"""Flowcharts of Mermaid drawn as SVG when the site is built, so that no page needs a script for them.

The part of Mermaid that the documents use: `flowchart TB`, nodes `a["text<br>more"]`, edges `a --> b` and
`a -. "text" .-> b`, chains of them, and `subgraph name ["title"] ... end`, which colours its nodes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import Any

from oprack_ui.block_graph import Edge, lay_out

LINE, PAD, GAP, MARGIN, LETTER = 17, 11, 46, 16, 7.3
COLORS = ("#dbeafe", "#dcfce7", "#fef3c7", "#ede9fe", "#fee2e2")
_NODE = r"(\w+)(?:\[\"?(.*?)\"?\])?"
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
    order, forward = _sorted(names, list(chart.edges))
    index = {name: i for i, name in enumerate(order)}
    widths = [max(map(len, chart.labels[n])) * LETTER + 2 * PAD for n in order]
    edges: list[Edge] = sorted((index[a], index[b]) for a, b in forward)
    layout = lay_out(widths, edges)
    heights = [max(len(chart.labels[order[n]]) for n in layer) * LINE + 2 * PAD for layer in layout.layers]
    tops = [MARGIN + sum(heights[:row]) + GAP * row for row in range(len(heights))]
    row_of = {n: row for row, layer in enumerate(layout.layers) for n in layer}
    room = max((len(text) * 6.2 for text, _ in chart.edges.values()), default=0.0) + 20
    room += 60 * (len(forward) < len(chart.edges))
    legend = sum(40 + len(title) * LETTER for title in chart.titles.values())
    width = max(layout.width + 2 * (MARGIN + room), legend + 2 * MARGIN)
    height = tops[-1] + heights[-1] + MARGIN + (LINE + 8) * bool(chart.titles)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="sans-serif" font-size="13" role="img"><defs><marker id="arrow" viewBox="0 0 8 8" refX="8" '
        'refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" '
        'fill="#64748b"/></marker></defs>'
    ]
    left = (width - layout.width) / 2
    for a, b in chart.edges:
        back = (a, b) not in forward
        first, last = (index[b], index[a]) if back else (index[a], index[b])
        points = [(left + layout.x[first], tops[row_of[first]] + heights[row_of[first]])]
        for row, x in layout.bends.get((first, last), []):
            points += [(left + x, tops[row]), (left + x, tops[row] + heights[row])]
        points.append((left + layout.x[last], tops[row_of[last]]))
        parts.append(
            _edge(points, *chart.edges[a, b])
            if not back
            else _back_edge(
                (left + layout.x[last] + widths[last] / 2, tops[row_of[last]] + heights[row_of[last]] / 2),
                (left + layout.x[first] + widths[first] / 2, tops[row_of[first]] + heights[row_of[first]] / 2),
                *chart.edges[a, b],
            )
        )
    for n, name in enumerate(order):
        lines, row = chart.labels[name], row_of[n]
        color = COLORS[chart.group[name] % len(COLORS)] if name in chart.group else "#f8fafc"
        parts.append(_box(left + layout.x[n], tops[row], widths[n], heights[row], lines, color))
    x = float(MARGIN)
    for i, title in enumerate(chart.titles.values()):
        y = height - MARGIN - 10
        parts.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="14" height="14" fill="{COLORS[i]}" stroke="#475569"/>')
        parts.append(f'<text x="{x + 20:.0f}" y="{y + 12:.0f}" fill="#0f172a">{escape(title)}</text>')
        x += 40 + len(title) * LETTER
    return "".join([*parts, "</svg>"])


def _sorted(names: list[str], edges: list[tuple[str, str]]) -> tuple[list[str], set[tuple[str, str]]]:
    """Nodes so that edges go from first to last, and the edges that do; those against the order are the others."""
    done: list[str] = []
    forward = set(edges)
    active: set[str] = set()

    def visit(name: str) -> None:
        if name in done:
            return
        active.add(name)
        for a, b in edges:
            if a == name:
                if b in active:
                    forward.discard((a, b))
                else:
                    visit(b)
        active.discard(name)
        done.append(name)

    for name in names:
        visit(name)
    return done[::-1], forward


def _back_edge(start: tuple[float, float], end: tuple[float, float], text: str, dashed: bool) -> str:
    """An edge against the order, drawn upwards on the right of all boxes between."""
    (x0, y0), (x1, y1) = start, end
    far = max(x0, x1) + 60
    path = f"M{x0:.1f} {y0:.1f}C{far:.1f} {y0:.1f} {far:.1f} {y0:.1f} {far:.1f} {y0 - 40:.1f}"
    path += f"V{y1 + 40:.1f}C{far:.1f} {y1:.1f} {far:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
    return _line(path, dashed) + (_label(far + 8, (y0 + y1) / 2, text) if text else "")


def _line(path: str, dashed: bool) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<path d="{path}" fill="none" stroke="#64748b" marker-end="url(#arrow)"{dash}/>'


def _label(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y + 4:.1f}" font-size="11.5" fill="#475569">{escape(text)}</text>'


def _edge(points: list[tuple[float, float]], text: str, dashed: bool) -> str:
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    (x0, y0), (x1, y1) = points[-2:]
    return _line(path, dashed) + (_label((x0 + x1) / 2 + 8, (y0 + y1) / 2, text) if text else "")


def _box(x: float, y: float, width: float, height: float, lines: list[str], color: str) -> str:
    start = y + height / 2 - (len(lines) - 1) * LINE / 2 + 4.5
    texts = "".join(
        f'<text x="{x:.1f}" y="{start + i * LINE:.1f}" text-anchor="middle" fill="{"#0f172a" if not i else "#475569"}">'
        f"{escape(text.strip())}</text>"
        for i, text in enumerate(lines)
    )
    return (
        f'<rect x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6" fill="{color}" '
        f'stroke="#475569"/>{texts}'
    )

"""A block as boxes and lines with places; chains of ops, in which each has one reader, are folded into one box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oprack.desc import BlockDesc

from oprack_ui.block_graph import Edge, Node, block_graph, lay_out

LETTER, PAD, LINE = 6.6, 14.0, 15.0
GAP_Y = 38.0
LEAST = 3  # ops in a chain that is worth folding


@dataclass
class _Box:
    """What is drawn: an op, a variable, or a chain of ops."""

    kind: str
    lines: list[str]
    nodes: list[int]
    key: str = ""


def draw(block: BlockDesc, owners: Mapping[str, str], opened: Sequence[str], folded: bool) -> dict[str, Any]:
    """The boxes and lines of a block.

    Args:
        block: The block.
        owners: Distributions by op type.
        opened: Keys of chains to show op by op.
        folded: Whether to fold chains.

    Returns:
        Plain data: boxes with places and details, lines with points, and the size of it all.
    """
    nodes, edges = block_graph(block)
    boxes = _boxes(block, nodes, edges, set(opened) if folded else None)
    box_of = {n: i for i, box in enumerate(boxes) for n in box.nodes}
    names: dict[Edge, list[str]] = {}
    for (a, b), name in edges.items():
        if box_of[a] != box_of[b]:
            names.setdefault((box_of[a], box_of[b]), []).append(name)
    order = sorted(names, key=lambda e: max(boxes[e[1]].nodes))
    widths = [max(map(len, box.lines)) * LETTER + 2 * PAD for box in boxes]
    layout = lay_out(widths, order)
    heights = [max(len(boxes[n].lines) for n in layer) * LINE + PAD if layer else LINE for layer in layout.layers]
    tops = [GAP_Y / 2 + sum(heights[:row]) + GAP_Y * row for row in range(len(heights))]
    row_of = {n: row for row, layer in enumerate(layout.layers) for n in layer}
    drawn = [
        {
            "kind": box.kind,
            "key": box.key,
            "lines": box.lines,
            "x": layout.x[i] - widths[i] / 2,
            "y": tops[row_of[i]],
            "width": widths[i],
            "height": heights[row_of[i]],
            "packs": sorted({owners[nodes[n].name] for n in box.nodes if nodes[n].op is not None}),
            "details": [_detail(block, nodes[n], owners) for n in box.nodes],
        }
        for i, box in enumerate(boxes)
    ]
    lines = []
    for (a, b), points in layout.bends.items():
        path = [(layout.x[a], tops[row_of[a]] + heights[row_of[a]])]
        for row, x in points:
            path += [(x, tops[row]), (x, tops[row] + heights[row])]
        path.append((layout.x[b], tops[row_of[b]]))
        lines.append({"points": path, "names": [_variable_text(block, n) for n in names[a, b]]})
    height = tops[-1] + heights[-1] + GAP_Y / 2 if tops else GAP_Y
    return {"boxes": drawn, "lines": lines, "cut": len(layout.cut), "width": layout.width, "height": height}


def _boxes(block: BlockDesc, nodes: Sequence[Node], edges: Mapping[Edge, str], opened: set[str] | None) -> list[_Box]:
    """One box for each node, but for chains; None for `opened` means that nothing is folded."""
    boxes = []
    for chain in _chains(nodes, edges):
        key = f"{block.idx}.{nodes[chain[0]].number}" if len(chain) >= LEAST else ""
        if key and opened is not None and key not in opened:
            counts = Counter(nodes[n].name for n in chain)
            words = [f"{name} x {count}" if count > 1 else name for name, count in counts.items()]
            head = ", ".join(words[:3]) + (", ..." if len(words) > 3 else "")
            boxes.append(_Box("chain", [f"{len(chain)} ops", head], chain, key))
            continue
        for n in chain:
            node = nodes[n]
            if node.op is None:
                boxes.append(_Box("variable", [_short(node.name), *_shape(block, node.name)], [n]))
            else:
                out = _result(block, node.op.output_arg_names())
                inside = [f"block {i}" for i in node.op.sub_blocks()]
                boxes.append(_Box("op", [node.name, *_shape(block, out), *inside], [n], key))
    return boxes


def _chains(nodes: Sequence[Node], edges: Mapping[Edge, str]) -> list[list[int]]:
    """The nodes in runs: ops each of which is all that reads, and all that is read by, its neighbour in the run."""
    readers: dict[int, set[int]] = {}
    writers: dict[int, set[int]] = {}
    for a, b in edges:
        readers.setdefault(a, set()).add(b)
        writers.setdefault(b, set()).add(a)
    follows = {}
    for a, found in readers.items():
        (b, *others) = found
        if not others and writers[b] == {a} and _is_plain(nodes[a]) and _is_plain(nodes[b]):
            follows[a] = b
    inner = set(follows.values())
    chains = []
    for n in range(len(nodes)):
        if n not in inner:
            chain = [n]
            while chain[-1] in follows:
                chain.append(follows[chain[-1]])
            chains.append(chain)
    return chains


def _result(block: BlockDesc, names: Iterable[str]) -> str:
    """The output whose shape is shown: the first that is no parameter or running statistic."""
    found = list(names)
    kept = (n for n in found if (var := block.find_var_recursive(n)) is None or not var.persistable)
    return next(kept, found[0] if found else "")


def _is_plain(node: Node) -> bool:
    """Whether a node is an op without a block inside."""
    return node.op is not None and not list(node.op.sub_blocks())


def _shape(block: BlockDesc, name: str) -> list[str]:
    var = block.find_var_recursive(name)
    if var is None or var.shape is None:
        return []
    dims = ", ".join("?" if d < 0 else str(d) for d in var.shape)
    return [f"{var.dtype_name() or ''} [{dims}]".strip()]


def _variable_text(block: BlockDesc, name: str) -> str:
    return " ".join([_short(name, 60), *_shape(block, name)])


def _detail(block: BlockDesc, node: Node, owners: Mapping[str, str]) -> dict[str, Any]:
    """What is said of a node when it is pointed at."""
    if node.op is None:
        return {"title": _variable_text(block, node.name)}
    slots = [
        {"slot": slot, "direction": direction, "variables": [_variable_text(block, n) for n in names]}
        for direction, found in (("input", node.op.inputs), ("output", node.op.outputs))
        for slot, names in found.items()
        if names
    ]
    attrs = {k: _short(str(v), 80) for k, v in node.op.attrs.items() if not k.startswith("op_")}
    return {
        "title": node.name,
        "op": node.name,
        "number": node.number,
        "pack": owners[node.name],
        "slots": slots,
        "attrs": attrs,
        "blocks": list(node.op.sub_blocks()),
    }


def _short(text: str, length: int = 28) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"

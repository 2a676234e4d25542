"""A block as boxes and lines with places; chains of ops, in which each has one reader, are folded into one box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oprack.desc import BlockDesc, OpDesc

from oprack_ui.block_graph import Node, block_graph
from oprack_ui.layout import Edge, depths, lay_out, path

LETTER, PAD, LINE, MARGIN = 6.8, 14.0, 16.0, 20.0
LEAST = 3  # ops in a chain that is worth folding
MOST = 9  # lines of a folded chain
FAR, MANY = 40, 40  # layers that a line may pass, and lines at one side of a box; past that they say nothing


@dataclass
class _Box:
    """What is drawn: an op, a variable, or a chain of ops.

    Attributes:
        kind: "op", "variable" or "chain".
        lines: What it says: of each line a name, and what is said of it.
        nodes: What it stands for.
        key: Of a chain, opened or not; "" where there is none.
        readers: How many ops read from it over lines that are not drawn.
    """

    kind: str
    lines: list[tuple[str, str]]
    nodes: list[int]
    key: str = ""
    readers: int = 0


def draw(
    block: BlockDesc, owners: Mapping[str, str], opened: Sequence[str], folded: bool, feeds: Sequence[str] = ()
) -> dict[str, Any]:
    """The boxes and lines of a block.

    Args:
        block: The block.
        owners: Distributions by op type.
        opened: Keys of chains to show op by op.
        folded: Whether to fold chains.
        feeds: The model's inputs in order.

    Returns:
        Plain data: boxes with places and details, lines as paths with the boxes that they join, the size of it all, and
        the number of the box where one begins to read: the first input, or else what comes in first, or the first op.
        Lines that would run past too much are left out, and named in the boxes instead.

    Raises:
        InvalidArgumentError: There are too many ops to be drawn.
    """
    nodes, edges = block_graph(block)
    boxes = _boxes(block, nodes, edges, set(opened) if folded else None)
    names = _lines(boxes, edges)
    drawn = _near(len(boxes), names)
    for (a, b), variables in names.items():
        if (a, b) not in drawn:
            boxes[a].readers += 1
            boxes[b].lines.append(("", f"← {_short(variables[0])}"))
    for box in boxes:
        if box.readers:
            box.lines.append(("", f"→ {box.readers} further {'box' if box.readers == 1 else 'boxes'}"))
    sizes = [_size(box.lines) for box in boxes]
    layout = lay_out(sizes, drawn)
    shown = [
        {
            "kind": box.kind,
            "key": box.key,
            "lines": box.lines,
            "x": MARGIN + x,
            "y": MARGIN + y,
            "width": width,
            "height": height,
            "packs": _packs([nodes[n].name for n in box.nodes if nodes[n].op is not None], owners),
            "details": [_detail(block, nodes[n], owners) for n in box.nodes],
        }
        for box, (x, y), (width, height) in zip(boxes, layout.boxes, sizes, strict=True)
    ]
    lines = [
        {
            "path": path([(MARGIN + x, MARGIN + y) for x, y in points]),
            "ends": [a, b],
            "names": [_variable_text(block, n) for n in names[a, b]],
        }
        for (a, b), points in layout.lines.items()
    ]
    return {
        "start": _start(boxes, nodes, feeds),
        "boxes": shown,
        "lines": lines,
        "width": layout.width + 2 * MARGIN,
        "height": layout.height + 2 * MARGIN,
    }


def _start(boxes: Sequence[_Box], nodes: Sequence[Node], feeds: Sequence[str]) -> int:
    comes_in = {nodes[box.nodes[0]].name: i for i, box in reversed([*enumerate(boxes)]) if box.kind == "variable"}
    fed = (comes_in[name] for name in feeds if name in comes_in)
    return next(fed, min(comes_in.values(), default=0))


def _lines(boxes: Sequence[_Box], edges: Mapping[Edge, str]) -> dict[Edge, list[str]]:
    """The variables between each two boxes, in the order in which the second ones run."""
    box_of = {n: i for i, box in enumerate(boxes) for n in box.nodes}
    names: dict[Edge, list[str]] = {}
    for (a, b), name in edges.items():
        if box_of[a] != box_of[b]:
            names.setdefault((box_of[a], box_of[b]), []).append(name)
    return dict(sorted(names.items(), key=lambda item: max(boxes[item[0][1]].nodes)))


def _near(count: int, edges: Iterable[Edge]) -> list[Edge]:
    """The edges that are drawn."""
    found = list(edges)
    depth = depths(count, found)
    leaving, entering = Counter[int](), Counter[int]()
    kept = []
    for a, b in found:
        if depth[b] - depth[a] <= FAR and leaving[a] < MANY and entering[b] < MANY:
            kept.append((a, b))
            leaving[a] += 1
            entering[b] += 1
    return kept


def _packs(op_types: Sequence[str], owners: Mapping[str, str]) -> list[str]:
    """The distributions of the ops of a box, that of most of them first."""
    counts = Counter(owners[t] for t in op_types)
    return sorted(counts, key=lambda pack: (-counts[pack], pack))


def _size(lines: Sequence[tuple[str, str]]) -> tuple[float, float]:
    letters = max(len(name) + len(more) + bool(name and more) for name, more in lines)
    return letters * LETTER + 2 * PAD, len(lines) * LINE + PAD


def _boxes(block: BlockDesc, nodes: Sequence[Node], edges: Mapping[Edge, str], opened: set[str] | None) -> list[_Box]:
    """One box for each node, but for chains; None for `opened` means that nothing is folded."""
    boxes = []
    for chain in _chains(nodes, edges):
        key = f"{block.idx}.{nodes[chain[0]].number}" if len(chain) >= LEAST else ""
        if key and opened is not None and key not in opened:
            boxes.append(_Box("chain", _chain_lines(block, [op for n in chain if (op := nodes[n].op)]), chain, key))
            continue
        for n in chain:
            op = nodes[n].op
            if op is None:
                name = nodes[n].name
                boxes.append(_Box("variable", [(_short(name), ""), *(("", s) for s in _shape(block, name))], [n]))
            else:
                boxes.append(_Box("op", _op_lines(block, op), [n], key))
    return boxes


def _op_lines(block: BlockDesc, op: OpDesc) -> list[tuple[str, str]]:
    """What the box of an op says: its type, its parameters, its blocks, and its result."""
    lines = [(op.type, "")]
    by_shape: dict[str, list[str]] = {}
    for slot, shape in _parameters(block, op):
        by_shape.setdefault(shape, []).append(slot)
    lines += [("", f"{_some(slots)} {shape}") for shape, slots in by_shape.items()]
    lines += [("", f"block {i}") for i in op.sub_blocks()]
    return lines + [("", f"→ {shape}") for shape in _shape(block, _result(block, op.output_arg_names()))]


def _chain_lines(block: BlockDesc, ops: Sequence[OpDesc]) -> list[tuple[str, str]]:
    """What the box of a chain says: its ops with the shapes of their parameters, and its result."""
    lines = []
    for op in ops:
        shapes = list(dict.fromkeys(shape for _, shape in _parameters(block, op)))
        lines.append((op.type, " ".join(shapes[:3])))
    if len(lines) > MOST:
        lines[MOST - 2 : -1] = [("", f"... {len(lines) - MOST + 1} more ops ...")]
    return lines + [("", f"→ {shape}") for shape in _shape(block, _result(block, ops[-1].output_arg_names()))]


def _parameters(block: BlockDesc, op: OpDesc) -> list[tuple[str, str]]:
    """The slots of an op that read parameters, and their dims."""
    found = []
    for slot, names in op.inputs.items():
        for name in names:
            var = block.find_var_recursive(name)
            if var is not None and var.persistable and var.shape is not None:
                found.append((slot, _dims(var.shape)))
    return found


def _some(slots: Sequence[str]) -> str:
    """Names of slots in a line: `Bias`, `Bias, Mean, ...`, `WeightList x 8`."""
    counts = [f"{slot} x {count}" if count > 1 else slot for slot, count in Counter(slots).items()]
    return ", ".join(counts[:2] + ["..."] * (len(counts) > 2))


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


def _dims(shape: Sequence[int]) -> str:
    return f"[{', '.join('?' if d < 0 else str(d) for d in shape)}]"


def _shape(block: BlockDesc, name: str) -> list[str]:
    var = block.find_var_recursive(name)
    if var is None or var.shape is None:
        return []
    return [f"{var.dtype_name() or ''} {_dims(var.shape)}".strip()]


def _variable_text(block: BlockDesc, name: str) -> str:
    return " ".join([_short(name, 60), *_shape(block, name)])


def _detail(block: BlockDesc, node: Node, owners: Mapping[str, str]) -> dict[str, Any]:
    """What is said of a node when it is pointed at."""
    if node.op is None:
        return {"title": _variable_text(block, node.name), "name": node.name}
    slots = [
        {
            "slot": slot,
            "direction": direction,
            "variables": [{"name": n, "text": _variable_text(block, n)} for n in names],
        }
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

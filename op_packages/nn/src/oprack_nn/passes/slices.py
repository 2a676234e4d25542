"""A slice of what a product makes becomes a product of a slice: rows that nobody reads are not computed.

Classifiers over a transformer read the first token alone, so all but the keys and values of its last layer go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from oprack.ir import Graph, OpNode, VarNode
from oprack.ir.generic import remove_dead_code

PRODUCTS = ("mul", "matmul", "matmul_v2")
RESHAPES = ("reshape", "reshape2")
TRANSPOSES = ("transpose", "transpose2")
UNARY = frozenset(
    "abs assign clip elu erf exp gelu hard_sigmoid hard_swish leaky_relu log mish pow relu relu6 rsqrt scale sigmoid "
    "silu softplus sqrt square swish tanh".split()
)
BINARY = frozenset(f"elementwise_{name}" for name in ("add", "sub", "mul", "div", "max", "min", "pow"))
_END = 1 << 30


class _Part:
    """What a slice takes: the places from start to end along one dim."""

    def __init__(self, op: OpNode) -> None:
        self.start, self.end = op.attr("starts")[0], op.attr("ends")[0]

    @property
    def edge(self) -> bool:
        """Whether it is the first or the last place alone: then it is right for a dim of size 1, too."""
        return (self.start, self.end) == (0, 1) or (self.start == -1 and self.end >= _END)


# How ops pass a slice on to their inputs ------------------------------------------------------------------------------
# rule(op, axis, part) -> {input slot: dim to slice}, "" -> new attributes; None when the op needs all of its input.
Passed: TypeAlias = dict[str, Any]


def _input(op: OpNode, slot: str) -> VarNode:
    """An input that the op's type requires; the op fits its OpProto, or it would be opaque."""
    return cast("VarNode", op.input(slot))


def _dims(op: OpNode, slot: str = "X") -> tuple[int, ...]:
    """Dims of an input that `_is_plain`, so that its rank is known."""
    return cast("tuple[int, ...]", _input(op, slot).shape)


def _unary(op: OpNode, axis: int, part: _Part) -> Passed | None:
    return None if any(nodes for slot, nodes in op.inputs.items() if slot != "X") else {"X": axis}


def _binary(op: OpNode, axis: int, part: _Part) -> Passed | None:
    x, y = _dims(op), _dims(op, "Y")
    rank, given = len(x), op.attr("axis", -1)
    start = rank - len(y) if given == -1 or len(y) == rank else given
    if start < 0:
        return None
    place = axis - start
    if not 0 <= place < len(y) or y[place] == 1:
        return {"X": axis} if x[axis] != 1 or part.edge else None
    if part.edge or x[axis] == y[place] > 0:
        return {"X": axis, "Y": place}
    return None


def _layer_norm(op: OpNode, axis: int, part: _Part) -> Passed | None:
    return {"X": axis} if axis < op.attr("begin_norm_axis", 1) else None


def _softmax(op: OpNode, axis: int, part: _Part) -> Passed | None:
    return {"X": axis} if axis != op.attr("axis", -1) % len(_dims(op)) else None


def _product(op: OpNode, axis: int, part: _Part) -> Passed | None:
    x, y = _dims(op), _dims(op, "Y")
    if op.type == "mul":
        return {"X": axis} if axis < op.attr("x_num_col_dims", 1) else None
    turned = op.attr("transpose_X", op.attr("trans_x", False))
    if turned or op.attr("head_number", 1) != 1 or len(x) < 2 or len(y) not in (2, len(x)):
        return None
    return {"X": axis} if axis == len(x) - 2 or (axis < len(x) - 2 and len(y) == 2) else None


def _transpose(op: OpNode, axis: int, part: _Part) -> Passed | None:
    return {"X": op.attr("axis")[axis]}


def _leaves(sizes: Sequence[int], dims: Sequence[int]) -> bool:
    """Whether a reshape to these sizes leaves the first dims as they are, if -1 stands for what is left."""
    return all(s in (0, -1, d) for s, d in zip(sizes, dims, strict=False))


def _reshape(op: OpNode, axis: int, part: _Part) -> Passed | None:
    x, sizes = _dims(op), list(op.attr("shape", ()))
    if any(n for s, n in op.inputs.items() if s != "X") or len(x) <= axis or len(sizes) <= axis:
        return None
    if not _leaves(sizes[: axis + 1], x) or sizes.count(-1) > 1:
        return None
    rest = x[axis + 1 :]
    new = [x[i] if size == 0 and i < len(x) else size for i, size in enumerate(sizes)][axis + 1 :]
    if any(d < 1 for d in (*rest, *new)) or math.prod(rest) != math.prod(new):
        return None
    return {"X": axis, "": {"shape": [*[0] * (axis + 1), *new]}}


_RULES: dict[str, Callable[[OpNode, int, _Part], Passed | None]] = {
    **dict.fromkeys(UNARY, _unary),
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(PRODUCTS, _product),
    **dict.fromkeys(TRANSPOSES, _transpose),
    **dict.fromkeys(RESHAPES, _reshape),
    "layer_norm": _layer_norm,
    "softmax": _softmax,
}


# The pass -------------------------------------------------------------------------------------------------------------
def _is_plain(graph: Graph, node: VarNode) -> bool:
    """Whether a variable is a tensor of known rank, without LoD, that is not written again."""
    known = node.desc is not None and node.desc.lod_level == 0 and node.shape is not None
    return known and not graph.is_overwritten(node)


def _slice_of(graph: Graph, op: OpNode) -> tuple[int, _Part] | None:
    """(dim, part) of a slice along one dim given by attributes; None for any other op."""
    if op.type != "slice" or op.opaque or any(n for s, n in op.inputs.items() if s != "Input"):
        return None
    axes = op.attr("axes", ())
    one = len(axes) == len(op.attr("starts", ())) == len(op.attr("ends", ())) == 1
    if not one or not _is_plain(graph, _input(op, "Input")):
        return None
    rank = len(_dims(op, "Input"))
    if rank < 2:
        return None
    axis = axes[0] % rank
    return (axis, _Part(op)) if all(a % rank == axis for a in op.attr("decrease_axis", ())) else None


def _passed_on(graph: Graph, node: VarNode, reader: OpNode, axis: int, part: _Part) -> tuple[OpNode, Passed] | None:
    """The op that makes `node`, which `reader` alone reads, and what its rule says; None when it may not be changed."""
    op = node.producer
    if op is None or op.type not in _RULES or op.opaque or op.hidden_writes or node.consumers != [reader]:
        return None
    others = [n for n in op.writes() if n is not node and n.consumers]
    if others or any(graph.is_kept(n) for n in op.writes()) or not all(_is_plain(graph, n) for n in op.reads()):
        return None
    passed = _RULES[op.type](op, axis, part)
    return None if passed is None else (op, passed)


def _reaches_product(graph: Graph, node: VarNode, reader: OpNode, axis: int, part: _Part) -> bool:
    """Whether a slice of `node` can be moved before a product."""
    found = _passed_on(graph, node, reader, axis, part)
    if found is None:
        return False
    op, passed = found
    inputs = [(_input(op, slot), dim) for slot, dim in passed.items() if slot]
    return op.type in PRODUCTS or any(_reaches_product(graph, n, op, dim, part) for n, dim in inputs)


def _sliced(
    graph: Graph,
    node: VarNode,
    reader: OpNode,
    axis: int,
    part: _Part,
    before: OpNode,
    made: dict[tuple[VarNode, int], VarNode],
) -> VarNode:
    """The part of `node`, made from parts of what it was made from as far as that saves products.

    made: slices so far, by variable and dim.
    """
    found = _passed_on(graph, node, reader, axis, part)
    if found is None or not _reaches_product(graph, node, reader, axis, part):
        out = made.get((node, axis))
        if out is None:
            out = made[node, axis] = graph.new_var(node.name)
            attrs = {"axes": [axis], "starts": [part.start], "ends": [part.end]}
            graph.add_op("slice", {"Input": [node]}, {"Out": [out]}, attrs, before=before)
        return out
    op, passed = found
    inputs = dict(op.inputs)
    for slot, dim in passed.items():
        if slot:
            inputs[slot] = [_sliced(graph, _input(op, slot), op, dim, part, before, made)]
    proto = graph.manager.op_info(op.type).proto
    attrs = {name: value for name, value in op.desc.attrs.items() if name in proto.attrs} | passed.get("", {})
    outputs = {slot: [graph.new_var(n.name) for n in nodes] for slot, nodes in op.outputs.items()}
    graph.add_op(op.type, inputs, outputs, attrs, before=before)
    return next(outputs[slot][0] for slot, nodes in op.outputs.items() if node in nodes)


def hoist_slices(graph: Graph) -> int:
    """slice(f(x w))  ->  f(slice(x) w), for every f that keeps the places along the dim apart"""
    total = 0
    while count := sum(_hoist(graph, op) for op in graph.ops):
        total += count
    return total


def _hoist(graph: Graph, op: OpNode) -> bool:
    """Move one slice as far up as products are; False when there is none that it alone reads from."""
    found = _slice_of(graph, op)
    out = op.output("Out")
    if found is None or out is None or out.pinned or len(graph.versions(out.name)) > 1:
        return False
    (axis, part), whole = found, _input(op, "Input")
    if not _reaches_product(graph, whole, op, axis, part):
        return False
    rows = _sliced(graph, whole, op, axis, part, op, {})
    if op.attr("decrease_axis", ()):
        outputs = {"Out": [out], "XShape": [graph.new_var(out.name)]}
        graph.add_op("squeeze2", {"X": [rows]}, outputs, {"axes": [axis]}, before=op)
        graph.remove_op(op)
    else:
        graph.replace_var(out, rows)
        graph.remove_op(op)
    remove_dead_code(graph)
    return True

"""A reshape whose shape comes from tensors takes it from its attribute, where all numbers but one are known."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oprack.ir import Graph, OpNode, VarNode
from oprack.ir.generic import remove_dead_code

RESHAPES = ("reshape", "reshape2")


def number(graph: Graph, node: VarNode) -> int | None:
    """The value of a constant of one element; None for any other variable."""
    value = graph.constant_array(node)
    return int(value.item()) if value is not None and value.size == 1 else None


def _numbers(graph: Graph, op: OpNode) -> list[int | None] | None:
    """The values of ShapeTensor, None for one that only a run tells; no list where one may not be a number at all."""
    nodes = op.inputs.get("ShapeTensor", ())
    if any(node.shape is None or math.prod(node.shape) != 1 for node in nodes):
        return None  # the op refuses it, in words of its own
    return [number(graph, node) for node in nodes]


def _sizes(graph: Graph, op: OpNode) -> list[int] | None:
    """The new shape as an attribute, with 0 for a dim that is copied and -1 for one that follows from the others."""
    sizes: list[int | None] | None
    if op.inputs.get("ShapeTensor"):
        sizes = _numbers(graph, op)
        if sizes is None:
            return None
    else:
        given = op.input("Shape")
        value = None if given is None else graph.constant_array(given)
        if value is None:
            return None
        sizes = [int(n) for n in value.reshape(-1)]
    known = [n for n in sizes if n is not None]
    if len(known) == len(sizes):
        return known
    if sizes.count(None) > 1 or -1 in sizes:
        return None
    unknown, x = sizes.index(None), op.input("X")
    size = None if x is None else _follows(x, sizes, unknown)
    return None if size is None else [size if n is None else n for n in sizes]


def _follows(x: VarNode, sizes: Sequence[int | None], unknown: int) -> int | None:
    """What stands for the unknown number: 0 when it can but be X's dim at its place, -1 when no other dim can be 0.

    None otherwise: in an empty tensor nothing follows from the other dims, and a cache is empty in its first round.
    """
    dims = x.shape or ()
    rest, new = list(dims[unknown + 1 :]), [n for n in sizes[unknown + 1 :] if n is not None]
    if unknown < len(dims) and not any(sizes[:unknown]) and min((*rest, *new), default=1) > 0:
        if math.prod(rest) == math.prod(new):
            return 0
    copied = [dims[i] if n == 0 and i < len(dims) else n for i, n in enumerate(sizes) if n is not None]
    return -1 if min(copied, default=1) > 0 else None


def _inserted(graph: Graph, op: OpNode) -> list[int] | None:
    """Places of the ones that a reshape inserts when it does nothing else; None when it does, or its shape is known."""
    sizes, x = _numbers(graph, op), op.input("X")
    dims = None if x is None else x.shape
    if dims is None or sizes is None or sizes.count(None) != 1:
        return None
    ones = [i for i, n in enumerate(sizes) if n == 1]
    kept = [(i, n) for i, n in enumerate(sizes) if n != 1]
    if not ones or len(kept) != len(dims):
        return None
    same = all(n is None or (n == 0 and i == k) or n == dims[k] > 0 for k, (i, n) in enumerate(kept))
    return ones if same else None


def known_shape_to_attr(graph: Graph) -> int:
    """reshape(x, ShapeTensor=[0, n, 3, 8])  ->  reshape(x, shape=[0, 0, 3, 8]), or the unsqueeze that it is"""
    count = 0
    for op in graph.ops:
        if count:
            graph.refine(op)
        if op.type not in RESHAPES or op.opaque or not any(op.inputs.get(slot) for slot in ("ShapeTensor", "Shape")):
            continue
        sizes = _sizes(graph, op)
        if sizes is None:
            ones = _inserted(graph, op)
            if ones is not None:
                kind = op.type.replace("reshape", "unsqueeze")
                graph.refine(graph.add_op(kind, {"X": op.inputs["X"]}, op.outputs, {"axes": ones}, before=op))
                graph.remove_op(op)
                count += 1
            continue
        declared = graph.manager.op_info(op.type).proto.attrs
        attrs = {name: value for name, value in op.desc.attrs.items() if name in declared} | {"shape": sizes}
        graph.refine(graph.add_op(op.type, {"X": op.inputs["X"]}, op.outputs, attrs, before=op))
        graph.remove_op(op)
        count += 1
    if count:
        remove_dead_code(graph)
    return count

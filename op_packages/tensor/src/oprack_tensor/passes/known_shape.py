"""A reshape whose shape comes from tensors takes it from its attribute, where all numbers but one are known."""

from __future__ import annotations

import math

from oprack.ir.generic import remove_dead_code

RESHAPES = ("reshape", "reshape2")


def _number(graph, node):
    """The value of a constant of one element; None for any other variable."""
    value = graph.constant_array(node)
    return int(value.item()) if value is not None and value.size == 1 else None


def _sizes(graph, op):
    """The new shape as an attribute, with 0 for a dim that is copied and -1 for one that follows from the others."""
    if op.inputs.get("ShapeTensor"):
        sizes = [_number(graph, node) for node in op.inputs["ShapeTensor"]]
    else:
        value = graph.constant_array(op.input("Shape")) if op.inputs.get("Shape") else None
        if value is None:
            return None
        sizes = [int(n) for n in value.reshape(-1)]
    if sizes.count(None) == 0:
        return sizes
    if sizes.count(None) > 1 or -1 in sizes:
        return None
    unknown, x = sizes.index(None), op.input("X")
    return [_follows(x, sizes, unknown) if i == unknown else n for i, n in enumerate(sizes)]


def _follows(x, sizes, unknown):
    """0 when the unknown number can but be X's dim at its place, so that empty tensors keep their shape; else -1."""
    dims = x.shape
    if dims is None or unknown >= len(dims) or any(n != 0 for n in sizes[:unknown]):
        return -1
    rest, new = list(dims[unknown + 1 :]), sizes[unknown + 1 :]
    if any(n < 1 for n in (*rest, *new)):
        return -1
    return 0 if math.prod(rest) == math.prod(new) else -1


def known_shape_to_attr(graph):
    """reshape(x, ShapeTensor=[0, n, 3, 8])  ->  reshape(x, shape=[0, -1, 3, 8])"""
    count = 0
    for op in graph.ops:
        if op.type not in RESHAPES or op.opaque or not any(op.inputs.get(slot) for slot in ("ShapeTensor", "Shape")):
            continue
        sizes = _sizes(graph, op)
        if sizes is None:
            continue
        declared = graph.manager.op_info(op.type).proto.attrs
        attrs = {name: value for name, value in op.desc.attrs.items() if name in declared} | {"shape": sizes}
        graph.add_op(op.type, {"X": op.inputs["X"]}, op.outputs, attrs, before=op)
        graph.remove_op(op)
        count += 1
    if count:
        remove_dead_code(graph)
    return count

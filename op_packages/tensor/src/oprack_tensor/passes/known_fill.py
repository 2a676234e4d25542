"""A constant whose size a tensor gives takes it from the dims of that tensor, as first states of recurrent nets do."""

from __future__ import annotations

from oprack.ir import Graph, OpNode, VarNode
from oprack.ir.generic import remove_dead_code
from oprack.types import VarType

from oprack_tensor.passes.known_shape import number


def _dim_of(node: VarNode) -> tuple[VarNode, int] | None:
    """(x, i) for the one element of slice(shape(x), [i], [i + 1]); None for any other variable."""
    cut = node.producer
    if cut is None or cut.type != "slice" or cut.attr("axes") != [0]:
        return None
    if any(nodes for slot, nodes in cut.inputs.items() if slot != "Input"):
        return None
    whole, starts, ends = cut.input("Input"), cut.attr("starts"), cut.attr("ends")
    shape = None if whole is None else whole.producer
    if shape is None or shape.type != "shape" or starts[0] < 0 or ends != [starts[0] + 1]:
        return None
    x = shape.input("Input")
    # of a tensor with sequences the op would take how many there are
    if x is None:
        return None
    is_plain = x.fact.type == VarType.LOD_TENSOR and x.desc is not None and x.desc.lod_level == 0
    return (x, starts[0]) if is_plain and x.shape is not None and starts[0] < len(x.shape) else None


def _fill(graph: Graph, op: OpNode) -> bool:
    given = op.inputs.get("ShapeTensorList", [])
    if op.inputs.get("ValueTensor") or op.inputs.get("ShapeTensor") or op.attr("force_cpu") or not given:
        return False
    sizes = [number(graph, node) for node in given]
    found = _dim_of(given[sizes.index(None)]) if sizes.count(None) == 1 else None
    if found is None or op.attr("place_type") not in (None, -1) or min(n for n in (*sizes, 0) if n is not None) < 0:
        return False
    x, dim = found
    if graph.is_overwritten(x):
        return False
    attrs = {name: op.attr(name) for name in ("dtype", "value", "str_value") if op.attr(name) is not None}
    at = {"input_dim_idx": dim, "output_dim_idx": sizes.index(None), "shape": [-1 if n is None else n for n in sizes]}
    graph.refine(graph.add_op("fill_constant_batch_size_like", {"Input": [x]}, op.outputs, attrs | at, before=op))
    graph.remove_op(op)
    return True


def known_size_to_fill(graph: Graph) -> int:
    """fill_constant(ShapeTensorList=[2, shape(x)[0], 8])  ->  fill_constant_batch_size_like(x, shape=[2, -1, 8])"""
    count = sum([op.type == "fill_constant" and not op.opaque and _fill(graph, op) for op in graph.ops])
    if count:
        remove_dead_code(graph)
    return count

"""Convolutions and products with weights that round their factors to bfloat16, for who asked for it.

What a convolution makes for others alone, which multiply it or add it to their sums, is rounded when it is written, so
that half as much is moved. A model whose ops say by their attribute mkldnn_data_type which of them may round, as
`oprack quantize --precision auto` writes it, has no others round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from oprack.ir import Graph, OpNode, VarNode, one_dtype
from oprack_nn.ops.precision import BFLOAT16, NAME, OUTPUT
from oprack_nn.ops.with_post_ops import WINDOW
from oprack_nn.passes.post_ops import CONVOLUTIONS, PRODUCTS, plain_product, product_attrs

from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.passes.int8 import known_attr

_CONVOLUTIONS = ("conv2d_post_ops", "onednn_conv2d_chain", "onednn_pointwise_conv2d")


def said(graph: Graph) -> int:
    """Layers of a model that says of some that they round: each says what it does, before others are fused with it."""
    layers = [op for op in graph.ops if op.type in (*CONVOLUTIONS, *PRODUCTS)]
    if not LIBRARY.has_bfloat16() or not any(op.attr(NAME) == BFLOAT16 for op in layers):
        return 0
    return sum(
        (_as_fused if op.type in CONVOLUTIONS else _as_fused_product)(graph, op, {NAME: op.attr(NAME, "float32")})
        for op in layers
        if not _is_depthwise(op)
    )


def _is_depthwise(op: OpNode) -> bool:
    """Whether it is a convolution that multiplies in float32 whatever it says."""
    shape = op.inputs["Filter"][0].shape if op.type in CONVOLUTIONS else None
    return shape is not None and shape[1] == 1


def _mark(graph: Graph, types: Collection[str]) -> int:
    """Set the attribute of all ops of some types that have none, where this CPU has the instructions."""
    if not LIBRARY.has_bfloat16():
        return 0
    chosen = [op for op in graph.ops if op.type in types and op.attr(NAME) is None]
    for op in chosen:
        op.desc.set_attr(NAME, BFLOAT16)
    return len(chosen)


def convolutions(graph: Graph) -> int:
    """Convolutions, fused with what follows them or not."""
    return _mark(graph, (*_CONVOLUTIONS, "onednn_upsampled_conv2d"))


def transposed(graph: Graph) -> int:
    """Transposed convolutions that are products of pixels."""
    return _mark(graph, ("onednn_conv2d_transpose_pair",))


def first(graph: Graph) -> int:
    """Convolutions that no pass has rewritten yet, before others are for float32."""
    if not LIBRARY.has_bfloat16():
        return 0
    return sum(_as_fused(graph, op) for op in graph.ops if op.type in CONVOLUTIONS) + convolutions(graph)


def _as_fused(graph: Graph, op: OpNode, more: Mapping[str, str] = MappingProxyType({})) -> bool:
    """Put the op that may round, with more attributes, in place of a convolution that nothing was fused with."""
    x, w, out = op.input("Input"), op.input("Filter"), op.output("Output")
    if op.opaque or x is None or w is None or out is None or not one_dtype([x, w, out]) or out.dtype != "float32":
        return False
    if (
        graph.constant(w) is None
        or op.input("ResidualData") is not None
        or known_attr(graph, op, "data_format") == "NHWC"
    ):
        return False
    attrs = {name: known_attr(graph, op, name) for name in WINDOW} | dict(more)
    graph.add_op("conv2d_post_ops", {"Input": [x], "Filter": [w]}, {"Output": [out]}, attrs, before=op)
    graph.remove_op(op)
    return True


def _as_fused_product(graph: Graph, op: OpNode, more: Mapping[str, str]) -> bool:
    """The same of a product with a weight."""
    x, w, out = op.input("X"), op.input("Y"), op.output("Out")
    if op.opaque or x is None or w is None or out is None or not one_dtype([x, w, out]) or out.dtype != "float32":
        return False
    if graph.constant(w) is None or not plain_product(op):
        return False
    attrs = product_attrs(op) | {"post_ops": [], **more}
    graph.add_op("matmul_post_ops", {"X": [x], "Y": [w]}, {"Out": [out]}, attrs, before=op)
    graph.remove_op(op)
    return True


def products(graph: Graph) -> int:
    """Fused products with weights."""
    return _mark(graph, ("matmul_post_ops",))


def join(graph: Graph) -> int:
    """Results that only such convolutions read are bfloat16."""
    return sum(_join(graph, op) for op in graph.ops if _multiplies(op, -1))


def _multiplies(op: OpNode, layer: int) -> bool:
    """Whether a convolution, of a chain the one of that number, multiplies in bfloat16.

    A depthwise one does not, nor does one whose input is scaled before.
    """
    if op.type not in _CONVOLUTIONS or op.opaque or op.attr(NAME) != BFLOAT16 or op.input("InputScale") is not None:
        return False
    shape = op.inputs["Filter"][layer].shape
    return shape is not None and len(shape) == 4 and shape[1] > 1


def _join(graph: Graph, op: OpNode) -> bool:
    node = op.outputs["Output"][0]
    if op.attr(OUTPUT) == BFLOAT16 or graph.is_kept(node) or graph.is_overwritten(node) or not node.consumers:
        return False
    if not all(_takes(reader, node) for reader in node.consumers):
        return False
    readers, new = node.consumers, graph.new_var(node.name)
    graph.add_op(op.type, op.inputs, {"Output": [new]}, {**op.desc.attrs, OUTPUT: BFLOAT16}, before=op)
    for reader in readers:
        graph.replace_input(reader, node, new)
    graph.remove_op(op)
    return True


def _takes(op: OpNode, node: VarNode) -> bool:
    """Whether an op reads a value as images alone: what it multiplies, or adds to its sums."""
    slots = {slot for slot, nodes in op.inputs.items() if node in nodes}
    return _multiplies(op, 0 if "Input" in slots else -1) and slots <= {"Input", "Residual"}

"""Layers that integers would make slower: convolutions of maps that were enlarged.

A convolution of a sum or concatenation with enlarged maps is computed at their own resolution in floats, with fewer
products (onednn_upsampled_conv2d), together with the 1x1 convolutions that make these maps. What is rounded in between
has to be made at the full size.
"""

from __future__ import annotations

from collections.abc import Collection

from oprack.ir import OpNode, VarNode

from oprack_quantization.post_training.layers import CONVOLUTIONS, Layer

_ENLARGING = ("nearest_interp", "nearest_interp_v2")
_COMBINING = ("elementwise_add", "concat", "elementwise_mul")
# How far back from a convolution maps are looked for.
_DEPTH = 12


def of_enlarged_maps(layers: Collection[Layer]) -> set[Layer]:
    """The layers that are computed at a lower resolution in floats, and those that make what they read."""
    by_op = {layer.op: layer for layer in layers if layer.op.type in CONVOLUTIONS}
    found: set[Layer] = set()
    for layer in by_op.values():
        if not _slides(layer):
            continue
        seen: set[OpNode] = set()
        _walk(layer.x, seen, _DEPTH)
        if any(op.type in _ENLARGING for op in seen):
            makers = (by_op[op] for op in seen if op in by_op)
            found.update([layer, *(maker for maker in makers if maker.w.shape[2:] == (1, 1))])
    return found


def _slides(layer: Layer) -> bool:
    """Whether its window of 3 or 1 moves pixel by pixel over all channels."""
    plain = all(n == 1 for name in ("strides", "dilations") for n in layer.op.attr(name, [1, 1]))
    return plain and layer.op.attr("groups", 1) == 1 and layer.w.shape[2:] in ((1, 1), (3, 3))


def _walk(node: VarNode, seen: set[OpNode], depth: int) -> None:
    """Note the ops of which a map is put together, up to and with those that make its parts."""
    op = node.producer
    if op is None or op in seen or not depth:
        return
    seen.add(op)
    if op.type in (*_COMBINING, *_ENLARGING):
        for x in op.reads():
            _walk(x, seen, depth - 1)

"""Layers that integers would make slower: convolutions of maps that were enlarged.

A convolution of a sum or concatenation with enlarged maps is computed at their own resolution in floats, with fewer
products (onednn_upsampled_conv2d), together with the 1x1 convolutions that make these maps, and with those before them
that become one with them. What is rounded in between has to be made at the full size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

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
            makers = [by_op[op] for op in seen if op in by_op and by_op[op].w.shape[2:] == (1, 1)]
            found.update([layer, *makers, *(before for maker in makers for before in _merged(maker, by_op))])
    return found


def _merged(layer: Layer, by_op: Mapping[OpNode, Layer]) -> Iterator[Layer]:
    """The 1x1 convolution that a 1x1 convolution reads, perhaps with a bias, where their product has fewer weights."""
    op = layer.x.producer
    if op is not None and op.type == "elementwise_add" and any(n.persistable for n in op.reads()):
        op = next((n.producer for n in op.reads() if not n.persistable), None)
    before = None if op is None else by_op.get(op)
    if before is not None and before.w.shape[2:] == (1, 1) and _slides(before) and len(before.y.consumers) == 1:
        if layer.w.shape[0] * before.w.shape[1] < layer.w.size + before.w.size:
            yield before


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

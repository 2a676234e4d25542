"""Ops that make little of much run right after what they read is made, while it is in the caches."""

from __future__ import annotations

from oprack.ir import Graph, OpNode, VarNode

# op type -> the input slot that is large
_LARGE = {
    **{"conv2d": "Input", "depthwise_conv2d": "Input", "conv2d_post_ops": "Input", "onednn_pointwise_conv2d": "Input"},
    **{"pool2d": "X", "onednn_squeeze_excite": "X"},
}


def read_early(graph: Graph) -> int:
    """Convolutions to fewer channels, and means of channels, as early as can be; their inputs can go sooner, too."""
    count = 0
    for op in graph.ops:
        maker = _maker(graph, op) if op.type in _LARGE else None
        if maker is not None:
            count += _move(graph, op, maker)
    return count


def _maker(graph: Graph, op: OpNode) -> OpNode | None:
    """What makes the one value that the op reads besides parameters; None where it doesn't make less of it."""
    x, out = op.input(_LARGE[op.type]), next(iter(op.writes()), None)
    if x is None or x.producer is None or out is None or op.opaque or op.hidden_reads or not _is_less(out, x):
        return None
    # A name that is written twice would be written in another order.
    if graph.is_overwritten(x) or any(len(graph.versions(n.name)) > 1 for n in op.writes()):
        return None
    return x.producer if all(n is x or graph.constant(n) is not None for n in op.reads()) else None


def _is_less(out: VarNode, x: VarNode) -> bool:
    """Whether fewer numbers, as far as the dims are known: an open dim counts as larger than any that is known."""
    made, given = out.expected_shape, x.expected_shape
    if made is None or given is None or len(made) != len(given):
        return False
    pairs = list(zip(made, given, strict=True))
    return all(b == -1 or 0 <= a <= b for a, b in pairs) and any(a >= 0 and (b == -1 or a < b) for a, b in pairs)


def _move(graph: Graph, op: OpNode, maker: OpNode) -> bool:
    ops = graph.ops
    after = ops[ops.index(maker) + 1]
    if after is op:
        return False
    moved = graph.add_op(op.type, op.inputs, op.outputs, op.desc.attrs, before=after)
    # The same op as far as random numbers and the mark of a target go.
    moved.desc.origin, moved.desc.is_target = op.desc.origin, op.desc.is_target
    graph.remove_op(op)
    return True

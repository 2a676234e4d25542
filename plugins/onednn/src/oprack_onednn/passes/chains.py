"""Element-wise ops in a row become one op, which goes over memory once."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oprack.ir import Graph, OpNode
from oprack.types import VarType
from oprack_nn.ops.post_ops import ACTIVATIONS, encode

# As many post-ops a primitive takes
_MOST = 32
# A primitive's call costs about as much as this many NumPy calls on small arrays ...
_WORTH = 8
# ... and less than a second pass over this many elements
_LARGE = 1 << 12
# What an open dim is taken for
_OPEN = 64


def chain_eltwise(graph: Graph) -> int:
    """Element-wise ops of one input in a row, and sums of a tensor with itself."""
    count, seen = 0, set()
    for op in graph.ops:
        # In the order of the program, so that an op is met first at the head of its chain.
        if op not in seen and _text(graph, op):
            chain = _chain(graph, op)
            seen.update(chain)
            for start in range(0, len(chain), _MOST):
                count += _replace(graph, chain[start : start + _MOST])
    return count


def _text(graph: Graph, op: OpNode) -> str | None:
    """The op as a post-op; None when it is none."""
    x, out = op.input("X"), op.output("Out")
    if x is None or out is None or op.opaque or op.hidden_writes or x.dtype != "float32":
        return None
    if any(n.desc is None or n.desc.type != VarType.LOD_TENSOR for n in (x, out)):
        return None
    given = [slot for slot, nodes in op.inputs.items() if nodes]
    if op.type == "elementwise_add" and op.input("Y") is x:
        return encode("scale", [2.0, 0.0, True])
    if op.type not in ACTIVATIONS or given != ["X"]:
        return None
    defaults = graph.manager.op_info(op.type).proto.attrs
    return encode(op.type, [op.attr(name, defaults[name].default) for name in ACTIVATIONS[op.type]])


def _chain(graph: Graph, op: OpNode) -> list[OpNode]:
    """The op and those that follow it one by one."""
    chain = [op]
    while True:
        out = chain[-1].outputs["Out"][0]
        readers = set(out.consumers)
        following = next(iter(readers), None)
        if following is None or len(readers) > 1 or graph.is_kept(out) or graph.is_overwritten(out):
            return chain
        if not _text(graph, following):
            return chain
        chain.append(following)


def _replace(graph: Graph, chain: Sequence[OpNode]) -> bool:
    """Put one op in place of a chain when that is worth it."""
    x, out = chain[0].inputs["X"][0], chain[-1].outputs["Out"][0]
    size = math.prod(_OPEN if n < 0 else n for n in x.expected_shape or ())
    if len(chain) < 2 or (len(chain) < _WORTH and size < _LARGE) or graph.is_overwritten(x):
        return False
    texts = [_text(graph, op) for op in chain]
    graph.add_op("onednn_eltwise", {"X": [x]}, {"Out": [out]}, {"post_ops": texts}, before=chain[-1])
    for op in reversed(chain):
        graph.remove_op(op)
    return True

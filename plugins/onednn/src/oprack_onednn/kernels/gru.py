"""gru with constant weights, not fused with the product in front: what only its gradient reads is left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array, KernelContext

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.parameters import Weights, is_constant
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.native import Attributes, MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._steps import run_reference
from oprack_onednn.kernels._walk import StepPrimitive, walk
from oprack_onednn.kernels.declare import onednn_kernel

GATES = {"sigmoid": "logistic", "tanh": "tanh", "relu": "relu"}


class GruStep(StepPrimitive):
    """Three products with everything else as their post-ops; gates u, r, c."""

    def __init__(self, n: int, size: int, gate: str, activation: str, origin_mode: bool) -> None:
        matrix, square = MemoryDesc.strided((n, size)), MemoryDesc.any((size, size))
        chain = self.chain = PrimitiveChain()
        h = chain.input(matrix)
        given = ("eltwise", _c.ELTWISE[GATES[gate]], 0.0, 0.0)
        add, sub, mul = (("binary", kind, matrix) for kind in (_c.BINARY_ADD, _c.BINARY_SUB, _c.BINARY_MUL))
        # h after = h + u (c - h), or with origin_mode h + (1 - u) (c - h)
        kept = [("eltwise", _c.ELTWISE["linear"], -1.0, 1.0)] if origin_mode else []
        candidate = ("eltwise", _c.ELTWISE[GATES[activation]], 0.0, 0.0)
        chains = ([add, given, *kept], [add, given, mul], [add, candidate, sub, mul, add])
        descs = [primitive_desc("matmul", LIBRARY.engine, matrix, square, None, matrix, Attributes(c)) for c in chains]
        # Weight is a buffer: [size, 2 size] for u and r, then [size, size] for c
        shape, wide = (size, size), (2 * size, 1)
        views = ((wide, 0), (wide, size), ((size, 1), 2 * size * size))
        targets = [d.desc(_c.QUERY_WEIGHTS_MD) for d in descs]
        self.weights = [
            Weights(MemoryDesc.strided(shape, strides), target, offset)
            for (strides, offset), target in zip(views, targets, strict=True)
        ]
        w = [chain.input(target) for target in targets]
        x = [chain.input(matrix) for _ in range(3)]
        after = chain.output(matrix)
        u, rh = chain.temporary(matrix), chain.temporary(matrix)

        def post(i: int) -> int:
            return _c.POST_OP * (i + 1) | _c.SRC_1

        chain.add(descs[0], {_c.SRC: h, _c.WEIGHTS: w[0], _c.DST: u, post(0): x[0]})
        chain.add(descs[1], {_c.SRC: h, _c.WEIGHTS: w[1], _c.DST: rh, post(0): x[1], post(2): h})
        chain.add(
            descs[2],
            {_c.SRC: rh, _c.WEIGHTS: w[2], _c.DST: after, post(0): x[2], post(2): h, post(3): u, post(4): h},
        )


def _fits(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, offsets: Sequence[int]) -> bool:
    """Whether the arrays have the sizes of a GRU's; NumPy's kernel says what is wrong where they have not."""
    size = weight.shape[0]
    if weight.shape != (size, 3 * size) or x.shape[1:] != (3 * size,) or (bias is not None and bias.size != 3 * size):
        return False
    return x.size > 0 and offsets[-1] == len(x)


@onednn_kernel("gru")
def gru(
    Input: Array,
    Weight: Array,
    H0: Array | None = None,
    Bias: Array | None = None,
    *,
    activation: str,
    gate_activation: str,
    is_reverse: bool,
    origin_mode: bool,
    ctx: KernelContext,
) -> tuple[Array | None, ...]:
    if not is_constant(Weight) or ctx.is_read("BatchGate", "BatchResetHiddenPrev", "BatchHidden"):
        return NotImplemented
    if any(a is not None and a.dtype != FLOAT for a in (Input, Weight, H0, Bias)):
        return NotImplemented
    hidden, lod = None, ctx.lod("Input")
    if activation in GATES and gate_activation in GATES and lod and _fits(Input, Weight, Bias, lod[-1]):
        key = (Weight.shape[0], gate_activation, activation, origin_mode)
        bias = None if Bias is None else Bias.reshape(-1)
        hidden = walk(GruStep, key, Input, Weight, bias, [H0], lod[-1], is_reverse)
    if hidden is None:
        arrays = {"Input": Input, "Weight": Weight, "H0": H0, "Bias": Bias}
        # What oneDNN does not serve is computed here rather than declined, so that the outputs are the same ones.
        hidden = [run_reference("gru", arrays, ctx.attrs, {"Input": [lod]})[3]]
    # always the same: plans of programs count on which outputs there are
    return None, None, None, hidden[0]

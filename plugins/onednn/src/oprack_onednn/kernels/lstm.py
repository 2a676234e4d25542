"""lstm with constant weights, not fused with the product in front: what only its gradient reads is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
from oprack_onednn.kernels.gru import GATES

if TYPE_CHECKING:
    from oprack_onednn.dnnl.native import Memory
    from oprack_onednn.dnnl.operands import External


class LstmStep(StepPrimitive):
    """Four products with everything else as their post-ops; gates c', i, f, o, states h, c."""

    def __init__(self, n: int, size: int, gate: str, activation: str, candidate: str) -> None:
        matrix, square = MemoryDesc.strided((n, size)), MemoryDesc.any((size, size))
        chain = self.chain = PrimitiveChain()
        h, c = chain.input(matrix), chain.input(matrix)
        gated, new = (("eltwise", _c.ELTWISE[GATES[a]], 0.0, 0.0) for a in (gate, candidate))
        add, mul = (("binary", kind, matrix) for kind in (_c.BINARY_ADD, _c.BINARY_MUL))
        # f c, then i, then c after = c' i + f c, then h after = o activation(c after)
        chains = {2: [add, gated, mul], 1: [add, gated], 0: [add, new, mul, add], 3: [add, gated, mul]}
        descs = [
            primitive_desc("matmul", LIBRARY.engine, matrix, square, None, matrix, Attributes(chains[k]))
            for k in range(4)
        ]
        targets = [d.desc(_c.QUERY_WEIGHTS_MD) for d in descs]
        source = MemoryDesc.strided((size, size), (4 * size, 1))
        self.weights = [Weights(source, target, k * size) for k, target in enumerate(targets)]
        w = [chain.input(target) for target in targets]
        x = [chain.input(matrix) for _ in range(4)]
        h_after, c_after = chain.output(matrix), chain.output(matrix)
        kept, i, seen = (chain.temporary(matrix) for _ in range(3))

        def product(k: int, result: External | Memory, *more: tuple[int, External | Memory]) -> None:
            operands = {_c.POST_OP * (at + 1) | _c.SRC_1: m for at, m in ((0, x[k]), *more)}
            chain.add(descs[k], {_c.SRC: h, _c.WEIGHTS: w[k], _c.DST: result, **operands})

        product(2, kept, (2, c))
        product(1, i)
        product(0, c_after, (2, i), (3, kept))
        kind = (_c.FORWARD_INFERENCE, _c.ELTWISE[GATES[activation]])
        show = primitive_desc("eltwise_forward", LIBRARY.engine, *kind, matrix, matrix, 0.0, 0.0, Attributes())
        chain.add(show, {_c.SRC: c_after, _c.DST: seen})
        product(3, h_after, (2, seen))


def _fits(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, offsets: Sequence[int]) -> bool:
    """Whether the arrays have the sizes of an LSTM's; NumPy's kernel says what is wrong where they have not."""
    size = weight.shape[0]
    if weight.shape != (size, 4 * size) or x.shape[1:] != (4 * size,) or bias.size != 4 * size:
        return False
    return x.size > 0 and offsets[-1] == len(x)


@onednn_kernel("lstm")
def lstm(
    Input: Array,
    Weight: Array,
    Bias: Array,
    H0: Array | None = None,
    C0: Array | None = None,
    *,
    use_peepholes: bool,
    is_reverse: bool,
    gate_activation: str,
    cell_activation: str,
    candidate_activation: str,
    ctx: KernelContext,
) -> tuple[Array | None, ...]:
    if not is_constant(Weight) or ctx.is_read("BatchGate", "BatchCellPreAct"):
        return NotImplemented
    if any(a is not None and a.dtype != FLOAT for a in (Input, Weight, Bias, H0, C0)):
        return NotImplemented
    states, lod = None, ctx.lod("Input")
    activations = (gate_activation, cell_activation, candidate_activation)
    served = not use_peepholes and all(a in GATES for a in activations)
    if served and lod and _fits(Input, Weight, Bias, lod[-1]):
        key = (Weight.shape[0], *activations)
        states = walk(LstmStep, key, Input, Weight, Bias.reshape(-1), [H0, C0], lod[-1], is_reverse)
    if states is None:
        arrays = {"Input": Input, "Weight": Weight, "Bias": Bias, "H0": H0, "C0": C0}
        states = run_reference("lstm", arrays, ctx.attrs, {"Input": [lod]})[:2]
    # always the same: plans of programs count on which outputs there are
    return *states, None, None

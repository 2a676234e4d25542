"""The primitive of a recurrent layer: one or several steps of time, in one or both directions."""

from __future__ import annotations

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.native import Attributes, MemoryDesc
from oprack_onednn.kernels._recurrent_layer import BOTH, GATES


class StepsPrimitive:
    """`steps` steps of n sequences in one or both directions.

    Operands: x, before, the weights of x and h, bias, peepholes if any, y, after, where `before` and `after` are none
    or h, or h and c of a cell with c. The rows of y are `wide` results apart.
    """

    def __init__(
        self,
        cell: str,
        steps: int,
        n: int,
        inputs: int,
        size: int,
        direction: int,
        before: bool,
        after: bool,
        wide: int,
    ) -> None:
        sides = 2 if direction == BOTH else 1
        of_weights, of_bias = GATES[cell]
        x = MemoryDesc.strided((steps, n, inputs))
        y = MemoryDesc.strided((steps, n, sides * size), (wide * n * size, wide * size, 1))
        weights = [MemoryDesc.strided((1, sides, rows, of_weights, size)) for rows in (inputs, size)]
        bias = MemoryDesc.strided((1, sides, of_bias, size))
        state = MemoryDesc.strided((1, sides, n, size))
        h, last = (state if given else None for given in (before, after))
        kind, options = cell, (_c.FORWARD_INFERENCE, direction)
        descs, numbers = (x, h, *weights, bias, y, last), (0,)
        has_cells, peepholes = cell in ("lstm", "peephole_lstm"), None
        if has_cells:
            if cell == "peephole_lstm":
                peepholes = MemoryDesc.strided((1, sides, 3, size))
            kind, descs = "lstm", (x, h, h, *weights, peepholes, None, bias, y, last, last)
        elif cell in ("relu", "tanh"):
            kind, options = "vanilla_rnn", (_c.FORWARD_INFERENCE, _c.ELTWISE[cell], direction)
            numbers = (0, 0.0, 0.0)
        # judged by its name the implementation is a slow one, yet it is products and gates in machine code
        desc = primitive_desc(
            f"{kind}_forward", LIBRARY.engine, *options, *descs, *numbers, Attributes(), any_speed=True
        )
        chain = self.chain = PrimitiveChain()
        count = 1 + has_cells
        memory = {_c.SRC: chain.input(x)}
        memory |= {arg: chain.input(state) for arg in (_c.SRC_1, _c.SRC_2)[: count if before else 0]}
        memory |= {
            _c.WEIGHTS: chain.input(weights[0]),
            _c.WEIGHTS_1: chain.input(weights[1]),
            _c.BIAS: chain.input(bias),
        }
        if peepholes:
            memory[_c.WEIGHTS_2] = chain.input(peepholes)
        memory[_c.DST] = chain.output(y)
        memory |= {arg: chain.output(state) for arg in (_c.DST_1, _c.DST_2)[: count if after else 0]}
        chain.add(desc, memory)

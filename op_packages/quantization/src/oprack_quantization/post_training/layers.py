"""The layers of a program that can be quantised: convolutions and products with a weight."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from oprack.ir import Graph, OpNode, VarNode
from oprack.ir.generic import fold_constants

CONVOLUTIONS = ("conv2d", "depthwise_conv2d")
PRODUCTS = ("mul", "matmul", "matmul_v2")
OPS = (*CONVOLUTIONS, *PRODUCTS)


@dataclass(eq=False)
class Layer:
    """One op with its weight.

    Attributes:
        op: The op.
        slot, out: Slots of its input and its output.
        weight_slot: The slot of its weight.
        w: The weight.
        axis: The dim of w along which its channels of the result lie.
    """

    op: OpNode
    slot: str
    out: str
    weight_slot: str
    w: np.ndarray
    axis: int

    @property
    def x(self) -> VarNode:
        """What it reads."""
        return self.op.inputs[self.slot][0]

    @property
    def y(self) -> VarNode:
        """What it writes."""
        return self.op.outputs[self.out][0]

    @property
    def weight(self) -> VarNode:
        """The variable of its weight."""
        return self.op.inputs[self.weight_slot][0]


def fold_weights(graph: Graph) -> None:
    """Compute weights that a program makes of parameters, as Paddle's Conv1D does by unsqueeze2, so that they are some.

    Those that are kept as integers already stay so.
    """
    wanted: set[OpNode] = set()
    for op in graph.ops:
        if op.type in OPS and (weight := op.input(_slots(op)[2])) is not None:
            chain = _makers(weight)
            if not any("quantize" in maker.type for maker in chain):
                wanted |= chain
    fold_constants(graph, [op for op in graph.ops if op in wanted])


def _makers(node: VarNode) -> set[OpNode]:
    """The ops that a variable is computed by."""
    found: set[OpNode] = set()
    left = [node]
    while left:
        op = left.pop().producer
        if op is not None and op not in found:
            found.add(op)
            left += op.reads()
    return found


def layers_of(graph: Graph, ops: Collection[str]) -> tuple[list[Layer], dict[str, str]]:
    """The layers of some op types, in the program's order; and why other ops of these types are none, by output."""
    layers, others = [], {}
    for op in graph.ops:
        if op.type not in ops:
            continue
        found = _layer(op, graph)
        if isinstance(found, Layer):
            layers.append(found)
        else:
            out = op.output(_slots(op)[1])
            others["?" if out is None else out.name] = f"{op.type}: {found}"
    return layers, others


def _slots(op: OpNode) -> tuple[str, str, str]:
    return ("Input", "Output", "Filter") if op.type in CONVOLUTIONS else ("X", "Out", "Y")


def _layer(op: OpNode, graph: Graph) -> Layer | str:
    """The layer of an op, or why it is none."""
    slots = _slots(op)
    x, out, weight = op.input(slots[0]), op.output(slots[1]), op.input(slots[2])
    if op.opaque or op.hidden_reads or x is None or out is None or weight is None:
        return "it has attributes from variables, or lacks an input"
    if x.persistable or graph.is_overwritten(x):
        return f"its input {x.name!r} is a parameter, or written in place"
    w = graph.constant_array(weight)
    if w is None:
        maker = "an input" if weight.producer is None else f"computed by op {weight.producer.type}"
        return f"its weight {weight.name!r} is no parameter, but {maker}"
    rank = 4 if op.type in CONVOLUTIONS else 2
    if w.dtype != np.float32 or w.ndim != rank or not w.size or not np.isfinite(w).all():
        return f"its weight {weight.name!r} is {w.dtype} of shape {list(w.shape)}, not finite float32 of {rank} dims"
    if op.type in PRODUCTS and not _plain(op):
        return f"it transposes or scales its weight {weight.name!r}"
    return Layer(op, *slots, w, 0 if rank == 4 else 1)


def _plain(op: OpNode) -> bool:
    """Whether a product takes its weight as it is."""
    swapped = any(op.attr(name, False) for name in ("transpose_Y", "trans_y"))
    others: list[tuple[str, Any]] = [("alpha", 1.0), ("head_number", 1), ("y_num_col_dims", 1)]
    return not swapped and all(op.attr(name, plain) == plain for name, plain in others)

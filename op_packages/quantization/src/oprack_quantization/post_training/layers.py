"""The layers of a program that can be quantised: convolutions and products with a weight."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from oprack.ir import Graph, OpNode, VarNode

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


def layers_of(graph: Graph, ops: Collection[str]) -> list[Layer]:
    """The layers of some op types, in the program's order."""
    found = (_layer(graph, op) for op in graph.ops if op.type in ops)
    return [layer for layer in found if layer is not None]


def _layer(graph: Graph, op: OpNode) -> Layer | None:
    if op.opaque or op.hidden_reads:
        return None
    slots = ("Input", "Output", "Filter") if op.type in CONVOLUTIONS else ("X", "Out", "Y")
    x, out, weight = op.input(slots[0]), op.output(slots[1]), op.input(slots[2])
    if x is None or out is None or weight is None or x.persistable or graph.is_overwritten(x):
        return None
    w = graph.constant_array(weight)
    rank = 4 if op.type in CONVOLUTIONS else 2
    if w is None or w.dtype != np.float32 or w.ndim != rank or not w.size or not np.isfinite(w).all():
        return None
    if op.type in PRODUCTS and not _plain(op):
        return None
    return Layer(op, *slots, w, 0 if rank == 4 else 1)


def _plain(op: OpNode) -> bool:
    """Whether a product takes its weight as it is."""
    swapped = any(op.attr(name, False) for name in ("transpose_Y", "trans_y"))
    others: list[tuple[str, Any]] = [("alpha", 1.0), ("head_number", 1), ("y_num_col_dims", 1)]
    return not swapped and all(op.attr(name, plain) == plain for name, plain in others)

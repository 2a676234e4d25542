"""What stands before and after a matrix product becomes part of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.ir import Fusion, Match, NewVar, OpNode, PatternBuilder, fusion

FLAGS = {"matmul": ("transpose_X", "transpose_Y"), "matmul_v2": ("trans_x", "trans_y")}


def _swaps_last_two(op: OpNode) -> bool:
    axis = list(op.attr("axis", ()))
    rank = len(axis)
    return rank > 1 and axis == [*range(rank - 2), rank - 1, rank - 2]


def _transposed(side: str) -> Fusion:
    def row(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
        swapped = p.op(("transpose", "transpose2"), X="swapped", where=_swaps_last_two)
        operands: dict[str, Any] = {"X": "x", "Y": "y"} | {side: swapped}
        root = p.op(tuple(FLAGS), **operands)

        def build(m: Match) -> NewVar | None:
            flag = FLAGS[m.root.type]["XY".index(side)]
            inputs = {slot: m["swapped"] if slot == side else m[slot.lower()] for slot in "XY"}
            if any(n.desc is None or n.desc.lod_level for n in inputs.values()):
                return None
            # the transpose refuses other ranks, and says to those who follow what the rank is; a flag does neither
            if m["swapped"].shape is None:
                return None
            return m.op(m.root.type, attrs=m.attrs(root) | {flag: not m.attr(root, flag)}, X=inputs["X"], Y=inputs["Y"])

        return root, build

    row.__doc__ = f"A transposed {side} of a matrix product -> its flag"
    return fusion(f"fold_transposed_{side.lower()}")(row)


fold_transpose_into_matmul = _transposed("X") + _transposed("Y")


@fusion("fold_scale_into_alpha")
def fold_scale_into_alpha(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """a (alpha X Y)  ->  (a alpha) X Y"""
    product = p.op("matmul", X="x", Y="y")
    root = p.op("scale", X=product, attrs={"bias": 0.0})

    def build(m: Match) -> NewVar:
        alpha = m.attr(product, "alpha") * m.attr(root, "scale")
        return m.op("matmul", X=m["x"], Y=m["y"], attrs=m.attrs(product) | {"alpha": alpha})

    return root, build

"""Definitions of logic on truth values."""

from __future__ import annotations

from oprack.op import InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.op.families import out_like_x
from oprack.op.sbp import unary

from oprack_math.ops._broadcast import AlignedBinary


# What logical ops of two inputs share; anything but 0 is true.
class Logical(AlignedBinary):
    """A logical op of two inputs that broadcast at their last dims."""

    Out = Output("bool, the broadcast shape, LoD of X.")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")


class LogicalAnd(Logical, type="logical_and"):
    r"""$$Out = X \wedge Y$$"""


class LogicalNot(OpDef, type="logical_not"):
    r"""$$Out = \neg X$$"""

    X = Input("Tensor of any shape.")
    Out = Output("bool, shape and LoD of X.")
    inplace = {"X": "Out"}
    make_grad = empty_grad
    sbp = unary
    infer_shape = out_like_x

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")


class LogicalOr(Logical, type="logical_or"):
    r"""$$Out = X \vee Y$$"""


class LogicalXor(Logical, type="logical_xor"):
    r"""$$Out = X \oplus Y$$"""

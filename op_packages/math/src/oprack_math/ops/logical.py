"""Logic on tensors of any dtype; anything but 0 is true."""

from __future__ import annotations

from oprack.op import Input, OpDef, Output, empty_grad

from oprack_math.ops._elementwise import broadcast_dims


class Logical(OpDef):
    """A logical op of two inputs that broadcast at their last dims."""

    X = Input("Tensor of any shape.")
    Y = Input("Tensor whose shape broadcasts with X's.")
    Out = Output("bool, the broadcast shape, LoD of X.")
    inplace = {"X": "Out"}
    make_grad = empty_grad

    def infer_shape(ctx):
        ctx.set_dim("Out", broadcast_dims(ctx.dim("X"), ctx.dim("Y"), -1, ctx.op_type))
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx):
        ctx.set_dtype("Out", "bool")


class LogicalAnd(Logical, type="logical_and"):
    r"""$$Out = X \wedge Y$$"""


class LogicalOr(Logical, type="logical_or"):
    r"""$$Out = X \vee Y$$"""


class LogicalXor(Logical, type="logical_xor"):
    r"""$$Out = X \oplus Y$$"""


class LogicalNot(OpDef, type="logical_not"):
    r"""$$Out = \neg X$$"""

    X = Input("Tensor of any shape.")
    Out = Output("bool, shape and LoD of X.")
    inplace = {"X": "Out"}
    make_grad = empty_grad

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx):
        ctx.set_dtype("Out", "bool")

"""What logical ops of two inputs share; anything but 0 is true."""

from __future__ import annotations

from oprack.op import Input, OpDef, Output, empty_grad

from oprack_math.ops._broadcast import broadcast_dims


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

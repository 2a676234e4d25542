"""What bitwise ops of two inputs share."""

from __future__ import annotations

from oprack.op import Input, OpDef, Output, empty_grad

from oprack_math.ops._broadcast import broadcast_dims


class Bitwise(OpDef):
    """An op on the bits of two inputs that broadcast at their last dims; of bools it is the logical op."""

    X = Input("Tensor of integers or bools, of any shape.")
    Y = Input("Tensor of X's dtype whose shape broadcasts with X's.")
    Out = Output("dtype of X, the broadcast shape, LoD of X.")
    inplace = {"X": "Out"}
    make_grad = empty_grad

    def infer_shape(ctx):
        ctx.set_dim("Out", broadcast_dims(ctx.dim("X"), ctx.dim("Y"), -1, ctx.op_type))
        ctx.share_lod("X", "Out")

"""What logical ops of two inputs share; anything but 0 is true."""

from __future__ import annotations

from oprack.op import InferVarTypeContext, Output

from oprack_math.ops._broadcast import AlignedBinary


class Logical(AlignedBinary):
    """A logical op of two inputs that broadcast at their last dims."""

    Out = Output("bool, the broadcast shape, LoD of X.")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")

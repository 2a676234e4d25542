"""as_real: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output

from oprack_math.ops.complex._family import part_of_x


class AsReal(OpDef, type="as_real"):
    r"""$$Out_{j,0} = \operatorname{Re} X_j,\quad Out_{j,1} = \operatorname{Im} X_j$$"""

    X = Input("Complex tensor of any shape.")
    Out = Output("Real, X's shape and a last dim of 2; LoD of X.")
    infer_var_type = part_of_x

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (*ctx.dim("X"), 2))
        if ctx.dim("X"):
            ctx.share_lod("X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("as_complex", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"))

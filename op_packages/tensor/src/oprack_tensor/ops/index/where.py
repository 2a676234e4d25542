"""where: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import elementwise


class Where(OpDef, type="where"):
    r"""$$Out_i = X_i$$ where $$Condition_i$$, else $$Y_i$$."""

    Condition = Input("bool, shape of X.")
    X = Input("Tensor of any shape.")
    Y = Input("Shape and type of X.")
    Out = Output("Shape and LoD of X.")
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")
    sbp = elementwise(("Condition", "X", "Y"), ("Out",), linear=(("X", "Y"),))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Y")
        ctx.same_dims("Condition", "X")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))


class WhereGrad(GradOpDef, of=Where, reads="Condition", shape_of="X Y", grads_of="X? Y?"):
    """X@GRAD is Out@GRAD where Condition is true, else 0; Y@GRAD the other way round."""

"""logical_not: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import unary


class LogicalNot(OpDef, type="logical_not"):
    r"""$$Out = \neg X$$"""

    X = Input("Tensor of any shape.")
    Out = Output("bool, shape and LoD of X.")
    inplace = {"X": "Out"}
    make_grad = empty_grad
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")

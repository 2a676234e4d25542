"""shape: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.types import VarType


class Shape(OpDef, type="shape"):
    r"""$$Out = (n_0, n_1, \ldots)$$: the dims of Input; of SelectedRows, those of the rows that it lists."""

    Input_ = Input("Tensor or SelectedRows of any shape.")
    Out = Output("int32 [rank of Input]")
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (len(ctx.dim("Input")),))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR)
        ctx.set_dtype("Out", "int32")

"""reduce_sum and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferVarTypeContext
from oprack.op.sbp import reduction

from oprack_math.ops._reduce import Reduce, linear_double_grad


class ReduceSum(Reduce, type="reduce_sum"):
    r"""$$Out = \sum_{dim} X$$ bool and int32 give int64, unless out_dtype says otherwise."""

    sbp = reduction("sum")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtype = ctx.dtype("X")
        if ctx.attr("out_dtype") >= 0:
            ctx.set_dtype("Out", ctx.attr("out_dtype"))
        else:
            ctx.set_dtype("Out", "int64" if dtype in ("bool", "int32") else dtype)


class ReduceSumGrad(GradOpDef, of=ReduceSum, shape_of="X"):
    r"""$$X@GRAD = Out@GRAD$$ for every element that was added."""

    make_grad = linear_double_grad("reduce_sum")

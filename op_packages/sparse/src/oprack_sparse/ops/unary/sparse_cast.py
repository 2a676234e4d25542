"""sparse_cast and its gradient."""

from __future__ import annotations

from oprack.op import Attr, InferVarTypeContext, dtype_of

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseCast(Unary, type="sparse_cast"):
    r"""$$out = x$$ with values, and integers of the pattern, of other dtypes."""

    index_dtype = Attr(-1, "dtype of the pattern as a number of VarType, int32 or int64; -1 keeps it.")
    value_dtype = Attr(-1, "dtype of the values as a number of VarType; -1 keeps it.")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", ctx.kind("x"))
        dtype = ctx.attr("value_dtype")
        ctx.set_dtype("out", ctx.dtype("x") if dtype < 0 else dtype)


class SparseCastGrad(GradFromX, of=SparseCast):
    r"""$$x@GRAD = out@GRAD$$ with x's pattern and dtypes."""

    expected_kernel_type = dtype_of("out@GRAD")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("x@GRAD", ctx.kind("x"))
        ctx.set_dtype("x@GRAD", ctx.dtype("x"))

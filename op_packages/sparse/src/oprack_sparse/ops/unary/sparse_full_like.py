"""sparse_full_like: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferVarTypeContext, Input, Output, dtype_of, empty_grad
from oprack.types import AttrType

from oprack_sparse.ops.unary._family import Unary


class SparseFullLike(Unary, type="sparse_full_like"):
    r"""$$out = value$$ where x lists an element."""

    x = Input("Sparse tensor.")
    ValueTensor = Input("One-element tensor that overrides `value`.", dispensable=True)
    out = Output("Sparse tensor of x's layout and pattern.")
    value = Attr(REQUIRED, "The number.", type=AttrType.FLOAT)
    dtype = Attr(-1, "dtype of the result as a number of VarType; -1 is that of x.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("x")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", ctx.kind("x"))
        dtype = ctx.attr("dtype")
        ctx.set_dtype("out", ctx.dtype("x") if dtype < 0 else dtype)

"""sparse_isnan: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferVarTypeContext, empty_grad

from oprack_sparse.ops.unary._family import Unary


class SparseIsnan(Unary, type="sparse_isnan"):
    r"""$$out = [x \ne x]$$: whether each listed element is NaN."""

    make_grad = empty_grad

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", ctx.kind("x"))
        ctx.set_dtype("out", "bool")

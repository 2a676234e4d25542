"""lu and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of

from oprack_linalg.ops._shapes import matrix_dims, smaller


class Lu(OpDef, type="lu"):
    r"""$$X = P L U$$ by Gaussian elimination with partial pivoting: row i was swapped with row Pivots[i]."""

    X = Input("[..., M, N].")
    Out = Output("Shape of X: U in the upper triangle, and below it L without its diagonal of ones; no LoD.")
    Pivots = Output("int32 [..., min(M, N)]: numbers of rows, counted from 1.")
    Infos = Output("int32 [...], [1] for a single matrix: 0, or the number of the first pivot that is zero.")
    pivots = Attr(True, "Whether rows may be swapped; always true.").check(
        lambda v: v is True, "True, since elimination without swaps has no kernel"
    )
    inplace = {"X": "Out"}

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = matrix_dims(ctx, "X")
        ctx.set_dim("Out", dims)
        ctx.set_dim("Pivots", (*dims[:-2], smaller(*dims[-2:])))
        ctx.set_dim("Infos", dims[:-2] or (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("Pivots", "int32")
        ctx.set_dtype("Infos", "int32")


class LuGrad(GradOpDef, of=Lu, reads="X Out Pivots Out@GRAD", shape_of="X", like={"X": "X"}):
    r"""$$X@GRAD = P L^{-T} (\operatorname{tril}_{-1}(L^T L@GRAD) + \operatorname{triu}(U@GRAD\,U^T)) U^{-T}$$

    for square X. L@GRAD and U@GRAD are the triangles of Out@GRAD. Rows below and columns beside the square part
    follow from it by one triangular system each.
    """

    expected_kernel_type = dtype_of("Out@GRAD")

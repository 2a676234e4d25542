"""matrix_rank: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad

from oprack_linalg.ops._shapes import joined_batch, matrix_dims, square_dims


class MatrixRank(OpDef, type="matrix_rank"):
    r"""$$Out = |\{i : \sigma_i > \max(tol, \epsilon \max(M, N)\,\sigma_{max})\}|$$

    $\sigma$ are the singular values of X. The term with $\epsilon$, the precision of the dtype, counts with
    `use_default_tol`, and TolTensor takes the place of `tol`.
    """

    X = Input("[..., M, N].")
    TolTensor = Input("Tolerances, whose shape broadcasts with X's batch dims.", dispensable=True)
    Out = Output("int32, X's batch dims, broadcast with TolTensor's shape.")
    tol = Attr(0.0, "The tolerance; ignored with `use_default_tol`.")
    hermitian = Attr(False, "X is symmetric: its eigenvalues, without sign, are the singular values.")
    use_default_tol = Attr(True, "Use the tolerance that follows from the dtype.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = square_dims(ctx, "X") if ctx.attr("hermitian") else matrix_dims(ctx, "X")
        tolerances = ctx.dim("TolTensor") if ctx.has_input("TolTensor") else ()
        ctx.set_dim("Out", joined_batch(ctx, dims[:-2], tolerances))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int32")

"""svd and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.op.sbp import leading
from oprack.types import real_dtype

from oprack_linalg.ops._shapes import matrix_dims, smaller


class Svd(OpDef, type="svd"):
    r"""$$X = U \operatorname{diag}(S) VH$$ with orthonormal columns of $U$ and rows of $VH$."""

    X = Input("[..., M, N].")
    U = Output("[..., M, K] with K = min(M, N), or [..., M, M] with `full_matrices`.")
    S = Output("[..., K]: singular values, the greatest one first.")
    VH = Output("[..., K, N], or [..., N, N] with `full_matrices`.")
    full_matrices = Attr(False, "Complete U and VH to square matrices.")
    sbp = leading(("X",), ("U", "S", "VH"), lambda ctx: len(ctx.dim("X")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        *batch, rows, columns = matrix_dims(ctx, "X")
        inner, full = smaller(rows, columns), ctx.attr("full_matrices")
        ctx.set_dim("U", (*batch, rows, rows if full else inner))
        ctx.set_dim("S", (*batch, inner))
        ctx.set_dim("VH", (*batch, columns if full else inner, columns))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("U", "VH"):
            ctx.set_dtype(slot, ctx.dtype("X"))
        ctx.set_dtype("S", real_dtype(ctx.dtype("X")))


class SvdGrad(GradOpDef, of=Svd, reads="X U S VH", shape_of="X"):
    r"""$$X@GRAD = U (\operatorname{diag}(S@GRAD) + E \circ (A - A^T) S + S\,E \circ (B - B^T)) VH$$

    with $A = U^T U@GRAD$, $B = VH\,VH@GRAD^T$, $E_{ij} = 1 / (S_j^2 - S_i^2)$ and $E_{ii} = 0$; where X is not square,
    $(I - U U^T) U@GRAD\,S^{-1} VH$ or $U S^{-1} VH@GRAD (I - VH^T VH)$ is added. Only the first K columns of U and
    rows of VH count. Singular values that are equal, or zero where X is not square, have no gradient.
    """

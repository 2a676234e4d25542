"""Definitions of factorizations."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import leading
from oprack.types import real_dtype

from oprack_linalg.ops._shapes import matrix_dims, smaller, square_dims


# cholesky and its gradient.
class Cholesky(OpDef, type="cholesky"):
    r"""$$X = L L^T$$ with Out = $L$, a lower triangle, or Out = $L^T$ with `upper`.

    X is taken for symmetric: its lower triangle is read, with `upper` its upper one.
    """

    X = Input("[..., N, N], symmetric and positive definite.")
    Out = Output("Shape of X, zero beside its triangle; no LoD.")
    upper = Attr(False, "Give the upper triangle.")
    sbp = leading(("X",), ("Out",), lambda ctx: len(ctx.dim("X")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", square_dims(ctx, "X"))


class CholeskyGrad(GradOpDef, of=Cholesky, reads="Out", like="Out"):
    r"""The symmetric matrix $$X@GRAD = \tfrac12 L^{-T} (\Phi + \Phi^T) L^{-1}$$

    $\Phi$ is the lower triangle of $L^T L@GRAD$ with half of its diagonal.
    """


# lu and its gradient.
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


# lu_unpack and its gradient.
class LuUnpack(OpDef, type="lu_unpack"):
    r"""The factors $P$, $L$ and $U$ of what lu gave, so that $P L U$ is the matrix that it factorized."""

    X = Input("[..., M, N]: Out of lu.")
    Pivots = Input("int32 [..., min(M, N)]: Pivots of lu.")
    Pmat = Output("[..., M, M], a permutation of rows; [0] without `unpack_pivots`.", stop_gradient=True)
    L = Output("[..., M, min(M, N)], a lower triangle with ones on its diagonal; [0] without `unpack_ludata`.")
    U = Output("[..., min(M, N), N], an upper triangle; [0] without `unpack_ludata`.")
    unpack_ludata = Attr(True, "Give L and U.")
    unpack_pivots = Attr(True, "Give Pmat.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = matrix_dims(ctx, "X")
        *batch, rows, columns = dims
        inner = smaller(rows, columns)
        ctx.require_dims("Pivots", (*batch, inner), why=f"one pivot for each step with matrices of X {list(dims)}")
        data, pivots = ctx.attr("unpack_ludata"), ctx.attr("unpack_pivots")
        ctx.set_dim("Pmat", (*batch, rows, rows) if pivots else (0,))
        ctx.set_dim("L", (*batch, rows, inner) if data else (0,))
        ctx.set_dim("U", (*batch, inner, columns) if data else (0,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Pmat", "L", "U"):
            ctx.set_dtype(slot, ctx.dtype("X"))


class LuUnpackGrad(
    GradOpDef,
    of=LuUnpack,
    reads="X Pivots L U Pmat L@GRAD U@GRAD",
    shape_of="X Pivots L U Pmat",
    grads_of="X",
):
    r"""$$X@GRAD = \operatorname{tril}_{-1}(L@GRAD) + \operatorname{triu}(U@GRAD)$$ padded with zeros to X's shape."""


# qr and its gradient.
class Qr(OpDef, type="qr"):
    r"""$$X = Q R$$ where $Q$ has orthonormal columns and $R$ is an upper triangle."""

    X = Input("[..., M, N].")
    Q = Output("[..., M, K] with K = min(M, N), or M when `mode` is complete; [0] when it is r.")
    R = Output("[..., K, N].")
    mode = Attr("reduced", "reduced, complete (Q is square), or r (no Q).").in_set({"reduced", "complete", "r"})
    sbp = leading(("X",), ("Q", "R"), lambda ctx: len(ctx.dim("X")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        *batch, rows, columns = matrix_dims(ctx, "X")
        inner = rows if ctx.attr("mode") == "complete" else smaller(rows, columns)
        ctx.set_dim("Q", (0,) if ctx.attr("mode") == "r" else (*batch, rows, inner))
        ctx.set_dim("R", (*batch, inner, columns))


class QrGrad(GradOpDef, of=Qr, reads="X Q R"):
    r"""$$X@GRAD = (Q@GRAD + Q \operatorname{sym}(M)) R^{-T},\quad M = R\,R@GRAD^T - Q@GRAD^T Q$$

    sym(M) is the lower triangle of M, mirrored. Of an X with more columns than rows this is the gradient of the square
    part $X_1 = Q R_1$; the other columns $X_2 = Q R_2$ get $Q\,R_2@GRAD$ and add $X_2 R_2@GRAD^T$ to Q@GRAD.
    """

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, mode = matrix_dims(ctx, "X"), ctx.attr("mode")
        tall = -1 not in dims[-2:] and dims[-2] > dims[-1]
        ctx.require(
            mode == "reduced" or (mode == "complete" and not tall),
            f"mode is {mode!r} and X has shape {list(dims)}; expected mode 'reduced', since without all of Q, or with "
            "columns of Q that X does not determine, there is no gradient",
        )
        ctx.set_dim("X@GRAD", dims)
        ctx.share_lod("X", "X@GRAD")


# svd and its gradient.
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

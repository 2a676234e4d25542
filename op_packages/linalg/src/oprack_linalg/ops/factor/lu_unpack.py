"""lu_unpack and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of

from oprack_linalg.ops._shapes import matrix_dims, smaller


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

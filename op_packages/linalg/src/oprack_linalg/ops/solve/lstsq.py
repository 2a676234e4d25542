"""lstsq: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, OpVersion, Output, empty_grad

from oprack_linalg.ops._shapes import matrix_dims, smaller


class Lstsq(OpDef, type="lstsq"):
    r"""$$\min_{Solution} \|Y - X\,Solution\|_2$$ the solution of the least norm where there are several.

    The drivers are LAPACK's names of methods. Here they differ only in what they give besides the solution.
    """

    X = Input("[..., M, N].")
    Y = Input("[..., M, K], batch dims as those of X.")
    Solution = Output("[..., N, K].")
    Residuals = Output("[..., K]: squared norms of Y - X Solution when M > N, or else [0].", dispensable=True)
    Rank = Output("int32 [...]: singular values above rcond times the greatest one; [0] with the driver gels.")
    SingularValues = Output("[..., min(M, N)] of X, the greatest one first; [0] with the drivers gels and gelsy.")
    rcond = Attr(0.0, "Singular values up to rcond times the greatest one count as zero.", support_tensor=True)
    driver = Attr("gels", "gels, gelsy, gelsd or gelss.").in_set({"gels", "gelsy", "gelsd", "gelss"})
    make_grad = empty_grad
    versions = OpVersion("lstsq").checkpoint("Squared norms of what is left over.", ("new_output", "Residuals", ""))

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y, driver = matrix_dims(ctx, "X"), matrix_dims(ctx, "Y"), ctx.attr("driver")
        *batch, rows, columns = x
        ctx.require_dims("Y", (*batch, rows, y[-1]), why=f"batch and rows of X, which has shape {list(x)}")
        overdetermined = rows > columns or -1 in (rows, columns)
        ctx.set_dim("Solution", (*batch, columns, y[-1]))
        ctx.set_dim("Residuals", (*batch, y[-1]) if overdetermined else (0,))
        ctx.set_dim("Rank", (0,) if driver == "gels" else batch)
        ctx.set_dim("SingularValues", (*batch, smaller(rows, columns)) if driver in ("gelsd", "gelss") else (0,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Solution", "Residuals", "SingularValues"):
            ctx.set_dtype(slot, ctx.dtype("X"))
        ctx.set_dtype("Rank", "int32")

"""Definitions of systems of equations."""

from __future__ import annotations

from oprack.op import (
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    empty_grad,
)
from oprack.op.sbp import leading

from oprack_linalg.ops._shapes import Dims, joined_batch, matrix_dims, smaller, square_dims


# Shapes of systems of equations with many right-hand sides.
def solution_dims(ctx: InferShapeContext, matrix: str, right: str) -> Dims:
    """Shape of the solution of a system, batch dims broadcast. Raises InvalidArgumentError when sizes don't fit."""
    a, b = square_dims(ctx, matrix), matrix_dims(ctx, right)
    ctx.require(
        a[-1] == b[-2] or -1 in (a[-1], b[-2]),
        f"{matrix} has shape {list(a)} and {right} {list(b)}; expected as many rows of {right} as {matrix} has columns",
    )
    x, y = (a, b) if matrix == "X" else (b, a)
    return (*joined_batch(ctx, x[:-2], y[:-2]), max(a[-1], b[-2]), b[-1])


# cholesky_solve and its gradient.
class CholeskySolve(OpDef, type="cholesky_solve"):
    r"""$$L L^T\,Out = X$$ where the triangle $L$ is Y, or $L^T$ is with `upper`; batch dims broadcast."""

    X = Input("[..., N, K].")
    Y = Input("[..., N, N]: Out of cholesky; the other triangle is not read.")
    Out = Output("[..., N, K]; no LoD.")
    upper = Attr(False, "Y is an upper triangle.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", solution_dims(ctx, "Y", "X"))


class CholeskySolveGrad(GradOpDef, of=CholeskySolve, reads="X Y Out", shape_of="X"):
    r"""$$X@GRAD = (L L^T)^{-1} Out@GRAD,\quad L@GRAD = \operatorname{tril}((A + A^T) L),\quad A = -X@GRAD\,Out^T$$

    summed over batch dims that were broadcast; with `upper`, Y@GRAD is the transpose of L@GRAD.
    """


# inverse and its gradient.
class Inverse(OpDef, type="inverse"):
    r"""$$Output = Input^{-1}$$"""

    Input_ = Input("[..., N, N], not singular.", name="Input")
    Output_ = Output("Shape of Input; no LoD.", name="Output")
    sbp = leading(("Input",), ("Output",), lambda ctx: len(ctx.dim("Input")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Output", square_dims(ctx, "Input"))


class InverseGrad(GradOpDef, of=Inverse, reads="Output", like="Output"):
    r"""$$Input@GRAD = -Output^T\,Output@GRAD\,Output^T$$"""


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
        ctx.set_dim("Solution", (*batch, columns, y[-1]))
        if -1 not in (rows, columns):
            ctx.set_dim("Residuals", (*batch, y[-1]) if rows > columns else (0,))
        elif not batch:  # or not even the number of dims is known
            ctx.set_dim("Residuals", (-1,))
        ctx.set_dim("Rank", (0,) if driver == "gels" else batch)
        ctx.set_dim("SingularValues", (*batch, smaller(rows, columns)) if driver in ("gelsd", "gelss") else (0,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Solution", "Residuals", "SingularValues"):
            ctx.set_dtype(slot, ctx.dtype("X"))
        ctx.set_dtype("Rank", "int32")


# solve and its gradient.
class Solve(OpDef, type="solve"):
    r"""$$X\,Out = Y$$ batch dims broadcast. A Y with one dim, or with the shape of X less its last dim, is vectors."""

    X = Input("[..., N, N], not singular.")
    Y = Input("[..., N, K], or vectors [..., N].")
    Out = Output("[..., N, K], or [..., N]; no LoD.")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = square_dims(ctx, "X"), tuple(ctx.dim("Y"))
        if len(y) == 1 or (len(y) == len(x) - 1 and all(-1 in (a, b) or a == b for a, b in zip(y, x, strict=False))):
            ctx.require(
                y[-1] == x[-1] or -1 in (x[-1], y[-1]),
                f"X has shape {list(x)} and Y {list(y)}; expected {x[-1]} numbers in each vector of Y",
            )
            ctx.set_dim("Out", x[:-1])
        else:
            ctx.set_dim("Out", solution_dims(ctx, "X", "Y"))


class SolveGrad(GradOpDef, of=Solve, reads="X Y Out", shape_of="Y"):
    r"""$$Y@GRAD = X^{-T} Out@GRAD,\quad X@GRAD = -Y@GRAD\,Out^T$$ summed over batch dims that were broadcast."""


# triangular_solve and its gradient.
class TriangularSolve(OpDef, type="triangular_solve"):
    r"""$$T\,Out = Y$$ for $T$, the upper or lower triangle of X, or its transpose; batch dims broadcast."""

    X = Input("[..., N, N]; the other triangle is not read.")
    Y = Input("[..., N, K].")
    Out = Output("[..., N, K]; no LoD.")
    upper = Attr(True, "Read the upper triangle of X, or else the lower one.")
    transpose = Attr(False, "Solve with the transpose of the triangle.")
    unitriangular = Attr(False, "Take the diagonal for ones and do not read it.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", solution_dims(ctx, "X", "Y"))


class TriangularSolveGrad(GradOpDef, of=TriangularSolve, reads="X Y Out", shape_of="Y"):
    r"""$$Y@GRAD = T^{-T} Out@GRAD,\quad T@GRAD = -Y@GRAD\,Out^T$$

    X@GRAD is the triangle of T@GRAD that was read (its transpose with `transpose`), summed over batch dims that were
    broadcast.
    """

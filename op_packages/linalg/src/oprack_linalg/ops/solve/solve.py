"""solve and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output

from oprack_linalg.ops._shapes import square_dims
from oprack_linalg.ops.solve._family import solution_dims


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

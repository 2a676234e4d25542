"""isclose: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, Output

from oprack_math.ops.compare._close import Close


class Isclose(Close, type="isclose"):
    r"""$$Out = [|Input - Other| \le atol + rtol \cdot |Other|]$$ To an infinity only itself is close."""

    Out = Output("bool, shape of Input.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Input", "Other")
        ctx.set_dim("Out", ctx.dim("Input"))

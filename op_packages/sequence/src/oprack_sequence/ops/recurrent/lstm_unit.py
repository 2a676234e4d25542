"""lstm_unit: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading


class LstmUnit(OpDef, type="lstm_unit"):
    r"""One step of a long short-term memory without peepholes; X holds the gates i, f, o, j before activation.

    $$C = C_{prev} \odot \sigma(f + forget\_bias) + \sigma(i) \odot \tanh(j), \quad H = \tanh(C) \odot \sigma(o)$$
    An op of Paddle 1.x.
    """

    X = Input("[B, 4 D]: columns of i, f, o, j.")
    C_prev = Input("Cell before the step, [B, D].")
    C = Output("Cell after the step, [B, D].")
    H = Output("State after the step, [B, D].")
    forget_bias = Attr(0.0, "Added to f.")

    sbp = leading(("X", "C_prev"), ("C", "H"))

    def infer_shape(ctx: InferShapeContext) -> None:
        batch, columns = ctx.require_rank("X", 2)
        size = ctx.require_rank("C_prev", 2)[1]
        ctx.require(
            min(columns, size) < 0 or columns == 4 * size,
            f"X has {columns} columns; expected four times the {size} columns of C_prev, {4 * size}",
        )
        ctx.set_dim("C", (batch, size))
        ctx.set_dim("H", (batch, size))


class LstmUnitGrad(GradOpDef, of=LstmUnit, reads="X C_prev C", lod=False):
    """Gradient of lstm_unit."""

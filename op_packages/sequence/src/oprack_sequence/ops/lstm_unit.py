"""lstm_unit: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output

from oprack_sequence.ops._infer import same_dim


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

    def infer_shape(ctx):
        batch, columns = ctx.require_rank("X", 2)
        size = ctx.require_rank("C_prev", 2)[1]
        ctx.require(
            min(columns, size) < 0 or columns == 4 * size,
            f"X has {columns} columns; expected four times the {size} columns of C_prev, {4 * size}",
        )
        ctx.set_dim("C", (batch, size))
        ctx.set_dim("H", (batch, size))

    def make_grad(fwd):
        return GradOp(
            "lstm_unit_grad",
            X=fwd.input("X"),
            C_prev=fwd.input("C_prev"),
            C=fwd.output("C"),
            C_grad=fwd.output_grad("C"),
            H_grad=fwd.output_grad("H"),
            X_grad=fwd.input_grad("X"),
            C_prev_grad=fwd.input_grad("C_prev"),
            attrs=fwd.attrs,
        )


class LstmUnitGrad(GradOpDef, type="lstm_unit_grad"):
    """Gradient of lstm_unit."""

    X = Input("As in lstm_unit.")
    C_prev = Input("As in lstm_unit.")
    C = Input("From lstm_unit.")
    C_grad = Input("Gradient of C.")
    H_grad = Input("Gradient of H.")
    X_grad = Output("Shape of X.")
    C_prev_grad = Output("Shape of C_prev.")
    forget_bias = Attr(0.0, "As in lstm_unit.")

    def infer_shape(ctx):
        same_dim(ctx, "X", "X@GRAD")
        same_dim(ctx, "C_prev", "C_prev@GRAD")

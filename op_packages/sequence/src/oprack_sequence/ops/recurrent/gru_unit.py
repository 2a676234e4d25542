"""gru_unit: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading


class GruUnit(OpDef, type="gru_unit"):
    r"""$$[u, r] = g([x_u, x_r] + h W_{ur}), \quad c = a(x_c + (r \odot h) W_c), \quad Hidden = (1 - u) \odot h + u
    \odot c$$

    or, with origin_mode, $$u \odot h + (1 - u) \odot c$$: one step of gru from h = HiddenPrev, x = Input + Bias.

    Activations g and a are numbers: 0 identity, 1 sigmoid, 2 tanh, 3 relu.
    """

    Input_ = Input("[B, 3 D]: what u, r and c take from the input.")
    HiddenPrev = Input("State before the step, [B, D].")
    Weight = Input("[D, 3 D], read as a buffer: W_ur [D, 2 D], then W_c [D, D].")
    Bias = Input("[1, 3 D].", dispensable=True)
    Gate = Output("[B, 3 D]: u, r, c.", intermediate=True)
    ResetHiddenPrev = Output("[B, D]: r HiddenPrev.", intermediate=True)
    Hidden = Output("State after the step, [B, D].")
    activation = Attr(2, "Of the candidate c.").in_set((0, 1, 2, 3))
    gate_activation = Attr(1, "Of the gates u and r.").in_set((0, 1, 2, 3))
    origin_mode = Attr(False, "Which of u and 1 - u keeps the old state.")

    sbp = leading(("Input", "HiddenPrev"), ("Gate", "ResetHiddenPrev", "Hidden"))

    def infer_shape(ctx: InferShapeContext) -> None:
        batch, columns = ctx.require_rank("Input", 2)
        size = ctx.require_rank("HiddenPrev", 2)[1]
        gates = 3 * size if size >= 0 else -1
        ctx.require_dims("Input", (-1, gates), why=f"for the {size} columns of HiddenPrev")
        ctx.require_dims("Weight", (size, gates), why=f"for the {size} columns of HiddenPrev")
        ctx.set_dim("Gate", (batch, columns))
        ctx.set_dim("ResetHiddenPrev", (batch, size))
        ctx.set_dim("Hidden", (batch, size))


class GruUnitGrad(GradOpDef, of=GruUnit, reads="Input HiddenPrev Weight Gate ResetHiddenPrev", shape_of="Bias"):
    """Gradient of gru_unit."""

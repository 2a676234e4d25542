"""gru: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import sequences

from oprack_sequence.ops._infer import ACTIVATIONS


class Gru(OpDef, type="gru"):
    r"""Gated recurrent unit over the rows of each sequence; Input holds what the gates take from the rows themselves.

    $$[u, r]_t = g([x_u, x_r]_t + h_{t-1} W_{ur}), \quad c_t = a(x_{c,t} + (r_t \odot h_{t-1}) W_c)$$
    $$h_t = (1 - u_t) \odot h_{t-1} + u_t \odot c_t$$ or, with origin_mode, $u_t \odot h_{t-1} + (1 - u_t) \odot c_t$,
    with g = gate_activation and a = activation.
    """

    Input_ = Input("[N, 3 D] with LoD: columns of u, r, c.")
    H0 = Input("Initial states [number of sequences, D]; zero when absent.", dispensable=True)
    Weight = Input("[D, 3 D], read as a buffer: W_ur [D, 2 D], then W_c [D, D].")
    Bias = Input("[1, 3 D], added to every row of Input.", dispensable=True)
    BatchGate = Output("[N, 3 D]: u, r, c in time-major order.", intermediate=True, extra=True)
    BatchResetHiddenPrev = Output("[N, D]: r h of the step before, time-major.", intermediate=True, extra=True)
    BatchHidden = Output("[N, D]: states in time-major order.", intermediate=True, extra=True)
    Hidden = Output("[N, D]: states, with the LoD of Input.")
    activation = Attr("tanh", "Of the candidate c.").in_set(ACTIVATIONS)
    gate_activation = Attr("sigmoid", "Of the gates u and r.").in_set(ACTIVATIONS)
    is_reverse = Attr(False, "Walk every sequence from its last row.")
    origin_mode = Attr(False, "Which of u and 1 - u keeps the old state.")
    is_test = Attr(False, "Has no effect on the result.", extra=True)
    sbp = sequences(("Input", "H0"), ("BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden"), ("H0",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("Input")
        rows, columns = ctx.require_rank("Input", 2)
        size = ctx.require_rank("Weight", 2)[0]
        ctx.require(
            columns < 0 or size < 0 or columns == 3 * size,
            f"Input has {columns} columns; expected three times the {size} rows of Weight, {3 * size}",
        )
        wide = -1 if size < 0 else 3 * size
        ctx.require_dims("Weight", (size, wide), why="three times as many columns as rows")
        ctx.require_dims("H0", (-1, size), why=f"as many columns as Weight has rows, {size}")
        ctx.require_dims("Bias", (1, wide), why="one element for each column of Weight")
        ctx.set_dim("BatchGate", (rows, 3 * size))
        for slot in ("BatchResetHiddenPrev", "BatchHidden", "Hidden"):
            ctx.set_dim(slot, (rows, size))
        ctx.share_lod("Input", "Hidden")


class GruGrad(
    GradOpDef,
    of=Gru,
    reads="H0 Weight BatchGate BatchResetHiddenPrev BatchHidden Hidden",
    shape_of="Input Bias",
    lod=False,
):
    """Gradient of gru: one walk back through time, then one product for each weight."""

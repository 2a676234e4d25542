"""Recurrent networks: over whole sequences, over padded batches, one step."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of
from oprack.op.sbp import leading, sequences

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
        ctx.set_dim("BatchGate", (rows, -1 if size < 0 else 3 * size))
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


class Lstm(OpDef, type="lstm"):
    r"""Long short-term memory over the rows of each sequence; Input holds what the gates take from the rows.

    $$[c', i, f, o]_t = x_t + h_{t-1} W + b, \quad c'_t = a_c(c'_t)$$
    $$i_t = g(i_t + p_i \odot c_{t-1}), \quad f_t = g(f_t + p_f \odot c_{t-1})$$
    $$c_t = f_t \odot c_{t-1} + i_t \odot c'_t, \quad o_t = g(o_t + p_o \odot c_t), \quad h_t = o_t \odot a_s(c_t)$$
    with g = gate_activation, a_c = candidate_activation, a_s = cell_activation; without use_peepholes p is zero.
    """

    Input_ = Input("[N, 4 D] with LoD: columns of c', i, f, o.")
    H0 = Input("Initial h [number of sequences, D]; zero when absent.", dispensable=True)
    C0 = Input("Initial c [number of sequences, D]; goes with H0.", dispensable=True)
    Weight = Input("[D, 4 D]: columns of c', i, f, o.")
    Bias = Input("[1, 4 D], or with use_peepholes [1, 7 D]: b, then p_i, p_f, p_o.")
    Hidden = Output("[N, D]: h, with the LoD of Input.")
    Cell = Output("[N, D]: c, with the LoD of Input.")
    BatchGate = Output("[N, 4 D]: the gates in time-major order.", intermediate=True, extra=True)
    BatchCellPreAct = Output("[N, D]: cell_activation(c) in time-major order.", intermediate=True, extra=True)
    use_peepholes = Attr(True, "Gates look at the cell.")
    is_reverse = Attr(False, "Walk every sequence from its last row.")
    is_test = Attr(False, "Has no effect on the result.")
    gate_activation = Attr("sigmoid", "Of i, f and o.").in_set(ACTIVATIONS)
    cell_activation = Attr("tanh", "Of the cell, on its way to h.").in_set(ACTIVATIONS)
    candidate_activation = Attr("tanh", "Of the candidate c'.").in_set(ACTIVATIONS)
    sbp = sequences(("Input", "H0", "C0"), ("Hidden", "Cell", "BatchGate", "BatchCellPreAct"), ("H0", "C0"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("Input")
        rows, columns = ctx.require_rank("Input", 2)
        size = ctx.require_rank("Weight", 2)[0]
        ctx.require(
            columns < 0 or size < 0 or columns == 4 * size,
            f"Input has {columns} columns; expected four times the {size} rows of Weight, {4 * size}",
        )
        ctx.require_dims("Weight", (size, -1 if size < 0 else 4 * size), why="four times as many columns as rows")
        for slot in ("H0", "C0"):
            ctx.require_dims(slot, (-1, size), why=f"as many columns as Weight has rows, {size}")
        ctx.require(ctx.has_input("H0") == ctx.has_input("C0"), "only one of H0 and C0 is given; expected both or none")
        expected = (7 if ctx.attr("use_peepholes") else 4) * size
        ctx.require_dims("Bias", (1, -1 if size < 0 else expected))
        ctx.set_dim("BatchGate", (rows, -1 if size < 0 else 4 * size))
        for slot in ("Hidden", "Cell", "BatchCellPreAct"):
            ctx.set_dim(slot, (rows, size))
        ctx.share_lod("Input", "Hidden")
        ctx.share_lod("Input", "Cell")


class LstmGrad(
    GradOpDef,
    of=Lstm,
    reads="Input H0 C0 Weight Bias Hidden Cell BatchGate BatchCellPreAct Hidden@GRAD Cell@GRAD?",
    lod=False,
):
    """Gradient through Hidden, and through Cell where a gradient of it is given, a slot that Paddle's op lacks."""

    expected_kernel_type = dtype_of("Hidden@GRAD")
    versions = OpVersion("lstm_grad").checkpoint("A gradient of Cell.", ("new_input", "Cell@GRAD", None))


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


class Lstmp(OpDef, type="lstmp"):
    r"""lstm whose state is projected before it goes on: $$r_t = a_p(h_t W_p)$$ takes the place of h in the gates.

    All else is as in lstm; the cell and the projection may be clipped. An op of Paddle 1.x.
    """

    Input_ = Input("[N, 4 D] with LoD: columns of c', i, f, o.")
    H0 = Input("Initial projection [number of sequences, P]; zero when absent.", dispensable=True)
    C0 = Input("Initial cell [number of sequences, D]; goes with H0.", dispensable=True)
    Weight = Input("[P, 4 D]: columns of c', i, f, o.")
    ProjWeight = Input("W_p [D, P].")
    Bias = Input("[1, 4 D], or with use_peepholes [1, 7 D]: b, then p_i, p_f, p_o.")
    Projection = Output("[N, P]: r, with the LoD of Input.")
    Cell = Output("[N, D]: c, with the LoD of Input.")
    BatchGate = Output("[N, 4 D]: the gates in time-major order.", intermediate=True)
    BatchCellPreAct = Output("[N, D]: cell_activation(c) in time-major order.", intermediate=True)
    BatchHidden = Output("[N, D]: h before the projection, in time-major order.", intermediate=True)
    use_peepholes = Attr(True, "Gates look at the cell.")
    is_reverse = Attr(False, "Walk every sequence from its last row.")
    cell_clip = Attr(0.0, "Bound of the cell's elements; 0 is none.")
    proj_clip = Attr(0.0, "Bound of the projection's elements; 0 is none.")
    gate_activation = Attr("sigmoid", "Of i, f and o.").in_set(ACTIVATIONS)
    cell_activation = Attr("tanh", "Of the cell, on its way to h.").in_set(ACTIVATIONS)
    candidate_activation = Attr("tanh", "Of the candidate c'.").in_set(ACTIVATIONS)
    proj_activation = Attr("tanh", "Of the projection.").in_set(ACTIVATIONS)
    sbp = sequences(
        ("Input", "H0", "C0"), ("Projection", "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden"), ("H0", "C0")
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("Input")
        rows, columns = ctx.require_rank("Input", 2)
        size, projected = ctx.require_rank("ProjWeight", 2)
        ctx.require(
            columns < 0 or size < 0 or columns == 4 * size,
            f"Input has {columns} columns; expected four times the {size} rows of ProjWeight, {4 * size}",
        )
        wide = -1 if size < 0 else 4 * size
        ctx.require_dims("Weight", (projected, wide), why=f"from the shape of ProjWeight, {[size, projected]}")
        ctx.require_dims("Bias", (1, wide * 7 // 4 if wide > 0 and ctx.attr("use_peepholes") else wide))
        ctx.require_dims("H0", (-1, projected), why=f"as many columns as ProjWeight, {projected}")
        ctx.require_dims("C0", (-1, size), why=f"as many columns as ProjWeight has rows, {size}")
        ctx.require(ctx.has_input("H0") == ctx.has_input("C0"), "only one of H0 and C0 is given; expected both or none")
        ctx.set_dim("Projection", (rows, projected))
        ctx.set_dim("BatchGate", (rows, -1 if size < 0 else 4 * size))
        for slot in ("Cell", "BatchCellPreAct", "BatchHidden"):
            ctx.set_dim(slot, (rows, size))
        ctx.share_lod("Input", "Projection")
        ctx.share_lod("Input", "Cell")


class LstmpGrad(
    GradOpDef,
    of=Lstmp,
    reads="H0 C0 Weight ProjWeight Bias Projection Cell BatchGate BatchCellPreAct BatchHidden Projection@GRAD "
    "Cell@GRAD?",
    like="BatchGate",
    lod=False,
):
    """Gradient through Projection, and through Cell where a gradient of it is given, a slot that Paddle's op lacks.

    Nothing flows back through elements that were clipped.
    """

    expected_kernel_type = dtype_of("Projection@GRAD")
    versions = OpVersion("lstmp_grad").checkpoint("A gradient of Cell.", ("new_input", "Cell@GRAD", None))

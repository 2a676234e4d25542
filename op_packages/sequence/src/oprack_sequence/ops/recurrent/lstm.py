"""lstm: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of
from oprack.op.sbp import sequences

from oprack_sequence.ops._infer import ACTIVATIONS


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
        ctx.set_dim("BatchGate", (rows, 4 * size))
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

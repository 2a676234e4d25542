"""lstmp: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of
from oprack.op.sbp import sequences

from oprack_sequence.ops._infer import ACTIVATIONS


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
        ctx.set_dim("BatchGate", (rows, 4 * size))
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

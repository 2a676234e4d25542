"""data_norm and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, ForwardOp, GradOp, GradOpDef, InferShapeContext, OpDef, OpVersion, dtype_of

from oprack_nn.ops._layout import layout_attr


class DataNorm(OpDef, type="data_norm"):
    r"""$$Y = (X - \frac{BatchSum}{BatchSize}) \sqrt{\frac{BatchSize}{BatchSquareSum}}$$ per column, then
    $$scale\_w \cdot Y + bias$$ with enable_scale_and_shift

    Counts and sums of all data so far take the place of a batch's statistics. With slot_dim d the columns are slots of
    d, whose first counts how often a feature was shown: a slot that was never shown gives zeros.
    """

    scale_w = op.Input("[C], with enable_scale_and_shift.", dispensable=True)
    bias = op.Input("[C], with enable_scale_and_shift.", dispensable=True)
    X = op.Input("[N, C].")
    BatchSize = op.Input("[C], rows so far.")
    BatchSum = op.Input("[C], their sum.")
    BatchSquareSum = op.Input("[C], the sum of their squared distances from the mean.")
    Y = op.Output("[N, C], LoD of X.")
    Means = op.Output("[C], the mean.", intermediate=True)
    Scales = op.Output("[C], one over the standard deviation.", intermediate=True)
    epsilon = Attr(1e-4, "Added to each square in the gradient of BatchSquareSum.")
    slot_dim = Attr(-1, "Columns of a slot; -1: one slot that is always shown.")
    summary_decay_rate = Attr(0.9999999, "Paddle: how its GPU kernel forgets old counts.")
    enable_scale_and_shift = Attr(False, "Apply scale_w and bias.")
    data_layout = layout_attr("NCHW")
    sync_stats = Attr(False, "Paddle: add the counts of all trainers.")
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    expected_kernel_type = dtype_of("X")
    versions = OpVersion("data_norm").checkpoint("Y may be scaled and shifted.", ("new_input", "scale_w", None))

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, width = ctx.require_rank("X", 2)
        affine = ("scale_w", "bias") if ctx.attr("enable_scale_and_shift") else ()
        for slot in ("BatchSize", "BatchSum", "BatchSquareSum", *affine):
            ctx.require(ctx.has_input(slot), f"{slot} is absent; enable_scale_and_shift needs it")
            ctx.require_dims(slot, (width,), why="a number for each column of X")
        slot_dim = ctx.attr("slot_dim")
        ctx.require(
            slot_dim <= 0 or width < 0 or width % slot_dim == 0,
            f"slot_dim is {slot_dim}; expected a divisor of {width}, the columns of X",
        )
        ctx.set_dim("Y", (rows, width))
        ctx.set_dim("Means", (width,))
        ctx.set_dim("Scales", (width,))
        ctx.share_lod("X", "Y")

    def make_grad(fwd: ForwardOp) -> GradOp:
        sums = ("BatchSize", "BatchSum", "BatchSquareSum")
        return GradOp(
            "data_norm_grad",
            scale_w=fwd.input("scale_w"),
            bias=fwd.input("bias"),
            X=fwd.input("X"),
            Means=fwd.output("Means"),
            Scales=fwd.output("Scales"),
            Y_grad=fwd.output_grad("Y"),
            attrs=fwd.attrs,
            slots={f"{s}@GRAD": fwd.input_grad(s) for s in ("X", *sums, "scale_w", "bias")},
            outputs={s: fwd.input(s) for s in sums},
        )


class DataNormGrad(GradOpDef, of=DataNorm, reads="scale_w bias X Means Scales Y@GRAD", shape_of="bias"):
    r"""$$X@GRAD = Y@GRAD \cdot scale\_w \cdot Scales$$ and, as what the counts grow by, $$BatchSize@GRAD = N, \;
    BatchSum@GRAD = \sum X, \; BatchSquareSum@GRAD = \sum (X - Means)^2 + N \cdot epsilon$$

    With slot_dim N and the sums leave out the rows that do not show a slot.
    """

    BatchSize = op.Output("Paddle: its GPU kernel adds to the counts here; not written.", dispensable=True)
    BatchSum = op.Output("Paddle: its GPU kernel adds to the sums here; not written.", dispensable=True)
    BatchSquareSum = op.Output("Paddle: its GPU kernel adds to the squares here; not written.", dispensable=True)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require(
            ctx.has_input("scale_w") or not ctx.attr("enable_scale_and_shift"),
            "scale_w is absent; enable_scale_and_shift needs it",
        )
        ctx.require_dims("Y@GRAD", ctx.dim("X"), why="the shape of X")
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
        for slot in ctx.proto.outputs:
            if slot != "X@GRAD":
                ctx.set_dim(slot, ctx.dim("Means"))

"""One row for each sequence or segment."""

from __future__ import annotations

from oprack.errors import UnimplementedError
from oprack.op import (
    REQUIRED,
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
)
from oprack.op.sbp import sequences
from oprack.types import AttrType, VarType

from oprack_sequence.ops._infer import same_as


class SegmentPool(OpDef, type="segment_pool"):
    r"""$$Out_s = \sum_{i : SegmentIds_i = s} X_i$$, or their mean, maximum or minimum; 0 for a segment that
    no row has.
    """

    X = Input("[N, ...].")
    SegmentIds = Input("Segment of each row, int32 or int64 [N], never decreasing, from 0 on.")
    Out = Output("[last segment + 1, ...].")
    SummedIds = Output("Rows of each segment, [last segment + 1, 1], of X's dtype.", intermediate=True)
    pooltype = Attr("SUM", "What to compute.").in_set(("SUM", "MEAN", "MAX", "MIN"))
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ids = ctx.value("SegmentIds")
        segments = -1 if ids is None else int(ids.reshape(-1)[-1]) + 1 if ids.size else 0
        ctx.require(segments >= 0 or ids is None, f"the last of SegmentIds is {segments - 1}; expected ids from 0 on")
        ctx.set_dim("Out", (segments, *ctx.dim("X")[1:]))
        ctx.set_dim("SummedIds", (segments, 1))


class SegmentPoolGrad(GradOpDef, of=SegmentPool, reads="X SegmentIds Out SummedIds?", grads_of="X"):
    """Spreads each row of the gradient over its segment; for MAX and MIN to every element equal to the result."""

    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Out", "Out@GRAD")
        same_as(ctx, "X", "X@GRAD")


class SequencePool(OpDef, type="sequence_pool"):
    r"""One row per sequence, from its $n$ rows $x_1 \dots x_n$:

    SUM $\sum x_i$, AVERAGE $\frac{1}{n}\sum x_i$, SQRT $\frac{1}{\sqrt n}\sum x_i$, MAX, LAST $x_n$, FIRST $x_1$;
    an empty sequence gives `pad_value`. The innermost level is pooled, the levels above it stay.
    """

    X = Input("[N, ...] with LoD.")
    Out = Output("[number of sequences, ...]; the LoD of X without its innermost level.")
    MaxIndex = Output("MAX while training: int32 row of X that each element came from, -1 if none.", intermediate=True)
    is_test = Attr(False, "Leave MaxIndex out.", extra=True)
    pooltype = Attr("AVERAGE", "What to compute.").in_set(("AVERAGE", "SUM", "SQRT", "LAST", "FIRST", "MAX"))
    pad_value = Attr(0.0, "Result of an empty sequence.")
    sbp = sequences(("X",), ("Out", "MaxIndex"), ("Out", "MaxIndex"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        dim = (-1, *ctx.dim("X")[1:])
        ctx.set_dim("Out", dim)
        ctx.set_lod_level("Out", max(ctx.lod_level("X") - 1, 0))
        if ctx.attr("pooltype") == "MAX" and not ctx.attr("is_test"):
            ctx.set_dim("MaxIndex", dim)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        if ctx.has_output("MaxIndex"):
            ctx.set_dtype("MaxIndex", VarType.INT32)


class SequencePoolGrad(
    GradOpDef,
    of=SequencePool,
    reads="MaxIndex?",
    shape_of="X",
    when={"MaxIndex": lambda fwd: fwd.attrs["pooltype"] == "MAX"},
):
    """Gradient of sequence_pool; an empty sequence passes nothing back."""

    def make_grad(fwd: ForwardOp) -> GradOp:
        if fwd.attrs["pooltype"] == "MAX":
            raise UnimplementedError(
                "op sequence_pool: pooltype is MAX, whose gradient has no gradient; expected SUM, AVERAGE, SQRT, LAST "
                "or FIRST, or a backward pass without create_graph"
            )
        outputs = {"Out": fwd.input_grad("Out@GRAD")}
        return GradOp("sequence_pool", inputs={"X": fwd.output_grad("X@GRAD")}, outputs=outputs, attrs=fwd.attrs)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require(
            ctx.attr("pooltype") != "MAX" or ctx.has_input("MaxIndex"),
            "MaxIndex is absent and pooltype MAX; expected that of sequence_pool, which gives it unless is_test is set",
        )
        same_as(ctx, "X", "X@GRAD")


# sequence_topk_avg_pooling (Paddle 1.x) and its gradient: all of the ops but their kernels.
class SequenceTopkAvgPooling(OpDef, type="sequence_topk_avg_pooling"):
    r"""$$Out^{(b)}_{i, c K + k} = \frac{1}{topks_k} \sum_{j \in top_{topks_k}} X^{(b)}_{c, i, j}$$

    For each row of an image and each channel the means of its greatest elements, K = len(topks) of them. Image b has as
    many rows and columns as sequence b of ROW and COLUMN; of a row that is shorter than k, all elements count, divided
    by k.
    """

    X = Input("Images [channel_num, rows, columns], one after the other, with LoD.")
    ROW = Input("Its LoD gives the rows of each image.")
    COLUMN = Input("Its LoD gives the columns of each image.")
    Out = Output("[rows of all images, channel_num x K], LoD of ROW.")
    pos = Output("int32, columns of the greatest elements, -1 where there is none.", intermediate=True)
    topks = Attr(REQUIRED, "How many elements each mean has, in ascending order.", type=AttrType.INTS)
    channel_num = Attr(REQUIRED, "Channels.", type=AttrType.INT).greater_than(0)

    def infer_shape(ctx: InferShapeContext) -> None:
        for slot in ("X", "ROW", "COLUMN"):
            ctx.require_lod(slot)
        topks = ctx.attr("topks")
        ctx.require(
            len(topks) > 0 and topks[0] > 0 and list(topks) == sorted(topks),
            f"topks is {list(topks)}; expected positive numbers in ascending order",
        )
        rows, channels = ctx.dim("ROW")[0], ctx.attr("channel_num")
        ctx.set_dim("Out", (rows, channels * len(topks)))
        ctx.share_lod("ROW", "Out")
        ctx.set_dim("pos", (-1 if rows < 0 else rows * channels * topks[-1],))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("pos", "int32")


class SequenceTopkAvgPoolingGrad(
    GradOpDef, of=SequenceTopkAvgPooling, reads="X ROW COLUMN pos Out@GRAD", shape_of="X ROW COLUMN", grads_of="X"
):
    """Each mean's gradient goes to its elements in equal parts."""

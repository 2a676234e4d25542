"""sequence_topk_avg_pooling (Paddle 1.x) and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import AttrType


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

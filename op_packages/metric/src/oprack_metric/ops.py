"""Definitions of the ops, without any array library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.op import (
    REQUIRED,
    Attr,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    KernelTypeContext,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.types import AttrType

if TYPE_CHECKING:
    from oprack.kernel import OpKernelType


class Accuracy(OpDef, type="accuracy"):
    r"""$$Accuracy = \frac{1}{N} \sum_i [Label_i \in Indices_i]$$: the share of the samples whose label is among their k
    best.
    """

    Out = Input("Scores of the k best classes [N, k]; only the dtype is read.")
    Indices = Input("The k best classes [N, k].")
    Label = Input("True class [N, 1].")
    Accuracy = Output("0-D float32.")
    Correct = Output("0-D int32: samples that are right.")
    Total = Output("0-D int32: samples.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Out")

    def infer_shape(ctx: InferShapeContext) -> None:
        indices, label = ctx.require_rank("Indices", 2), ctx.dim("Label")
        fits = len(label) in (1, 2) and (label[0] == indices[0] or -1 in (label[0], indices[0]))
        ctx.require(
            fits, f"Indices has shape {list(indices)} and Label {list(label)}; expected labels [{indices[0]}, 1]"
        )
        for slot in ("Accuracy", "Correct", "Total"):
            ctx.set_dim(slot, ())

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Accuracy", "float32")
        for slot in ("Correct", "Total"):
            ctx.set_dtype(slot, "int32")


class Auc(OpDef, type="auc"):
    r"""$$AUC = \sum_b n_b (P_b - \tfrac{1}{2} p_b) \Big/ \Big(\sum_b p_b \sum_b n_b\Big)$$, 0 where a class has no
    sample.

    Area under the ROC curve by trapezoids: p_b and n_b are the positive and negative samples whose score falls into bin
    b, and P_b the positive ones in bin b and above, over all batches or the last `slide_steps` of them. With
    slide_steps = s > 0 StatPos and StatNeg hold the histograms of s batches, their sum, and a count of batches.
    """

    Predict = Input("Scores in [0, 1], the last column counts: [N, 2] or [N, 1].")
    Label = Input("Positive samples are greater than 0 [N, 1].")
    StatPos = Input("Histogram of positive samples so far, int64.")
    StatNeg = Input("Histogram of negative samples so far, int64.")
    InsTagWeight = Input("A first element of 0 marks a batch that does not count.", dispensable=True)
    AUC = Output("0-D float64.")
    StatPosOut = Output("Updated StatPos.")
    StatNegOut = Output("Updated StatNeg.")
    curve = Attr("ROC", "Kept for old programs: the area is that under the ROC curve.").in_set(("ROC", "PR"))
    num_thresholds = Attr(2**13 - 1, "Bins of the histogram less one.").greater_than(0)
    slide_steps = Attr(1, "Batches that count; 0: all.").at_least(0)
    inplace = {"StatPos": "StatPosOut", "StatNeg": "StatNegOut"}
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Predict")
    versions = OpVersion("auc").checkpoint("several tasks in one batch", ("new_input", "InsTagWeight", None))

    def infer_shape(ctx: InferShapeContext) -> None:
        predict = ctx.require_rank("Predict", 2)
        ctx.require(predict[1] in (1, 2, -1), f"Predict has shape {list(predict)}; expected [N, 2] or [N, 1]")
        ctx.set_dim("AUC", ())
        bins, steps = ctx.attr("num_thresholds") + 1, ctx.attr("slide_steps")
        for slot in ("StatPosOut", "StatNegOut"):
            ctx.set_dim(slot, (bins * (steps + 1) + 1,) if steps else (1, bins))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("AUC", "float64")
        for slot in ("StatPosOut", "StatNegOut"):
            ctx.set_dtype(slot, "int64")


_RATES = ("Precision", "Recall", "F1-Score")

_COUNTS = ("NumInferChunks", "NumLabelChunks", "NumCorrectChunks")


class ChunkEval(OpDef, type="chunk_eval"):
    r"""$$Precision = \frac{correct}{inferred}, \; Recall = \frac{correct}{labelled}, \; F1 = \frac{2 P R}{P + R}$$

    of chunks in tagged sequences: one is correct when its begin, end and type agree. Each is 0 where it would be 0 / 0.

    A tag is type * tags of the scheme + position in the chunk; the largest one is "outside". Tags of the schemes: IOB
    begin, inside; IOE inside, end; IOBES begin, inside, end, single; plain one only.
    """

    Inference = Input("Predicted tags: [N, 1] with LoD, or [B, T] with SeqLength.")
    Label = Input("True tags, as Inference.")
    SeqLength = Input("Length of each sequence [B].", dispensable=True)
    Precision = Output("Right chunks / predicted chunks [1].")
    Recall = Output("Right chunks / true chunks [1].")
    F1_Score = Output("Harmonic mean of both [1].", name="F1-Score")
    NumInferChunks = Output("Predicted chunks, int64 [1].")
    NumLabelChunks = Output("True chunks, int64 [1].")
    NumCorrectChunks = Output("Right chunks, int64 [1].")
    num_chunk_types = Attr(REQUIRED, "Types of chunks.", type=AttrType.INT).greater_than(0)
    chunk_scheme = Attr("IOB", "IOB, IOE, IOBES or plain.").in_set(("IOB", "IOE", "IOBES", "plain"))
    excluded_chunk_types = Attr([], "Types that do not count.", type=AttrType.INTS)
    make_grad = empty_grad

    def expected_kernel_type(ctx: KernelTypeContext) -> OpKernelType:
        return ctx.kernel_type(dtype="float32")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Inference", "Label")
        for slot in (*_RATES, *_COUNTS):
            ctx.set_dim(slot, (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in _RATES:
            if ctx.has_output(slot):
                ctx.set_dtype(slot, "float32")
        for slot in _COUNTS:
            if ctx.has_output(slot):
                ctx.set_dtype(slot, "int64")


# mean_iou (Paddle 1.x): all of the op but its kernel.
class MeanIou(OpDef, type="mean_iou"):
    r"""$$OutMeanIou = \frac{1}{|C|} \sum_{c \in C} \frac{OutCorrect_c}{OutCorrect_c + OutWrong_c} + \sum InMeanIou$$

    over the classes C that occur, where a wrong element counts for both of its classes.
    """

    Predictions = Input("Predicted classes of any shape, int32 or int64.")
    Labels = Input("True classes, shape of Predictions.")
    InWrongs = Input("Counts [num_classes] to add to OutWrong.", duplicable=True, dispensable=True)
    InCorrects = Input("Counts [num_classes] to add to OutCorrect.", duplicable=True, dispensable=True)
    InMeanIou = Input("Means to add to OutMeanIou.", duplicable=True, dispensable=True)
    OutMeanIou = Output("float32 [1].")
    OutWrong = Output("Wrong elements per class, int32.")
    OutCorrect = Output("Right elements per class, int32.")
    num_classes = Attr(REQUIRED, "Classes.", type=AttrType.INT).greater_than(0)
    make_grad = empty_grad

    def expected_kernel_type(ctx: KernelTypeContext) -> OpKernelType:
        return ctx.kernel_type(dtype=ctx.dtype("Predictions"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Predictions", "Labels")
        ctx.set_dim("OutMeanIou", (1,))
        for slot in ("OutWrong", "OutCorrect"):
            ctx.set_dim(slot, (ctx.attr("num_classes"),))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("OutMeanIou", "float32")
        for slot in ("OutWrong", "OutCorrect"):
            ctx.set_dtype(slot, "int32")


_SLOTS = ("PositivePair", "NegativePair", "NeutralPair")


class PositiveNegativePair(OpDef, type="positive_negative_pair"):
    r"""$$PositivePair = \sum_{(i, j)} \frac{w_i + w_j}{2} [(s_i - s_j)(l_i - l_j) > 0]$$ over the pairs of one query
    whose labels l differ; the others of them count in NegativePair, and those with equal scores s in NeutralPair, too.
    """

    Score = Input("[N, columns], scores.")
    Label = Input("[N, 1], how well each item fits.")
    QueryID = Input("int64 [N, 1], the query of each item.")
    AccumulatePositivePair = Input("[1], counted so far.", dispensable=True)
    AccumulateNegativePair = Input("[1], counted so far.", dispensable=True)
    AccumulateNeutralPair = Input("[1], counted so far.", dispensable=True)
    Weight = Input("[N, 1]; 1 when absent.", dispensable=True)
    PositivePair = Output("[1], pairs in the right order.")
    NegativePair = Output("[1], pairs in the wrong order.")
    NeutralPair = Output("[1], pairs with equal scores.", dispensable=True)
    column = Attr(0, "The column of Score to use; negative counts from the end.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Score")

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, columns = ctx.require_rank("Score", 2)
        column = ctx.attr("column")
        ctx.require(
            columns < 0 or -columns <= column < columns, f"column is {column}; expected one of Score's {columns}"
        )
        for slot in ("Label", "QueryID", "Weight"):
            if ctx.has_input(slot):
                ctx.require_dims(slot, (rows, 1), why="a row for each of Score")
        for slot in _SLOTS:
            ctx.set_dim(slot, (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in _SLOTS:
            ctx.set_dtype(slot, ctx.dtype("Score"))


class PrecisionRecall(OpDef, type="precision_recall"):
    r"""$$P_c = \frac{TP_c}{TP_c + FP_c}, \; R_c = \frac{TP_c}{TP_c + FN_c}, \; F1 = \frac{2 P R}{P + R}$$

    The macro average is the mean of P_c and R_c over classes, the micro average has the sums of the counts in their
    places; P_c or R_c is 1 where nothing was counted. For this batch and for all batches.
    """

    MaxProbs = Input("Best score of each sample [N, 1]; only the dtype is read.")
    Indices = Input("Predicted class [N, 1], int32.")
    Labels = Input("True class [N, 1], int32.")
    Weights = Input("Weight of each sample [N, 1].", dispensable=True)
    StatesInfo = Input("Counts so far [class_number, 4]: TP, FP, TN, FN.", dispensable=True)
    BatchMetrics = Output("Macro precision, recall, F1, micro precision, recall, F1 of the batch, float64 [6].")
    AccumMetrics = Output("The same over all batches.")
    AccumStatesInfo = Output("Updated StatesInfo.")
    class_number = Attr(REQUIRED, "Classes.", type=AttrType.INT).greater_than(0)
    make_grad = empty_grad
    expected_kernel_type = dtype_of("MaxProbs")

    def infer_shape(ctx: InferShapeContext) -> None:
        classes = ctx.attr("class_number")
        ctx.same_dims("Indices", "Labels")
        if ctx.has_input("StatesInfo"):
            dims = ctx.dim("StatesInfo")
            fits = len(dims) == 2 and all(a in (b, -1) for a, b in zip(dims, (classes, 4), strict=True))
            ctx.require(fits, f"StatesInfo has shape {list(dims)}; expected [{classes}, 4]")
        ctx.set_dim("BatchMetrics", (6,))
        ctx.set_dim("AccumMetrics", (6,))
        ctx.set_dim("AccumStatesInfo", (classes, 4))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("BatchMetrics", "AccumMetrics"):
            ctx.set_dtype(slot, "float64")
        ctx.set_dtype("AccumStatesInfo", ctx.dtype("MaxProbs"))

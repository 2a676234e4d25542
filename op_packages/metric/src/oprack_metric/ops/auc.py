"""auc: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import (
    Attr,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    empty_grad,
)


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

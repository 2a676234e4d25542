"""precision_recall: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType


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

"""accuracy: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad


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
        ctx.set_dtype("Accuracy", ctx.dtype("Out"))
        for slot in ("Correct", "Total"):
            ctx.set_dtype(slot, "int32")

"""sequence_softmax: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of

from oprack_sequence.ops._infer import same_as


class SequenceSoftmax(OpDef, type="sequence_softmax"):
    r"""Softmax over the rows of each sequence: $$Out_i = \frac{e^{X_i}}{\sum_{j \in seq(i)} e^{X_j}}$$"""

    X = Input("[N, 1] or [N] with LoD.")
    Out = Output("Shape and LoD of X.")
    use_cudnn = Attr(False, "Chooses a kernel library elsewhere.", extra=True)
    data_format = Attr("AnyLayout", "Has no effect.", extra=True)

    def infer_shape(ctx):
        ctx.require_lod("X")
        same_as(ctx, "X", "Out")

    def make_grad(fwd):
        return GradOp(
            "sequence_softmax_grad",
            X=fwd.input("X"),
            Out=fwd.output("Out"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class SequenceSoftmaxGrad(GradOpDef, type="sequence_softmax_grad"):
    r"""$$\bar X_i = Out_i (\bar{Out}_i - \sum_{j \in seq(i)} Out_j \bar{Out}_j)$$"""

    X = Input("Only its LoD and shape are read.")
    Out = Input("Result of the forward op.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.")
    use_cudnn = Attr(False, "As in sequence_softmax.", extra=True)
    data_format = Attr("AnyLayout", "Has no effect.", extra=True)
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        same_as(ctx, "X", "X@GRAD")

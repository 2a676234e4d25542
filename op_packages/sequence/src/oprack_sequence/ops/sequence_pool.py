"""sequence_pool: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.types import VarType

from oprack_sequence.ops._infer import same_as


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

    def infer_shape(ctx):
        ctx.require_lod("X")
        dim = (-1, *ctx.dim("X")[1:])
        ctx.set_dim("Out", dim)
        ctx.set_lod_level("Out", max(ctx.lod_level("X") - 1, 0))
        if ctx.attr("pooltype") == "MAX" and not ctx.attr("is_test"):
            ctx.set_dim("MaxIndex", dim)

    def infer_var_type(ctx):
        ctx.set_dtype("Out", ctx.dtype("X"))
        if ctx.has_output("MaxIndex"):
            ctx.set_dtype("MaxIndex", VarType.INT32)

    def make_grad(fwd):
        return GradOp(
            "sequence_pool_grad",
            X=fwd.input("X"),
            MaxIndex=fwd.output("MaxIndex") if fwd.attrs["pooltype"] == "MAX" else None,
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class SequencePoolGrad(GradOpDef, type="sequence_pool_grad"):
    """Gradient of sequence_pool; an empty sequence passes nothing back."""

    X = Input("Only its LoD and shape are read.")
    MaxIndex = Input("From the forward op, for MAX.", dispensable=True)
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.")
    is_test = Attr(False, "As in sequence_pool.", extra=True)
    pooltype = Attr("AVERAGE", "As in sequence_pool.")
    pad_value = Attr(0.0, "As in sequence_pool.")
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        same_as(ctx, "X", "X@GRAD")

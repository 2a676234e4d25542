"""sequence_pool: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.op.sbp import sequences
from oprack.types import VarType


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

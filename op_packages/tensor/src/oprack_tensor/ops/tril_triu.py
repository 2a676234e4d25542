"""tril_triu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output


class TrilTriu(OpDef, type="tril_triu"):
    """Out is X with the part above (lower) or below (upper) a diagonal of its last two dims set to 0."""

    X = Input("[..., n, m]")
    Out = Output("Shape and LoD of X.")
    diagonal = Attr(0, "Which diagonal: 0 the main one, positive above it.")
    lower = Attr(False, "Keep the lower part instead of the upper one.")

    def infer_shape(ctx):
        dims = ctx.dim("X")
        ctx.require(len(dims) >= 2, f"X has shape {list(dims)}; expected rank 2 or more")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp("tril_triu_grad", Out_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X"), attrs=fwd.attrs)


class TrilTriuGrad(GradOpDef, type="tril_triu_grad"):
    """X@GRAD is Out@GRAD with the same part set to 0."""

    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of Out@GRAD.")
    diagonal = Attr(0, "As in tril_triu.")
    lower = Attr(False, "As in tril_triu.")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("Out@GRAD"))
        ctx.share_lod("Out@GRAD", "X@GRAD")

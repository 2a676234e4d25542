"""concat: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, IdentityContext, InferShapeContext, Input, OpDef, Output, dtype_of, normal_axis
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN, USE_QUANTIZER
from oprack.op.sbp import SbpContext, Signature, factors, letters


class Concat(OpDef, type="concat"):
    r"""Joins tensors along dim `axis`; their other dims are equal. With o_i the places of all pieces before i:
    $$Out[\dots, o_i + j, \dots] = X_i[\dots, j, \dots]$$ The dtype of pieces without elements does not count."""

    X = Input("Tensors of one rank.", duplicable=True)
    AxisTensor = Input("One-element tensor that overrides `axis`.", dispensable=True)
    Out = Output("The joined tensor; LoD of X[0], along dim 0 that of all X joined.")
    axis = Attr(0, "Dim to join along; negative counts from the end.")
    use_mkldnn = USE_MKLDNN
    use_quantizer = USE_QUANTIZER
    mkldnn_data_type = MKLDNN_DATA_TYPE
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.has("AxisTensor"):
            return []
        names = letters(len(ctx.dim("X")))
        names[ctx.attr("axis", 0)] = None
        return factors({"X": names}, {"Out": names}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        shapes = ctx.dims("X")
        rank, axis = len(shapes[0]), ctx.attr("axis")
        ctx.require(
            all(len(s) == rank for s in shapes),
            f"X has tensors of shapes {[list(s) for s in shapes]}; expected one rank",
        )
        levels = ctx.lod_level("X")
        if ctx.has_input("AxisTensor"):
            ctx.set_lod_level("Out", levels)
            value = ctx.scalar("AxisTensor")
            if value is None:
                ctx.set_dim("Out", (-1,) * rank)
                return
            axis = int(value)
        axis = normal_axis(ctx.op_type, axis, rank)
        if axis or not levels:
            ctx.share_lod("X", "Out")
        else:
            ctx.set_lod_level("Out", levels)
        out = []
        for i in range(rank):
            sizes = [s[i] for s in shapes]
            known = {d for d in sizes if d >= 0}
            if i == axis:
                out.append(sum(sizes) if min(sizes) >= 0 else -1)
                continue
            ctx.require(
                len(known) <= 1,
                f"X has tensors of shapes {[list(s) for s in shapes]}; expected equal dims but for axis {axis}",
            )
            out.append(known.pop() if known else -1)
        ctx.set_dim("Out", out)

    def identity(ctx: IdentityContext) -> bool:
        return ctx.input_count("X") == 1


class ConcatGrad(GradOpDef, of=Concat, reads="Out@GRAD X AxisTensor", shape_of="X", grads_of="X", linear=True):
    """X@GRAD[i] is the part of Out@GRAD that came from X[i]."""

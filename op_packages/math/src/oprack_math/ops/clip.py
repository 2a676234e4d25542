"""clip, with its first and second gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOp, GradOpDef, Input, OpDef, OpVersion, Output, dtype_of
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN, like
from oprack.types import AttrType

_MIN_TENSOR = Input("One-element tensor that overrides `min`.", dispensable=True)
_MAX_TENSOR = Input("One-element tensor that overrides `max`.", dispensable=True)


def _bounds(fwd):
    return {s: fwd.input(s) for s in ("Min", "Max") if fwd.has_input(s)}


class Clip(OpDef, type="clip"):
    r"""$$Out = \min(\max(X, min), max)$$ For integers the bounds are cut towards zero. X may be SelectedRows."""

    X = Input("Tensor or SelectedRows of any shape.")
    Min = _MIN_TENSOR
    Max = _MAX_TENSOR
    Out = Output("Shape and LoD of X.")
    min = Attr(REQUIRED, "Lower bound.", type=AttrType.FLOAT)
    max = Attr(REQUIRED, "Upper bound.", type=AttrType.FLOAT)
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")
    versions = OpVersion("clip").checkpoint(
        "The bounds may be tensors.", ("new_input", "Min", None), ("new_input", "Max", None)
    )

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp(
            "clip_grad",
            X=fwd.input("X"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
            slots=_bounds(fwd),
        )


class ClipGrad(GradOpDef, type="clip_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot [min < X < max]$$"""

    X = Input("Input of the forward op.")
    Min = _MIN_TENSOR
    Max = _MAX_TENSOR
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X.")
    min = Attr(REQUIRED, "Lower bound.", type=AttrType.FLOAT)
    max = Attr(REQUIRED, "Upper bound.", type=AttrType.FLOAT)
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN
    inplace = {"Out@GRAD": "X@GRAD"}
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X")])

    def make_grad(fwd):
        return GradOp(
            "clip_double_grad",
            X=fwd.input("X"),
            grad_x_grad=fwd.output_grad("X@GRAD"),
            grad_out_grad=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
            slots=_bounds(fwd),
        )


class ClipDoubleGrad(GradOpDef, type="clip_double_grad"):
    r"""$$grad\_out@GRAD = grad\_x@GRAD \cdot [min < X < max]$$"""

    X = Input("Input of the forward op.")
    Min = _MIN_TENSOR
    Max = _MAX_TENSOR
    grad_x_grad = Input("Gradient of X@GRAD.")
    grad_out_grad = Output("Gradient of Out@GRAD.")
    min = Attr(REQUIRED, "Lower bound.", type=AttrType.FLOAT)
    max = Attr(REQUIRED, "Upper bound.", type=AttrType.FLOAT)
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        like(ctx, [("grad_out@GRAD", "X")])

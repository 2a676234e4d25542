"""clip, with its first and second gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.op.sbp import unary
from oprack.types import AttrType


class Clip(OpDef, type="clip"):
    r"""$$Out = \min(\max(X, min), max)$$ For integers the bounds are cut towards zero. X may be SelectedRows."""

    X = Input("Tensor or SelectedRows of any shape.")
    Min = Input("One-element tensor that overrides `min`.", dispensable=True)
    Max = Input("One-element tensor that overrides `max`.", dispensable=True)
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
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class ClipGrad(GradOpDef, of=Clip, reads="X Min Max", grads_of="X"):
    r"""$$X@GRAD = Out@GRAD \cdot [min < X < max]$$"""

    inplace = {"Out@GRAD": "X@GRAD"}
    expected_kernel_type = dtype_of("X")


class ClipDoubleGrad(
    GradOpDef,
    of=ClipGrad,
    type="clip_double_grad",
    reads="X Min Max",
    grads_of="Out@GRAD",
    like="X",
    names={"X@GRAD": "grad_x", "Out@GRAD": "grad_out"},
):
    r"""$$grad\_out@GRAD = grad\_x@GRAD \cdot [min < X < max]$$"""

    expected_kernel_type = dtype_of("X")

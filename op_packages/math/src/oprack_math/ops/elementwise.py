"""Definitions of element-wise arithmetic with two inputs that broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.op import (
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    InferShapeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN, USE_QUANTIZER
from oprack.op.sbp import binary, elementwise

from oprack_math.composition import composed
from oprack_math.ops._attrs import SCALE_OUT, SCALE_X, SCALE_Y
from oprack_math.ops._broadcast import Aligned, Binary, DoubleGrad, broadcast_last


# What element-wise arithmetic shares: oneDNN's attributes, and the version with which Y got a scale.
class Elementwise(Binary):
    """A binary op with the attributes of oneDNN's kernels."""

    Scale_out = SCALE_OUT
    Scale_x = SCALE_X
    Scale_y = SCALE_Y
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN
    use_quantizer = USE_QUANTIZER


class AlignedElementwise(Aligned):
    """The same for one that has no `axis`."""

    Scale_out = SCALE_OUT
    Scale_x = SCALE_X
    Scale_y = SCALE_Y
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN
    use_quantizer = USE_QUANTIZER


def scale_y_checkpoint(op_type: str) -> OpVersion:
    """versions of an op whose Y got a scale."""
    return OpVersion(op_type).checkpoint("Y of a quantised model has a scale.", ("new_attr", "Scale_y", 1.0))


# copysign and its gradient.
class Copysign(OpDef, type="copysign"):
    r"""$$out = |x| \cdot \operatorname{sign}(y)$$ where the sign of a zero, or of NaN, is that of its sign bit."""

    x = Input("Tensor of any shape.")
    y = Input("Tensor of x's dtype whose shape broadcasts with x's.")
    out = Output("The broadcast shape, LoD of x.")

    def infer_shape(ctx: InferShapeContext) -> None:
        broadcast_last(ctx, "x", "y", "out")


class CopysignGrad(GradOpDef, of=Copysign, reads="x y"):
    r"""$$x@GRAD = out@GRAD \cdot \operatorname{sign} x \operatorname{sign} y,\quad y@GRAD = 0$$ and 0 where x is 0."""


# elementwise_add, with gradients to third order.
class ElementwiseAdd(Elementwise, type="elementwise_add"):
    r"""$$Out = X + Y$$"""

    inplace = {"X": "Out"}
    versions = scale_y_checkpoint("elementwise_add")
    sbp = binary(linear=(("X", "Y"),))


class ElementwiseAddGrad(GradOpDef, of=ElementwiseAdd, reads="Out@GRAD", shape_of="X Y"):
    r"""$$X@GRAD = Out@GRAD,\quad Y@GRAD = Out@GRAD$$"""

    inplace = {"Out@GRAD": "X@GRAD"}


class ElementwiseAddGradGrad(
    DoubleGrad,
    of=ElementwiseAddGrad,
    reads="Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    shape_of="Y Out@GRAD",
    grads_of="Out@GRAD",
):
    r"""$$DDOut = DDX + DDY$$"""

    inplace = {"DDX": "DDOut"}
    expected_kernel_type = dtype_of("DOut")


class ElementwiseAddTripleGrad(
    GradOpDef,
    of=ElementwiseAddGradGrad,
    type="elementwise_add_triple_grad",
    shape_of="DDX DDY",
    grads_of="DDX DDY",
    grad_names={"DDOut": "D_DDOut", "DDX": "D_DDX", "DDY": "D_DDY"},
):
    r"""$$D\_DDX = D\_DDOut,\quad D\_DDY = D\_DDOut$$"""

    inplace = {"D_DDOut": "D_DDX"}


# elementwise_div, with gradients to second order.
class ElementwiseDiv(Elementwise, type="elementwise_div"):
    r"""$$Out = X / Y$$ Integers are divided towards zero; an integer divisor of 0 is an error."""

    versions = scale_y_checkpoint("elementwise_div")


@composed
def _quotient_grad(o: Any, X: Any, Y: Any, Out_grad: Any) -> dict[str, Any]:
    """The gradient of X times 1 / Y."""
    inverse, names = o.reciprocal(X=Y), ["X@GRAD", "Y@GRAD"]
    x, y = o.elementwise_mul_grad(X=X, Y=inverse, Out_grad=Out_grad, axis=o.attrs["axis"], outputs=names)
    return {"X@GRAD": x, "Y@GRAD": -(y * inverse * inverse)}


class ElementwiseDivGrad(GradOpDef, of=ElementwiseDiv, reads="Out@GRAD X Y Out"):
    r"""$$X@GRAD = Out@GRAD / Y,\quad Y@GRAD = -Out@GRAD \cdot Out / Y$$"""

    def make_grad(fwd: ForwardOp) -> GradOp | Sequence[GradOp]:
        if not fwd.has_output("X@GRAD"):  # which elementwise_div_grad_grad reads, and takes for zero
            return _quotient_grad(fwd)
        slots = {slot: fwd.input(slot) for slot in ("Y", "Out")}
        slots |= {"DX": fwd.output("X@GRAD"), "DDX": fwd.output_grad("X@GRAD")}
        if fwd.has_output("Y@GRAD"):
            slots["DDY"] = fwd.output_grad("Y@GRAD")
        slots |= {"Y@GRAD": fwd.input_grad("Y"), "DOut": fwd.input_grad("Out"), "DDOut": fwd.input_grad("Out@GRAD")}
        return GradOp("elementwise_div_grad_grad", attrs={"axis": fwd.attrs["axis"]}, slots=slots)


class ElementwiseDivGradGrad(
    DoubleGrad,
    of=ElementwiseDivGrad,
    reads="Y Out X@GRAD? X@GRAD@GRAD? Y@GRAD@GRAD?",
    grads_of="Y Out Out@GRAD",
    like="Out",
    names={"X@GRAD": "DX"},
    grad_names={"Out": "DOut"},
    attrs="axis",
):
    r"""Gradient of elementwise_div_grad, whose input Out counts as independent of X and Y.

    $$DDOut = (DDX - Out \cdot DDY) / Y,\quad Y@GRAD = DX (Out \cdot DDY - DDX) / Y,\quad DOut = -DX \cdot DDY$$
    """

    inplace = {"DDX": "DDOut"}


class ElementwiseFloordiv(Elementwise, type="elementwise_floordiv"):
    r"""$$Out = \lfloor X / Y \rfloor$$ An integer divisor of 0 is an error."""

    make_grad = empty_grad


# elementwise_fmax and its gradient.
class ElementwiseFmax(AlignedElementwise, type="elementwise_fmax"):
    r"""$$Out = \max(X, Y)$$ of a number and NaN the number."""


class ElementwiseFmaxGrad(GradOpDef, of=ElementwiseFmax, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot [X \ge Y \lor Y \text{ is NaN}],\quad Y@GRAD = Out@GRAD - X@GRAD$$"""


# elementwise_fmin and its gradient.
class ElementwiseFmin(AlignedElementwise, type="elementwise_fmin"):
    r"""$$Out = \min(X, Y)$$ of a number and NaN the number."""


class ElementwiseFminGrad(GradOpDef, of=ElementwiseFmin, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot [X \le Y \lor Y \text{ is NaN}],\quad Y@GRAD = Out@GRAD - X@GRAD$$"""


# elementwise_heaviside and its gradient.
class ElementwiseHeaviside(AlignedElementwise, type="elementwise_heaviside"):
    r"""$$Out = 0 \text{ where } X < 0,\ Y \text{ where } X = 0,\ 1 \text{ where } X > 0$$ and 0 where X is NaN."""


class ElementwiseHeavisideGrad(GradOpDef, of=ElementwiseHeaviside, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = 0,\quad Y@GRAD = Out@GRAD \cdot [X = 0]$$"""


# elementwise_max and its gradient.
class ElementwiseMax(Elementwise, type="elementwise_max"):
    r"""$$Out = X \text{ where } X > Y, \text{ else } Y$$ so that a NaN in X loses and one in Y wins."""


class ElementwiseMaxGrad(GradOpDef, of=ElementwiseMax, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot [X > Y],\quad Y@GRAD = Out@GRAD \cdot [X \le Y]$$"""


# elementwise_min and its gradient.
class ElementwiseMin(Elementwise, type="elementwise_min"):
    r"""$$Out = X \text{ where } X < Y, \text{ else } Y$$ so that a NaN in X loses and one in Y wins."""

    x_data_format = Attr("", "Layout of X for oneDNN.", extra=True)
    y_data_format = Attr("", "Layout of Y for oneDNN.", extra=True)


class ElementwiseMinGrad(GradOpDef, of=ElementwiseMin, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot [X < Y],\quad Y@GRAD = Out@GRAD \cdot [X \ge Y]$$"""


class ElementwiseMod(Elementwise, type="elementwise_mod"):
    r"""$$Out = X - \lfloor X / Y \rfloor Y$$ with the sign of Y, as in Python. An integer divisor of 0 is an error."""

    inplace = {"X": "Out"}
    make_grad = empty_grad


# elementwise_mul, with gradients to third order.
class ElementwiseMul(Elementwise, type="elementwise_mul"):
    r"""$$Out = X \cdot Y$$ X may be SelectedRows; then Y holds one element."""

    versions = scale_y_checkpoint("elementwise_mul")
    sbp = binary(linear=(("X",), ("Y",)))


class ElementwiseMulGrad(GradOpDef, of=ElementwiseMul, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot Y,\quad Y@GRAD = Out@GRAD \cdot X$$"""


class ElementwiseMulGradGrad(
    DoubleGrad,
    of=ElementwiseMulGrad,
    reads="X Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    grads_of="X Y Out@GRAD",
    attrs="axis",
):
    r"""$$DDOut = DDX \cdot Y + X \cdot DDY,\quad X@GRAD = DOut \cdot DDY,\quad Y@GRAD = DOut \cdot DDX$$"""

    inplace = {"DDX": "DDOut"}


class ElementwiseMulTripleGrad(
    GradOpDef,
    of=ElementwiseMulGradGrad,
    type="elementwise_mul_triple_grad",
    like={"DDX": "X", "DDY": "Y"},
    reads="X Y DOut DDX DDY X@GRAD@GRAD? Y@GRAD@GRAD? DDOut@GRAD?",
    grad_names={
        "DDOut": "D_DDOut",
        "X@GRAD": "D_DX",
        "Y@GRAD": "D_DY",
        "DDX": "D_DDX",
        "DDY": "D_DDY",
        "DOut": "D_DOut",
        "X": "D_X",
        "Y": "D_Y",
    },
):
    r"""Gradient of elementwise_mul_grad_grad.

    $$D\_X = D\_DDOut \cdot DDY,\quad D\_Y = D\_DDOut \cdot DDX,\quad D\_DOut = D\_DX \cdot DDY + D\_DY \cdot DDX$$
    $$D\_DDX = D\_DY \cdot DOut + D\_DDOut \cdot Y,\quad D\_DDY = D\_DX \cdot DOut + D\_DDOut \cdot X$$
    """


# elementwise_pow and its gradient.
class ElementwisePow(Elementwise, type="elementwise_pow"):
    r"""$$Out = X^Y$$ Integers go through float64 and are cut towards zero."""

    versions = scale_y_checkpoint("elementwise_pow")


class ElementwisePowGrad(GradOpDef, of=ElementwisePow, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot Y X^{Y-1},\quad Y@GRAD = Out@GRAD \cdot X^Y \ln X$$"""


# elementwise_sub, with gradients to second order.
class ElementwiseSub(Elementwise, type="elementwise_sub"):
    r"""$$Out = X - Y$$"""

    inplace = {"X": "Out"}
    versions = scale_y_checkpoint("elementwise_sub")
    sbp = binary(linear=(("X", "Y"),))


class ElementwiseSubGrad(GradOpDef, of=ElementwiseSub, reads="Out@GRAD", shape_of="X Y"):
    r"""$$X@GRAD = Out@GRAD,\quad Y@GRAD = -Out@GRAD$$"""

    inplace = {"Out@GRAD": "X@GRAD"}


class ElementwiseSubGradGrad(
    DoubleGrad,
    of=ElementwiseSubGrad,
    reads="Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    shape_of="Y Out@GRAD",
    grads_of="Out@GRAD",
    attrs="axis",
):
    r"""$$DDOut = DDX - DDY$$"""

    inplace = {"DDX": "DDOut"}
    expected_kernel_type = dtype_of("DOut")


class GradAdd(Elementwise, type="grad_add"):
    r"""$$Out = X + Y$$ as a backward pass adds gradients up; nothing flows back through it."""

    make_grad = empty_grad
    sbp = binary(linear=(("X", "Y"),))


class Minus(OpDef, type="minus"):
    r"""$$Out = X - Y$$ of two tensors of one shape; programs before 1.8 have it."""

    X = Input("Tensor of any shape.")
    Y = Input("Tensor of X's shape.")
    Out = Output("Shape and LoD of X.")
    sbp = elementwise(("X", "Y"), ("Out",), linear=(("X", "Y"),))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Y")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd: ForwardOp) -> list[GradOp]:
        """Out@GRAD itself, and its negative."""
        pairs = (("X", 1.0), ("Y", -1.0))
        out = fwd.output_grad("Out")
        return [GradOp("scale", X=out, Out=fwd.input_grad(slot), attrs={"scale": sign}) for slot, sign in pairs]

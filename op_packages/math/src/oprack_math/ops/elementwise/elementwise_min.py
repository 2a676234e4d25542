"""elementwise_min and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef

from oprack_math.ops.elementwise._family import Elementwise


class ElementwiseMin(Elementwise, type="elementwise_min"):
    r"""$$Out = X \text{ where } X < Y, \text{ else } Y$$ so that a NaN in X loses and one in Y wins."""

    x_data_format = Attr("", "Layout of X for oneDNN.", extra=True)
    y_data_format = Attr("", "Layout of Y for oneDNN.", extra=True)


class ElementwiseMinGrad(GradOpDef, of=ElementwiseMin, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot [X < Y],\quad Y@GRAD = Out@GRAD \cdot [X \ge Y]$$"""

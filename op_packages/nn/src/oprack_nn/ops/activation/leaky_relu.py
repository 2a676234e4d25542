"""leaky_relu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, OpVersion
from oprack.op.families import USE_MKLDNN, GradFromX

from oprack_nn.ops.activation._family import Activation


class LeakyRelu(Activation, type="leaky_relu"):
    r"""$$Out = X$$ where $$X > 0$$, else $$alpha \cdot X$$"""

    alpha = Attr(0.02, "Slope of the negative side.")
    use_mkldnn = USE_MKLDNN
    versions = OpVersion("leaky_relu").checkpoint(
        "for alpha outside [0, 1] the sign of X decides, not the maximum of X and alpha X",
        ("bugfix", "alpha", None),
    )


class LeakyReluGrad(GradFromX, of=LeakyRelu):
    r"""$$X@GRAD = Out@GRAD$$ where $$X > 0$$, else $$alpha \cdot Out@GRAD$$"""


class LeakyReluGradGrad(
    GradOpDef,
    of=LeakyReluGrad,
    reads="X@GRAD@GRAD X",
    grads_of="Out@GRAD",
    like="X@GRAD@GRAD",
    names={"X@GRAD": "grad_x", "Out@GRAD": "grad_out"},
):
    r"""$$grad\_out@GRAD = grad\_x@GRAD$$ where $$X > 0$$, else $$alpha \cdot grad\_x@GRAD$$"""

    inplace = {"grad_x@GRAD": "grad_out@GRAD"}

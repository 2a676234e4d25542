"""flatten2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.op.sbp import regrouped

from oprack_tensor.ops.shape._flatten import flattened
from oprack_tensor.ops.shape._xshape import XSHAPE, XShapeGrad, keep_shape


class Flatten2(OpDef, type="flatten2"):
    r"""$$Out_{i,j} = X.flat_{i c + j}$$: the matrix [product of dims before `axis`, c = product of the others] of X's
    elements.
    """

    X = Input("Tensor of any shape.")
    Out = Output("Matrix; LoD of X while the first dim stays.")
    XShape = XSHAPE
    axis = Attr(1, "Where to cut, 0 ... rank of X.")
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE
    inplace = {"X": "Out"}

    sbp = regrouped

    def infer_shape(ctx: InferShapeContext) -> None:
        flattened(ctx)
        keep_shape(ctx)


class Flatten2Grad(XShapeGrad, of=Flatten2, linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""

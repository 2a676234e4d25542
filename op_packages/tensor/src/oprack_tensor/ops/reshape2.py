"""reshape2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Output
from oprack.op.families import MKLDNN_DATA_TYPE

from oprack_tensor.ops.shape import ReshapeOp, XShapeGrad, keep_shape


class Reshape2(ReshapeOp, type="reshape2"):
    r"""$$Out.flat = X.flat$$ in the shape `shape`: 0 copies a dim of X, one -1 takes what is left."""

    XShape = Output("Empty, [0, dims of X]: carries X's shape and LoD to the gradient.", intermediate=True)
    use_quantizer = Attr(False, "Set by quantisation tools.")
    mkldnn_data_type = MKLDNN_DATA_TYPE

    def infer_shape(ctx: InferShapeContext) -> None:
        ReshapeOp.infer_shape(ctx)
        keep_shape(ctx)


class Reshape2Grad(XShapeGrad, of=Reshape2):
    """X@GRAD is Out@GRAD in the shape of X."""

    use_quantizer = Attr(False, "Set by quantisation tools.", extra=True)


class Reshape2GradGrad(
    GradOpDef,
    of=Reshape2Grad,
    reads="X@GRAD@GRAD",
    shape_of="Out@GRAD",
    grads_of="Out@GRAD",
    lod=False,
    names={"Out@GRAD": "DOut"},
    grad_names={"X@GRAD": "DDX", "Out@GRAD": "DDOut"},
    attrs="shape",
):
    """DDOut is DDX in the shape of DOut."""

    inplace = {"DDX": "DDOut"}

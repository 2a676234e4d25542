"""reshape2 and reshape: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.types import AttrType

from oprack_tensor.dims import given_ints, reshape_dims
from oprack_tensor.ops._xshape import XShapeGrad


def _infer_shape(ctx):
    shape = given_ints(ctx, "shape", "" if ctx.has_input("ShapeTensor") else "Shape", "ShapeTensor")
    dims = ctx.dim("X")
    ctx.set_dim("Out", reshape_dims(ctx.op_type, dims, shape))
    ctx.share_lod("X", "Out")
    return dims


def _identity(ctx):
    dims, shape = ctx.dim("X"), ctx.attr("shape")
    if ctx.has_input("Shape") or ctx.has_input("ShapeTensor") or len(dims) != len(shape):
        return False
    return all(new in (0, -1) or new == old for new, old in zip(shape, dims, strict=True))


class Reshape(OpDef, type="reshape"):
    """Out holds X's elements in the shape `shape`: 0 copies a dim of X, one -1 takes what is left."""

    X = Input("Tensor of any shape.")
    Shape = Input("int32 or int64 [n], overrides `shape`.", dispensable=True)
    ShapeTensor = Input("n one-element tensors, override Shape and `shape`.", dispensable=True, duplicable=True)
    Out = Output("X in the new shape; LoD of X.")
    shape = Attr([], "New shape.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")
    identity = _identity

    def infer_shape(ctx):
        _infer_shape(ctx)


class ReshapeGrad(
    GradOpDef, of=Reshape, reads="Out@GRAD", shape_of="X Shape ShapeTensor Out?", grads_of="X? Shape? ShapeTensor?"
):
    """X@GRAD is Out@GRAD in the shape of X."""

    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")


class Reshape2(OpDef, type="reshape2"):
    """Out holds X's elements in the shape `shape`: 0 copies a dim of X, one -1 takes what is left."""

    X = Input("Tensor of any shape.")
    Shape = Input("int32 or int64 [n], overrides `shape`.", dispensable=True)
    ShapeTensor = Input("n one-element tensors, override Shape and `shape`.", dispensable=True, duplicable=True)
    Out = Output("X in the new shape; LoD of X.")
    XShape = Output("Empty, [0, dims of X]: carries X's shape and LoD to the gradient.", intermediate=True)
    shape = Attr([], "New shape.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    use_quantizer = Attr(False, "Set by quantisation tools.")
    mkldnn_data_type = MKLDNN_DATA_TYPE
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")
    identity = _identity

    def infer_shape(ctx):
        dims = _infer_shape(ctx)
        ctx.set_dim("XShape", (0, *dims))
        ctx.share_lod("X", "XShape")


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

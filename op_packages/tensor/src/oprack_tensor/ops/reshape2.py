"""reshape2 and reshape: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.types import AttrType

from oprack_tensor.dims import given_ints, reshape_dims


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

    def make_grad(fwd):
        return GradOp(
            "reshape_grad",
            X=fwd.input("X"),
            Shape=fwd.input("Shape"),
            ShapeTensor=fwd.input("ShapeTensor"),
            Out=fwd.output("Out"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            Shape_grad=fwd.input_grad("Shape"),
            ShapeTensor_grad=fwd.input_grad("ShapeTensor"),
            attrs=fwd.attrs,
        )


class ReshapeGrad(GradOpDef, type="reshape_grad"):
    """X@GRAD is Out@GRAD in the shape of X."""

    Out_grad = Input("Gradient of Out.")
    X = Input("The reshaped tensor; only its shape is read.")
    Shape = Input("As in reshape.", dispensable=True)
    ShapeTensor = Input("As in reshape.", dispensable=True, duplicable=True)
    Out = Input("Output of reshape; not read.", dispensable=True)
    X_grad = Output("Shape and LoD of X.", dispensable=True)
    Shape_grad = Output("Never computed.", dispensable=True)
    ShapeTensor_grad = Output("Never computed.", dispensable=True, duplicable=True)
    shape = Attr([], "As in reshape.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    inplace = {"Out@GRAD": "X@GRAD"}
    no_need_buffer_vars = ("X", "Shape", "ShapeTensor", "Out")
    expected_kernel_type = dtype_of("Out@GRAD")

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

    def make_grad(fwd):
        return GradOp(
            "reshape2_grad",
            XShape=fwd.output("XShape"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class Reshape2Grad(GradOpDef, type="reshape2_grad"):
    """X@GRAD is Out@GRAD in the shape of X."""

    Out_grad = Input("Gradient of Out.")
    XShape = Input("Carries the shape of X.")
    X_grad = Output("Shape and LoD of X.")
    shape = Attr([], "As in reshape2.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    use_quantizer = Attr(False, "Set by quantisation tools.", extra=True)
    mkldnn_data_type = MKLDNN_DATA_TYPE
    inplace = {"Out@GRAD": "X@GRAD"}
    no_need_buffer_vars = ("XShape",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("XShape")[1:])
        ctx.share_lod("XShape", "X@GRAD")

    def make_grad(fwd):
        return GradOp(
            "reshape2_grad_grad",
            DOut=fwd.input("Out@GRAD"),
            DDX=fwd.output_grad("X@GRAD"),
            DDOut=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )


class Reshape2GradGrad(GradOpDef, type="reshape2_grad_grad"):
    """DDOut is DDX in the shape of DOut."""

    DDX = Input("Gradient of X@GRAD.")
    DOut = Input("Out@GRAD of reshape2_grad; only its shape is read.")
    DDOut = Output("Shape of DOut; no LoD.")
    shape = Attr([], "As in reshape2.", type=AttrType.INTS)
    inplace = {"DDX": "DDOut"}
    no_need_buffer_vars = ("DOut",)
    expected_kernel_type = dtype_of("DDX")

    def infer_shape(ctx):
        ctx.set_dim("DDOut", ctx.dim("DOut"))

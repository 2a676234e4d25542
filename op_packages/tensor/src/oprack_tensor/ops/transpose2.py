"""transpose2 and transpose: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, Input, OpDef, Output, normal_axis
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.types import AttrType

from oprack_tensor.ops._attrs import DATA_FORMAT


def _permutation(ctx, rank):
    axes = [normal_axis(ctx.op_type, a, rank) for a in ctx.attr("axis")]
    ctx.require(
        sorted(axes) == list(range(rank)),
        f"axis is {ctx.attr('axis')} but the tensor has rank {rank}; expected each dim exactly once",
    )
    return axes


def _infer_shape(ctx):
    dims = ctx.dim("X")
    ctx.set_dim("Out", [dims[a] for a in _permutation(ctx, len(dims))])
    return dims


def _identity(ctx):
    return list(ctx.attr("axis")) == list(range(len(ctx.dim("X")))) and ctx.lod_level("X") == 0


class Transpose(OpDef, type="transpose"):
    """Dim i of Out is dim axis[i] of X."""

    X = Input("Tensor of any shape.")
    Out = Output("X with permuted dims; no LoD.")
    axis = Attr(REQUIRED, "A permutation of X's dims.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    data_format = DATA_FORMAT
    mkldnn_data_type = MKLDNN_DATA_TYPE
    identity = _identity

    def infer_shape(ctx):
        _infer_shape(ctx)


class TransposeGrad(GradOpDef, of=Transpose, reads="Out@GRAD", shape_of="X? Out?", linear=True):
    """X@GRAD is Out@GRAD with the dims permuted back."""

    def infer_shape(ctx):
        dims = ctx.dim("Out@GRAD")
        axes = _permutation(ctx, len(dims))
        ctx.set_dim("X@GRAD", [dims[axes.index(i)] for i in range(len(dims))])


class Transpose2(OpDef, type="transpose2"):
    """Dim i of Out is dim axis[i] of X."""

    X = Input("Tensor of any shape.")
    Out = Output("X with permuted dims; no LoD.")
    XShape = Output("Empty, [0, dims of X]: carries X's shape to the gradient.", intermediate=True, extra=True)
    axis = Attr(REQUIRED, "A permutation of X's dims.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    data_format = DATA_FORMAT
    mkldnn_data_type = MKLDNN_DATA_TYPE
    identity = _identity

    def infer_shape(ctx):
        ctx.set_dim("XShape", (0, *_infer_shape(ctx)))


class Transpose2Grad(GradOpDef, of=Transpose2, reads="Out@GRAD", shape_of="XShape", linear=True, grads_of="X"):
    """X@GRAD is Out@GRAD with the dims permuted back."""

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("XShape")[1:])

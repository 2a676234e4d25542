"""pool2d, pool3d and their gradients: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOp, GradOpDef, OpDef

from oprack_nn.ops._conv import algorithm_attr, join_dims, layout_attr, paddings_attr, positive, split_dims
from oprack_nn.ops._pool import ksize_attr, pool_geometry


def _pool_dims(ctx, slot):
    dims = ctx.require_rank(slot, len(ctx.attr("strides")) + 2)
    n, c, spatial = split_dims(dims, ctx.attr("data_format"))
    return join_dims(n, c, pool_geometry(ctx, spatial).out, ctx.attr("data_format"))


def _infer_shape(ctx):
    ctx.set_dim("Out", _pool_dims(ctx, "X"))
    ctx.share_lod("X", "Out")


def _infer_grad_shape(ctx):
    ctx.require_dims("Out@GRAD", _pool_dims(ctx, "X"), why="what the forward op gives")
    ctx.set_dim("X@GRAD", ctx.dim("X"))
    ctx.share_lod("X", "X@GRAD")


def _make_grad(fwd):
    return GradOp(
        fwd.type + "_grad",
        X=fwd.input("X"),
        Out=fwd.output("Out"),
        Out_grad=fwd.output_grad("Out"),
        X_grad=fwd.input_grad("X"),
        attrs=fwd.attrs,
    )


class _Pool2DAttrs(OpDef):
    ksize = ksize_attr(support_tensor=True)
    strides = positive([1, 1], "Step of the windows along H and W.")
    paddings = paddings_attr(2)
    ceil_mode = Attr(False, "Let the last window reach over the end.")
    exclusive = Attr(True, "avg: divide by the elements of X in the window, not by its size.")
    data_format = layout_attr("NCHW")
    pooling_type = Attr("", "max or avg.").in_set(("max", "avg", ""))
    global_pooling = Attr(False, "One window over all of H and W; ksize and paddings are ignored.")
    adaptive = Attr(
        False, "ksize is the output's size; output i sees X from floor(i H / ksize) to ceil((i+1) H / ksize)."
    )
    padding_algorithm = algorithm_attr()
    use_cudnn = Attr(False, "Paddle: prefer the cuDNN kernel.")
    is_test = Attr(False, "Inference.", extra=True)
    mkldnn_data_type = Attr("float32", "Paddle: dtype of the oneDNN kernel.", extra=True)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    use_quantizer = Attr(False, "Paddle: int8 oneDNN kernel.", extra=True)


class _Pool3DAttrs(OpDef):
    ksize = ksize_attr()
    strides = positive([1, 1, 1], "Step of the windows along D, H and W.")
    paddings = paddings_attr(3)
    ceil_mode = Attr(False, "Let the last window reach over the end.")
    exclusive = Attr(True, "avg: divide by the elements of X in the window, not by its size.")
    data_format = layout_attr("NCDHW")
    pooling_type = Attr("", "max or avg.").in_set(("max", "avg", ""))
    global_pooling = Attr(False, "One window over all of D, H and W; ksize and paddings are ignored.")
    adaptive = Attr(
        False, "ksize is the output's size; output i sees X from floor(i H / ksize) to ceil((i+1) H / ksize)."
    )
    padding_algorithm = algorithm_attr()
    use_cudnn = Attr(False, "Paddle: prefer the cuDNN kernel.")
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)


class Pool2D(_Pool2DAttrs, type="pool2d"):
    r"""$$Out_{n,c,y,x} = \max_{i,j} X_{n,c,y s_h + i - p_t,x s_w + j - p_l}$$ or the mean of the same window.

    As in Paddle, adaptive holds for avg; with max the output has the size ksize, but the windows are ksize wide and
    strides apart: max_pool2d_with_index is adaptive for max.
    """

    X = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Out = op.Output("[N, C, H', W'] in the layout of X.")
    infer_shape = _infer_shape
    make_grad = _make_grad


class Pool3D(_Pool3DAttrs, type="pool3d"):
    """pool2d with a third spatial dim, D."""

    X = op.Input("[N, C, D, H, W], or [N, D, H, W, C] with data_format NDHWC.")
    Out = op.Output("[N, C, D', H', W'] in the layout of X.")
    infer_shape = _infer_shape
    make_grad = _make_grad


class Pool2DGrad(_Pool2DAttrs, GradOpDef, type="pool2d_grad"):
    """max: Out@GRAD goes to the first element of each window that equals Out; avg: it is spread over the window."""

    X = op.Input("X of the forward op.")
    Out = op.Input("Out of the forward op.")
    Out_grad = op.Input("Shape of Out.")
    X_grad = op.Output("Shape of X.")
    infer_shape = _infer_grad_shape

    def make_grad(fwd):
        return GradOp(
            "pool2d_double_grad",
            grad_x_grad=fwd.output_grad("X@GRAD"),
            grad_out_grad=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )


class Pool3DGrad(_Pool3DAttrs, GradOpDef, type="pool3d_grad"):
    """As pool2d_grad, with a third spatial dim."""

    X = op.Input("X of the forward op.")
    Out = op.Input("Out of the forward op.")
    Out_grad = op.Input("Shape of Out.")
    X_grad = op.Output("Shape of X.")
    infer_shape = _infer_grad_shape


class Pool2DDoubleGrad(_Pool2DAttrs, GradOpDef, type="pool2d_double_grad"):
    """Gradient of pool2d_grad by Out@GRAD: average pooling again. That of max pooling would need X, which it lacks."""

    grad_x_grad = op.Input("Gradient of X@GRAD, shape of X.")
    grad_out_grad = op.Output("Gradient of Out@GRAD, shape of Out.")

    def infer_shape(ctx):
        ctx.set_dim("grad_out@GRAD", _pool_dims(ctx, "grad_x@GRAD"))

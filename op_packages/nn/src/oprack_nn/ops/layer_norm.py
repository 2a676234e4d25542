"""layer_norm and its gradient: all of the ops but their kernels."""

from __future__ import annotations

import math
from typing import Any

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef, dtype_of
from oprack.op.sbp import leading
from oprack_math.composition import composed

from oprack_nn.ops.norm import norm_types


class LayerNorm(OpDef, type="layer_norm"):
    r"""$$Y = Scale \frac{X - \mu}{\sqrt{\sigma^2 + epsilon}} + Bias$$

    mu and sigma^2 are the mean and biased variance over the dims from begin_norm_axis on.
    """

    X = op.Input("Any shape of rank 2 or more.")
    Scale = op.Input("[prod of the normalised dims]; 1 when absent.", dispensable=True)
    Bias = op.Input("[prod of the normalised dims]; 0 when absent.", dispensable=True)
    Y = op.Output("Shape of X.")
    Mean = op.Output("The dims in front of begin_norm_axis.", intermediate=True)
    Variance = op.Output("The dims in front of begin_norm_axis.", intermediate=True)
    epsilon = Attr(1e-5, "Added to the variance.").between(0.0, 0.001)
    begin_norm_axis = Attr(1, "First of the dims that are normalised together.").greater_than(0)
    is_test = Attr(False, "Inference.", extra=True)
    mkldnn_data_type = Attr("float32", "Paddle: dtype of the oneDNN kernel.", extra=True)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    expected_kernel_type = dtype_of("X")
    infer_var_type = norm_types({}, "Mean", "Variance")
    sbp = leading(("X",), ("Y", "Mean", "Variance"), lambda ctx: int(ctx.attr("begin_norm_axis", 1)))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis = ctx.dim("X"), ctx.attr("begin_norm_axis")
        ctx.require(
            axis < len(dims),
            f"begin_norm_axis is {axis}; expected less than {len(dims)}, the rank of X {list(dims)}",
        )
        size = -1 if -1 in dims[axis:] else math.prod(dims[axis:])
        for slot in ("Scale", "Bias"):
            if ctx.has_input(slot):
                got = ctx.dim(slot)
                ctx.require(
                    len(got) == 1 and (size < 0 or got[0] < 0 or got[0] == size),
                    f"{slot} has shape {list(got)}; expected [{size}], the product of {list(dims[axis:])}",
                )
        ctx.set_dim("Y", dims)
        ctx.set_dim("Mean", dims[:axis])
        ctx.set_dim("Variance", dims[:axis])
        ctx.share_lod("X", "Y")


class LayerNormGrad(
    GradOpDef, of=LayerNorm, reads="X Scale Mean Variance", shape_of="Bias", grads_of="X? Scale? Bias?"
):
    """As batch_norm_grad, the means over the normalised dims; Scale@GRAD and Bias@GRAD are sums over the others."""

    expected_kernel_type = dtype_of("X")

    @composed
    def make_grad(o: Any, X: Any, Scale: Any, Y_grad: Any) -> dict[str, Any]:
        x, g = (o.flatten2(X=a, axis=o.attrs["begin_norm_axis"]) for a in (X, Y_grad))
        away = x - o.reduce_mean(X=x, dim=[1], keep_dim=True)
        factor = o.rsqrt(X=o.reduce_mean(X=away * away, dim=[1], keep_dim=True) + o.attrs["epsilon"])
        normal, scaled = away * factor, g if Scale is None else g * Scale
        along = normal * o.reduce_mean(X=scaled * normal, dim=[1], keep_dim=True)
        dx = (scaled - o.reduce_mean(X=scaled, dim=[1], keep_dim=True) - along) * factor
        return {
            "X@GRAD": o.reshape2(X=dx, Shape=o.shape(Input=X)),
            "Scale@GRAD": o.reduce_sum(X=g * normal, dim=[0]),
            "Bias@GRAD": o.reduce_sum(X=g, dim=[0]),
        }

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis = ctx.dim("X"), ctx.attr("begin_norm_axis")
        lead, normed = (-1 if -1 in part else math.prod(part) for part in (dims[:axis], dims[axis:]))
        ctx.require_dims("Y@GRAD", dims, why="the shape of X")
        ctx.require_dims("Scale", (normed,), why=f"the product of {list(dims[axis:])}")
        for slot in ("Mean", "Variance"):
            got = ctx.dim(slot)
            ctx.require(
                lead < 0 or -1 in got or math.prod(got) == lead,
                f"{slot} has shape {list(got)}; expected {list(dims[:axis])}, the dims of X in front of {axis}",
            )
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
        for slot in ("Scale", "Bias"):
            if ctx.has_input(slot):
                ctx.set_dim(f"{slot}@GRAD", ctx.dim(slot))

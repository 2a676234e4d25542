"""meshgrid: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output

from oprack_tensor.dims import product


class Meshgrid(OpDef, type="meshgrid"):
    """Out[i] holds X[i] along dim i and repeats it along the others."""

    X = Input("k tensors, 1-D or 0-D.", duplicable=True)
    Out = Output("k tensors of shape [elements of X[0], ..., elements of X[k-1]].", duplicable=True)

    def infer_shape(ctx):
        shapes = ctx.dims("X")
        ctx.require(all(len(s) <= 1 for s in shapes), f"X has shapes {[list(s) for s in shapes]}; expected rank 0 or 1")
        ctx.set_dims("Out", [[product(s) for s in shapes]] * len(shapes))

    def make_grad(fwd):
        return GradOp(
            "meshgrid_grad", X=fwd.input("X"), outputs_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X")
        )


class MeshgridGrad(GradOpDef, type="meshgrid_grad"):
    """X@GRAD[i] sums the gradient of Out[i] over all dims but i."""

    X = Input("Only their shapes are read.", duplicable=True)
    outputs_grad = Input("Gradients of Out.", duplicable=True)
    X_grad = Output("Shapes of X.", duplicable=True)
    no_need_buffer_vars = ("X",)

    def infer_shape(ctx):
        for i in range(ctx.output_count("X@GRAD")):
            ctx.set_dim("X@GRAD", ctx.dim("X", i), i)
            ctx.share_lod("X", "X@GRAD", i, i)

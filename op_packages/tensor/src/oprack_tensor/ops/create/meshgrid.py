"""meshgrid: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output

from oprack_tensor.dims import product


class Meshgrid(OpDef, type="meshgrid"):
    r"""$$Out[k]_{i_0, i_1, \ldots} = X[k]_{i_k}$$"""

    X = Input("k tensors, 1-D or 0-D.", duplicable=True)
    Out = Output("k tensors of shape [elements of X[0], ..., elements of X[k-1]].", duplicable=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        shapes = ctx.dims("X")
        ctx.require(all(len(s) <= 1 for s in shapes), f"X has shapes {[list(s) for s in shapes]}; expected rank 0 or 1")
        ctx.set_dims("Out", [[product(s) for s in shapes]] * len(shapes))


class MeshgridGrad(GradOpDef, of=Meshgrid, shape_of="X", names={"Out": "outputs"}):
    """X@GRAD[i] sums the gradient of Out[i] over all dims but i."""

"""flatten (Paddle 1.x): all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output

from oprack_tensor.ops.shape._flatten import flattened


class Flatten(OpDef, type="flatten"):
    r"""$$Out_{i,j} = X.flat_{i c + j}$$: the matrix [product of dims before `axis`, c = product of the others] of X's
    elements.
    """

    X = Input("Tensor of any shape.")
    Out = Output("Matrix; LoD of X while the first dim stays.")
    axis = Attr(1, "Where to cut, 0 ... rank of X.")
    inplace = {"X": "Out"}

    def infer_shape(ctx: InferShapeContext) -> None:
        flattened(ctx)


class FlattenGrad(GradOpDef, of=Flatten, shape_of="X", linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""

"""kron and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output


class Kron(OpDef, type="kron"):
    r"""$$Out_{i n + k,\, j m + l} = X_{i,j} Y_{k,l}$$ for Y of shape [n, m]; so in all dims, the last ones aligned."""

    X = Input("Tensor of any shape.")
    Y = Input("Tensor of any shape.")
    Out = Output("Products of the dims; the shape of lower rank is filled up with ones in front.")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.dim("X"), ctx.dim("Y")
        rank = max(len(x), len(y))
        pairs = zip((1,) * (rank - len(x)) + tuple(x), (1,) * (rank - len(y)) + tuple(y), strict=True)
        ctx.set_dim("Out", [-1 if -1 in pair else pair[0] * pair[1] for pair in pairs])


class KronGrad(GradOpDef, of=Kron, reads="X Y"):
    r"""$$X@GRAD_{i,j} = \sum_{k,l} Out@GRAD_{i n + k,\, j m + l} \overline{Y_{k,l}}$$ and likewise for Y."""

"""one_hot (Paddle 1.x): all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input
from oprack.op.sbp import leading

from oprack_tensor.ops.create._one_hot import OneHotOf, given_depth


class OneHot(OneHotOf, type="one_hot"):
    r"""$$Out_{..., k} = 1$$ where $$X_{..., 0} = k$$, else 0."""

    X = Input("int32 or int64 ids [..., 1].")

    sbp = leading(("X",), ("Out",), lambda ctx: len(ctx.dim("Out")) - 1)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(len(dims) >= 2 and dims[-1] in (1, -1), f"X has shape {list(dims)}; expected a last dim of size 1")
        ctx.set_dim("Out", (*dims[:-1], given_depth(ctx)))
        ctx.share_lod("X", "Out")

"""dirichlet: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad


class Dirichlet(OpDef, type="dirichlet"):
    r"""$$p(Out) \propto \prod_k Out_k^{Alpha_k - 1}$$ shares that add up to 1 along the last dim."""

    Alpha = Input("[..., k], above 0.")
    Out = Output("Shape and type of Alpha.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("Alpha")
        ctx.require(len(dims) >= 1, "Alpha has no dims; expected rank 1 or more")
        ctx.set_dim("Out", dims)

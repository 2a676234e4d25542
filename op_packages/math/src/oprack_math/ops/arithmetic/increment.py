"""increment: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output


class Increment(OpDef, type="increment"):
    r"""$$Out = X + step$$ For integers the step is cut towards zero. Its gradient op counts back, as loops need it."""

    X = Input("Tensor of one element.")
    Out = Output("Shape and LoD of X; may be X itself.")
    step = Attr(1.0, "What is added.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(
            all(d in (1, -1) for d in dims), f"X has shape {list(dims)}; expected one element, since it is a counter"
        )
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "increment",
            X=fwd.output("Out"),
            outputs={"Out": fwd.input("X")},
            same={"X": "Out"},
            attrs=fwd.attrs | {"step": -fwd.attrs["step"]},
        )

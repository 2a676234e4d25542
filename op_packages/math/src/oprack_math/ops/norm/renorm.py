"""renorm and its gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.families import USE_CUDNN, USE_MKLDNN
from oprack.types import AttrType


class Renorm(OpDef, type="renorm"):
    r"""$$Out_i = X_i \cdot \min(1,\ max\_norm / \|X_i\|_p)$$ for each part i of X along dim `axis`.

    Parts whose norm is max_norm at most stay as they are.
    """

    X = Input("Tensor of rank 1 or more.")
    Out = Output("Shape and LoD of X.")
    p = Attr(REQUIRED, "Order of the norm.", type=AttrType.FLOAT).greater_than(0)
    axis = Attr(REQUIRED, "Dim along which the parts lie; negative counts from the end.", type=AttrType.INT)
    max_norm = Attr(REQUIRED, "Greatest norm of a part.", type=AttrType.FLOAT)
    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    inplace = {"X": "Out"}

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(len(dims) > 0, "X has no dims; expected at least one, along which its parts lie")
        ctx.axis("X")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class RenormGrad(GradOpDef, of=Renorm, reads="X"):
    r"""$$X@GRAD_i = s\,Out@GRAD_i - \frac{s}{\|X_i\|_p} \langle X_i, Out@GRAD_i \rangle
    \frac{\partial \|X_i\|_p}{\partial X_i},\quad s = max\_norm / \|X_i\|_p$$
    and Out@GRAD for parts that stay as they are."""

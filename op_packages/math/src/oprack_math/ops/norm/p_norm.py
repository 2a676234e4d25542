"""p_norm and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output
from oprack.op.sbp import SbpContext, Signature, factors, letters

from oprack_math.ops._reduce import KEEP_DIM, reduced_dims


class PNorm(OpDef, type="p_norm"):
    r"""$$Out = \left(\sum_{axis} |X|^p\right)^{1/p}$$

    p = 0 counts what is not 0; infinity gives the greatest, minus infinity the smallest absolute value.
    """

    X = Input("Tensor of any shape.")
    Out = Output("X's shape without dim `axis`; no LoD.")
    porder = Attr(2.0, "The order p; 0, infinity and minus infinity are allowed.")
    axis = Attr(-1, "Dim to reduce.")
    epsilon = Attr(1e-12, "Added to the norm where the gradient divides by it.")
    keepdim = KEEP_DIM
    asvector = Attr(False, "Norm of all elements as one vector.")
    versions = OpVersion("p_norm").checkpoint("Norm of a matrix as one vector.", ("new_attr", "asvector", False))

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        if ctx.attr("asvector", False) or not names:
            return []
        axis = ctx.attr("axis", -1) % len(names)
        kept = [None if k == axis else n for k, n in enumerate(names) if k != axis or ctx.attr("keepdim", False)]
        return (
            factors({"X": names}, {"Out": kept}, no=[n for n in names[axis : axis + 1] if n])
            if len(kept) == len(ctx.dim("Out"))
            else []
        )

    def infer_shape(ctx: InferShapeContext) -> None:
        axes = [ctx.attr("axis")]
        ctx.set_dim("Out", reduced_dims(ctx, ctx.dim("X"), axes, ctx.attr("keepdim"), ctx.attr("asvector")))


class PNormGrad(GradOpDef, of=PNorm, reads="X Out"):
    r"""$$X@GRAD = Out@GRAD \cdot \operatorname{sign}(X) |X|^{p-1} / (Out^{p-1} + \epsilon)$$

    For p = 0 it is 0; for infinite p Out@GRAD sign(X) where |X| = Out.
    """

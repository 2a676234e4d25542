"""Definitions of norms and of what limits them."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    GradOpDef,
    InferShapeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.op.families import USE_CUDNN, USE_MKLDNN, out_like_x
from oprack.op.sbp import SbpContext, Signature, factors, letters
from oprack.types import AttrType

from oprack_math.composition import composed
from oprack_math.ops._broadcast import broadcast_dims
from oprack_math.ops._reduce import KEEP_DIM, Reduce, ReduceGradWithOut, reduced_dims


class ClipByNorm(OpDef, type="clip_by_norm"):
    r"""$$Out = X \cdot \min(1, max\_norm / \|X\|_2)$$ X may be SelectedRows."""

    X = Input("Tensor or SelectedRows of any shape.")
    Out = Output("Shape and LoD of X.")
    max_norm = Attr(REQUIRED, "Greatest Euclidean norm of Out.", type=AttrType.FLOAT).greater_than(0)
    make_grad = empty_grad
    infer_shape = out_like_x


class DgcClipByNorm(OpDef, type="dgc_clip_by_norm"):
    r"""$$Out = X \cdot \min(1, max\_norm / \|X\|_2)$$ from step rampup_begin_step on, before it $$Out = X$$

    The clip of a gradient that is sent compressed (deep gradient compression, Lin et al., 2018). Steps count as whole
    numbers; with a negative rampup_begin_step nothing is clipped.
    """

    current_step = Input("[1], steps so far.")
    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    rampup_begin_step = Attr(-1.0, "The first step that is clipped.")
    max_norm = Attr(REQUIRED, "Greatest Euclidean norm of Out.", type=AttrType.FLOAT).greater_than(0)
    make_grad = empty_grad
    expected_kernel_type = dtype_of("X")
    infer_shape = out_like_x


# dist and its gradient.
class Dist(OpDef, type="dist"):
    r"""$$Out = \left(\sum |X - Y|^p\right)^{1/p}$$

    p = 0 counts where they differ; infinity gives the greatest, minus infinity the smallest difference.
    """

    X = Input("Tensor of any shape.")
    Y = Input("Tensor whose shape broadcasts with X's.")
    Out = Output("0-D; no LoD.")
    p = Attr(2.0, "The order; 0, infinity and minus infinity are allowed.")

    def infer_shape(ctx: InferShapeContext) -> None:
        broadcast_dims(ctx.dim("X"), ctx.dim("Y"), -1, ctx.op_type)
        ctx.set_dim("Out", ())


class DistGrad(GradOpDef, of=Dist, reads="X Y Out"):
    r"""$$X@GRAD = Out@GRAD \cdot \operatorname{sign}(X - Y) |X - Y|^{p-1} / Out^{p-1},\quad Y@GRAD = -X@GRAD$$

    summed where they were broadcast; 0 for p = 0 and where Out is 0.
    """


# frobenius_norm and its gradient.
class FrobeniusNorm(Reduce, type="frobenius_norm"):
    r"""$$Out = \sqrt{\sum_{dim} X^2}$$"""


class FrobeniusNormGrad(ReduceGradWithOut, of=FrobeniusNorm):
    r"""$$X@GRAD = Out@GRAD \cdot X / (Out + 10^{-12})$$"""


# l1_norm and its gradient.
class L1Norm(OpDef, type="l1_norm"):
    r"""$$Out = \sum |X|$$ over all elements."""

    X = Input("Tensor of any shape.")
    Out = Output("0-D; no LoD.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ())


class L1NormGrad(GradOpDef, of=L1Norm, reads="X"):
    r"""$$X@GRAD = Out@GRAD \cdot \operatorname{sign}(X)$$"""


# norm and its gradient.
class Norm(OpDef, type="norm"):
    r"""$$Norm = \sqrt{\sum_{axis} X^2 + \epsilon},\quad Out = X / Norm$$"""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("Shape and LoD of X.")
    Norm_ = Output("X's shape with 1 in place of dim `axis`.", intermediate=True, extra=True)
    axis = Attr(REQUIRED, "Dim along which elements form a vector; negative counts from the end.", type=AttrType.INT)
    epsilon = Attr(1e-10, "Added to the sum of squares.")
    is_test = Attr(False, "Inference alone: Norm is not needed.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        axis = names[ctx.attr("axis", -1) % len(names)]
        return factors({"X": names}, {"Out": names, "Norm": [None if n == axis else n for n in names]}, no=[axis])

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis = ctx.dim("X"), ctx.axis("X")
        ctx.set_dim("Out", dims)
        ctx.set_dim("Norm", [1 if i == axis else d for i, d in enumerate(dims)])
        ctx.share_lod("X", "Out")


class NormGrad(GradOpDef, of=Norm, reads="X Norm Out@GRAD"):
    r"""$$X@GRAD = (Out@GRAD - X \sum_{axis} X \cdot Out@GRAD / Norm^2) / Norm$$"""


# p_norm and its gradient.
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


# renorm and its gradient.
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


# squared_l2_norm and its gradient.
class SquaredL2Norm(OpDef, type="squared_l2_norm"):
    r"""$$Out = \sum X^2$$ over all elements."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape [1]; no LoD.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        return factors({"X": letters(len(ctx.dim("X")))}, {"Out": [None]})

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (1,))


class SquaredL2NormGrad(GradOpDef, of=SquaredL2Norm, reads="X"):
    r"""$$X@GRAD = 2\,Out@GRAD \cdot X$$"""

    make_grad = composed(lambda o, X, Out_grad: X * Out_grad * 2.0)

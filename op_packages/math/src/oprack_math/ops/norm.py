"""Norms over some dims: logsumexp, p_norm, frobenius_norm, squared_l2_norm."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, Input, OpDef, OpVersion, Output

from oprack_math.ops._reduce import Reduce, ReduceGradWithOut, reduced_dims

_KEEPDIM = Attr(False, "Keep reduced dims, with size 1.")


class Logsumexp(OpDef, type="logsumexp"):
    r"""$$Out = \ln \sum_{axis} e^X$$"""

    X = Input("Tensor of any shape.")
    Out = Output("X's shape without the reduced dims; no LoD.")
    axis = Attr([0], "Dims to reduce; none means all.")
    keepdim = _KEEPDIM
    reduce_all = Attr(False, "Reduce all dims, whatever `axis` says.")

    def infer_shape(ctx):
        attrs = (ctx.attr(a) for a in ("axis", "keepdim", "reduce_all"))
        ctx.set_dim("Out", reduced_dims(ctx, ctx.dim("X"), *attrs))


class LogsumexpGrad(GradOpDef, of=Logsumexp, reads="X Out"):
    r"""$$X@GRAD = Out@GRAD \cdot e^{X - Out}$$"""


class PNorm(OpDef, type="p_norm"):
    r"""$$Out = \left(\sum_{axis} |X|^p\right)^{1/p}$$

    p = 0 counts what is not 0; infinity gives the greatest, minus infinity the smallest absolute value.
    """

    X = Input("Tensor of any shape.")
    Out = Output("X's shape without dim `axis`; no LoD.")
    porder = Attr(2.0, "The order p; 0, infinity and minus infinity are allowed.")
    axis = Attr(-1, "Dim to reduce.")
    epsilon = Attr(1e-12, "Added to the norm where the gradient divides by it.")
    keepdim = _KEEPDIM
    asvector = Attr(False, "Norm of all elements as one vector.")
    versions = OpVersion("p_norm").checkpoint("Norm of a matrix as one vector.", ("new_attr", "asvector", False))

    def infer_shape(ctx):
        axes = [ctx.attr("axis")]
        ctx.set_dim("Out", reduced_dims(ctx, ctx.dim("X"), axes, ctx.attr("keepdim"), ctx.attr("asvector")))


class PNormGrad(GradOpDef, of=PNorm, reads="X Out"):
    r"""$$X@GRAD = Out@GRAD \cdot \operatorname{sign}(X) |X|^{p-1} / (Out^{p-1} + \epsilon)$$

    For p = 0 it is 0; for infinite p Out@GRAD sign(X) where |X| = Out.
    """


class FrobeniusNorm(Reduce, type="frobenius_norm"):
    r"""$$Out = \sqrt{\sum_{dim} X^2}$$"""


class FrobeniusNormGrad(ReduceGradWithOut, of=FrobeniusNorm):
    r"""$$X@GRAD = Out@GRAD \cdot X / (Out + 10^{-12})$$"""


class SquaredL2Norm(OpDef, type="squared_l2_norm"):
    r"""$$Out = \sum X^2$$ over all elements."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape [1]; no LoD.")

    def infer_shape(ctx):
        ctx.set_dim("Out", (1,))


class SquaredL2NormGrad(GradOpDef, of=SquaredL2Norm, reads="X"):
    r"""$$X@GRAD = 2\,Out@GRAD \cdot X$$"""

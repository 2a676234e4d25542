"""Definitions of special functions."""

from __future__ import annotations

import math

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.families import GradFromOut, GradFromX, Unary, like
from oprack.op.sbp import unary
from oprack.types import AttrType

from oprack_math.composition import composed


# Special functions whose slots are spelled in lower case.
class LowerUnary(OpDef):
    """An element-wise function of one input."""

    x = Input("Tensor of any shape.")
    out = Output("Shape and LoD of x.")
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("out", "x")])


class LowerGrad(GradOpDef, reads="x"):
    """Gradient of one whose derivative is a function of x."""


class LowerGradWithOut(GradOpDef, reads="x out"):
    """Gradient of one whose derivative is a function of x and out."""


# digamma and its gradient.
class Digamma(Unary, type="digamma"):
    r"""$$Out = \psi(X) = \Gamma'(X) / \Gamma(X)$$ NaN at 0, -1, -2 ..."""

    inplace = {"X": "Out"}


class DigammaGrad(GradFromX, of=Digamma):
    r"""$$X@GRAD = Out@GRAD \cdot \psi'(X)$$"""

    make_grad = composed(lambda o, X, Out_grad: Out_grad * o.polygamma(x=X, n=1))


# erf and its gradient.
class Erf(Unary, type="erf"):
    r"""$$Out = \frac{2}{\sqrt\pi} \int_0^X e^{-t^2} dt$$"""

    inplace = {"X": "Out"}


class ErfGrad(GradFromX, of=Erf):
    r"""$$X@GRAD = Out@GRAD \cdot \frac{2}{\sqrt\pi} e^{-X^2}$$"""

    make_grad = composed(lambda o, X, Out_grad: Out_grad * o.exp(X=-(X * X)) * (2 / math.sqrt(math.pi)))

    inplace = {}


# erfinv and its gradient.
class Erfinv(Unary, type="erfinv"):
    r"""$$\operatorname{erf}(Out) = X$$ NaN beyond [-1, 1]."""

    inplace = {"X": "Out"}


class ErfinvGrad(GradFromOut, of=Erfinv):
    r"""$$X@GRAD = Out@GRAD \cdot \frac{\sqrt\pi}{2} e^{Out^2}$$"""

    make_grad = composed(lambda o, Out, Out_grad: Out_grad * o.exp(X=Out * Out) * (math.sqrt(math.pi) / 2))


# i0 and its gradient.
class I0(LowerUnary, type="i0"):
    r"""$$out = I_0(x) = \sum_k \frac{(x^2/4)^k}{(k!)^2}$$ the modified Bessel function of the first kind, order 0."""

    inplace = {"x": "out"}


class I0Grad(LowerGrad, of=I0):
    r"""$$x@GRAD = out@GRAD \cdot I_1(x)$$"""

    make_grad = composed(lambda o, x, out_grad: out_grad * o.i1(x=x))


# i0e and its gradient.
class I0e(LowerUnary, type="i0e"):
    r"""$$out = e^{-|x|} I_0(x)$$ which does not overflow."""


class I0eGrad(LowerGradWithOut, of=I0e):
    r"""$$x@GRAD = out@GRAD \cdot (e^{-|x|} I_1(x) - \operatorname{sign}(x) \cdot out)$$"""


# i1 and its gradient.
class I1(LowerUnary, type="i1"):
    r"""$$out = I_1(x) = \frac x2 \sum_k \frac{(x^2/4)^k}{k!\,(k+1)!}$$ the modified Bessel function of order 1."""


class I1Grad(LowerGradWithOut, of=I1):
    r"""$$x@GRAD = out@GRAD \cdot (I_0(x) - out / x)$$ and $out@GRAD / 2$ at 0."""


# i1e and its gradient.
class I1e(LowerUnary, type="i1e"):
    r"""$$out = e^{-|x|} I_1(x)$$ which does not overflow."""


class I1eGrad(LowerGradWithOut, of=I1e):
    r"""$$x@GRAD = out@GRAD \cdot (e^{-|x|} I_0(x) - out \cdot (\operatorname{sign}(x) + 1 / x))$$ and
    $out@GRAD / 2$ at 0."""


# lgamma and its gradient.
class Lgamma(Unary, type="lgamma"):
    r"""$$Out = \ln |\Gamma(X)|$$ infinity at 0, -1, -2 ..."""

    inplace = {"X": "Out"}


class LgammaGrad(GradFromX, of=Lgamma):
    r"""$$X@GRAD = Out@GRAD \cdot \psi(X)$$ with $\psi$ as digamma computes it."""

    make_grad = composed(lambda o, X, Out_grad: Out_grad * o.digamma(X=X))


# logit and its gradient.
class Logit(Unary, type="logit"):
    r"""$$Out = \ln \frac{z}{1 - z},\quad z = \min(\max(X, eps), 1 - eps)$$

    With eps = 0 X is not cut, and beyond [0, 1] Out is NaN.
    """

    eps = Attr(1e-6, "How near to 0 and 1 X may come.").between(0.0, 0.5)
    inplace = {"X": "Out"}


class LogitGrad(GradFromX, of=Logit):
    r"""$$X@GRAD = Out@GRAD / (X (1 - X))$$ between eps and 1 - eps, else 0."""


# polygamma and its gradient.
class Polygamma(LowerUnary, type="polygamma"):
    r"""$$out = \psi^{(n)}(x) = (-1)^{n+1} n! \sum_k (x + k)^{-n-1}$$ the derivative of order n of digamma."""

    n = Attr(REQUIRED, "Order of the derivative; 0 is digamma itself.", type=AttrType.INT).at_least(0)
    inplace = {"x": "out"}


class PolygammaGrad(LowerGrad, of=Polygamma):
    r"""$$x@GRAD = out@GRAD \cdot \psi^{(n+1)}(x)$$"""

    make_grad = composed(lambda o, x, out_grad: out_grad * o.polygamma(x=x, n=o.attrs["n"] + 1))

"""logit and its gradient."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import GradFromX, Unary


class Logit(Unary, type="logit"):
    r"""$$Out = \ln \frac{z}{1 - z},\quad z = \min(\max(X, eps), 1 - eps)$$

    With eps = 0 X is not cut, and beyond [0, 1] Out is NaN.
    """

    eps = Attr(1e-6, "How near to 0 and 1 X may come.").between(0.0, 0.5)
    inplace = {"X": "Out"}


class LogitGrad(GradFromX, of=Logit):
    r"""$$X@GRAD = Out@GRAD / (X (1 - X))$$ between eps and 1 - eps, else 0."""

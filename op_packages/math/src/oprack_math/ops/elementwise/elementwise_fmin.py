"""elementwise_fmin and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef

from oprack_math.ops.elementwise._family import AlignedElementwise


class ElementwiseFmin(AlignedElementwise, type="elementwise_fmin"):
    r"""$$Out = \min(X, Y)$$ of a number and NaN the number."""


class ElementwiseFminGrad(GradOpDef, of=ElementwiseFmin, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot [X \le Y \lor Y \text{ is NaN}],\quad Y@GRAD = Out@GRAD - X@GRAD$$"""

"""elementwise_fmax and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef

from oprack_math.ops.elementwise._family import AlignedElementwise


class ElementwiseFmax(AlignedElementwise, type="elementwise_fmax"):
    r"""$$Out = \max(X, Y)$$ of a number and NaN the number."""


class ElementwiseFmaxGrad(GradOpDef, of=ElementwiseFmax, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot [X \ge Y \lor Y \text{ is NaN}],\quad Y@GRAD = Out@GRAD - X@GRAD$$"""

"""elementwise_heaviside and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef

from oprack_math.ops.elementwise._family import AlignedElementwise


class ElementwiseHeaviside(AlignedElementwise, type="elementwise_heaviside"):
    r"""$$Out = 0 \text{ where } X < 0,\ Y \text{ where } X = 0,\ 1 \text{ where } X > 0$$ and 0 where X is NaN."""


class ElementwiseHeavisideGrad(GradOpDef, of=ElementwiseHeaviside, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = 0,\quad Y@GRAD = Out@GRAD \cdot [X = 0]$$"""

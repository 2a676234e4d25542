"""What changes of the layout share."""

from __future__ import annotations

from oprack.op import GradOpDef


class ToSparseGrad(GradOpDef, reads="x"):
    """Gradient of a change of the layout: the same numbers in the layout of x."""

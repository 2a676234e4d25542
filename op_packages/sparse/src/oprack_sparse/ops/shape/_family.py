"""What ops that move elements share."""

from __future__ import annotations

from oprack.op import GradOpDef


class MovedGrad(GradOpDef, reads="x", grads_of="x"):
    """Gradient of an op that moves elements: x takes each from where its element went."""

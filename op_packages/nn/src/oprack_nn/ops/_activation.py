"""What the activations of this pack share beyond oprack.op.families."""

from __future__ import annotations

from oprack.op.families import Unary


class Activation(Unary):
    """An element-wise function of one input that may take its memory."""

    inplace = {"X": "Out"}

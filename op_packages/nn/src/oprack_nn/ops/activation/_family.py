"""What the activations of this pack share beyond oprack.op.families."""

from __future__ import annotations

from oprack.op.families import Unary

AXIS_DOC = "Dim whose elements compete; may be negative."
"""Of softmax and log_softmax."""


class Activation(Unary):
    """An element-wise function of one input that may take its memory."""

    inplace = {"X": "Out"}

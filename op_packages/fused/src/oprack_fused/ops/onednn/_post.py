"""Attributes that ops made for oneDNN share: what happens to a result before it is written."""

from __future__ import annotations

from oprack.op import Attr

_SMOOTH = ("gelu_erf", "gelu_tanh", "mish", "sigmoid", "sqrt", "swish", "tanh")
_PIECEWISE = ("abs", "clip", "hard_sigmoid", "hard_swish", "leaky_relu", "relu", "relu6")
FUSE_ACTIVATION = Attr("", "Activation of the result.").in_set(("", *_SMOOTH, *_PIECEWISE))
FUSE_ALPHA = Attr(0.0, "First number of the activation.")
FUSE_BETA = Attr(0.0, "Second number of the activation.")
OUTPUT_SCALE = Attr(1.0, "Factor of the result.")


def unquantised(doc: str, value: float = 1.0) -> Attr:
    """A scale of int8 kernels, of which there are none here."""
    return Attr(value, f"{doc} of a quantised tensor; only {value:g}.").in_set((value,))

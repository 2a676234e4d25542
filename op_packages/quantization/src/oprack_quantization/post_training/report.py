"""What post-training quantisation returns: the program, and what it costs layer by layer."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from oprack.program import Program


@dataclass
class LayerReport:
    """One convolution or product.

    Attributes:
        op_type: The op.
        output: The variable that it writes.
        weight: Its parameter.
        scale: The number that 127 stands for in its input; 0.0 where it was not measured.
        decibels: How far its own result is above the error that its quantisation makes, 10 log10(sum y^2 / sum e^2);
            NaN where it was not measured.
        left: Why it stays in floats; "" for a layer that is quantised.
        precision: What its factors are rounded to: "int8", "bfloat16" or "float32".
    """

    op_type: str
    output: str
    weight: str
    scale: float = 0.0
    decibels: float = math.nan
    left: str = ""
    precision: str = "float32"


@dataclass
class Quantized:
    """A quantised program.

    Attributes:
        program: The program; its new parameters are in the scope that was given.
        layers: A report of each layer, the costliest first.
        outputs: Of each output of the model, how far it is above its error, in decibels.
        others: Why other ops of the types that were asked for are no layers with a weight, by what they write.
        errors: Where precisions were chosen, the relative error of each output in the precisions that were.
        seconds: Where precisions were chosen, what all inputs took in those that were compared.
    """

    program: Program
    layers: list[LayerReport] = field(default_factory=list)
    outputs: dict[str, float] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def precisions(self) -> list[str]:
        """Which of "int8" and "bfloat16" a predictor has to be asked for, so that the layers compute in them."""
        return [name for name in ("int8", "bfloat16") if any(layer.precision == name for layer in self.layers)]

    def why_nothing(self) -> str:
        """Why no layer was quantised; "" when one was."""
        if any(layer.precision != "float32" for layer in self.layers):
            return ""
        reasons = Counter(layer.left for layer in self.layers) + Counter(self.others.values())
        if not reasons:
            return "the program has no convolution or product of the types that were asked for"
        return "; ".join(f"{reason} ({count} ops)" if count > 1 else reason for reason, count in reasons.most_common(4))


class Noise:
    """Signal and error, added up over inputs."""

    def __init__(self) -> None:
        self._signal = self._error = 0.0

    def add(self, want: np.ndarray, got: np.ndarray) -> None:
        """One more result; its error is all of it where the other one has another shape."""
        x, y = (np.asarray(some, np.float64) for some in (want, got))
        signal = float(np.sum(x**2))
        self._signal += signal
        self._error += float(np.sum((x - y) ** 2)) if x.shape == y.shape else signal

    @property
    def decibels(self) -> float:
        """10 log10(signal / error); NaN before anything was added."""
        if not self._error:
            return math.inf if self._signal else math.nan
        return 10 * math.log10(self._signal / self._error) if self._signal else -math.inf

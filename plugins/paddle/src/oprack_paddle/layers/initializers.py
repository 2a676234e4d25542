"""paddle.nn.initializer: what oprack.initializer has not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from oprack.initializer import NumpyArrayInitializer
from oprack.layers import Variable
from oprack.layers.variable import Initializer


class Assign(Initializer):
    """These numbers."""

    def __init__(self, value: Any, name: Any = None) -> None:
        self._value = np.asarray(value)

    def __call__(self, var: Variable) -> None:
        """Append the op that makes them."""
        array = self._value.astype(np.dtype(var.dtype)).reshape([d for d in var.shape])
        NumpyArrayInitializer(array)(var)


class Dirac(Initializer):
    """Convolutions that pass their input on: 1 in the middle of the kernel of one channel, 0 elsewhere."""

    def __init__(self, groups: int = 1, name: Any = None) -> None:
        self._groups = groups

    def __call__(self, var: Variable) -> None:
        """Append the op that makes them."""
        shape = [int(d) for d in var.shape]
        array = np.zeros(shape, np.dtype(var.dtype))
        each = shape[0] // self._groups
        middle = tuple(s // 2 for s in shape[2:])
        for group in range(self._groups):
            for i in range(min(each, shape[1])):
                array[(group * each + i, i, *middle)] = 1
        NumpyArrayInitializer(array)(var)


_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75}


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """By how much an activation shrinks what passes it, as a factor for initial weights."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else float(param)) ** 2))
    known = {"sigmoid", "linear", *(f"conv{n}d{t}" for n in "123" for t in ("", "_transpose")), "conv_transpose1d"}
    if nonlinearity not in _GAINS and nonlinearity not in known | {"conv_transpose2d", "conv_transpose3d"}:
        raise ValueError(
            f"calculate_gain: nonlinearity is {nonlinearity!r}; expected one of {', '.join([*_GAINS, *sorted(known)])}"
        )
    return _GAINS.get(nonlinearity, 1.0)


def set_global_initializer(weight_init: Any, bias_init: Any = None) -> None:
    """How parameters begin for which nothing else is said."""
    from oprack.layers import variable

    if "_paddle_default" not in vars(variable):
        variable._paddle_default = variable.default_initializer  # type: ignore[attr-defined]
    first = variable._paddle_default  # type: ignore[attr-defined]

    def default_initializer(is_bias: bool) -> Initializer:
        chosen = bias_init if is_bias else weight_init
        return chosen if chosen is not None else first(is_bias)

    variable.default_initializer = default_initializer

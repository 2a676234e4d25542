"""Initializers: each appends the op to a startup program that fills one variable."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.layers.append import append_op
from oprack.layers.variable import Variable
from oprack.types import dtype_enum


class Initializer(ABC):
    """Called with a variable of a startup program; appends the op that fills it."""

    @abstractmethod
    def __call__(self, var: Variable) -> None:
        """Append the op to block 0 of the variable's program."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


def _append(op_type: str, var: Variable, attrs: Mapping[str, Any]) -> None:
    common = {"shape": list(var.shape), "dtype": int(dtype_enum(var.dtype))}
    program = var.program
    append_op(op_type, {}, {"Out": var}, {**common, **attrs}, program=program, block=program.global_block())


def _fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Inputs and outputs of a unit: of a matrix [in, out], or of filters [out, in, *kernel]."""
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    if len(shape) == 2:
        return shape[0], shape[1]
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


class Constant(Initializer):
    """Every element is `value`: op fill_constant."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def __call__(self, var: Variable) -> None:
        _append("fill_constant", var, {"value": float(self.value), "str_value": str(self.value)})


class Uniform(Initializer):
    """From U[low, high): op uniform_random. seed 0: the executor's."""

    def __init__(self, low: float = -1.0, high: float = 1.0, seed: int = 0) -> None:
        if not low < high:
            raise InvalidArgumentError(f"Uniform: low is {low} and high is {high}; expected low < high")
        self.low, self.high, self.seed = low, high, seed

    def __call__(self, var: Variable) -> None:
        _append("uniform_random", var, {"min": self.low, "max": self.high, "seed": self.seed})


class Normal(Initializer):
    """From N(loc, scale^2): op gaussian_random. seed 0: the executor's."""

    op_type = "gaussian_random"

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        if scale < 0:
            raise InvalidArgumentError(f"{type(self).__name__}: scale is {scale}; expected a standard deviation >= 0")
        self.loc, self.scale, self.seed = loc, scale, seed

    def __call__(self, var: Variable) -> None:
        _append(self.op_type, var, {"mean": self.loc, "std": self.scale, "seed": self.seed})


class TruncatedNormal(Normal):
    """From N(loc, scale^2), cut off at two standard deviations: op truncated_gaussian_random."""

    op_type = "truncated_gaussian_random"


class Xavier(Initializer):
    r"""Keeps the variance of signals and gradients (Glorot and Bengio 2010), the default of weights.

    uniform: $$U[-l, l), l = \sqrt{6 / (fan\_in + fan\_out)}$$, else $$N(0, 2 / (fan\_in + fan\_out))$$. fan_in and
    fan_out: default from the shape, [in, out] or [out, in, *kernel].
    """

    def __init__(
        self, uniform: bool = True, fan_in: float | None = None, fan_out: float | None = None, seed: int = 0
    ) -> None:
        self.uniform, self.fan_in, self.fan_out, self.seed = uniform, fan_in, fan_out, seed

    def __call__(self, var: Variable) -> None:
        fan_in, fan_out = _fans(var.shape)
        fans = (fan_in if self.fan_in is None else self.fan_in) + (fan_out if self.fan_out is None else self.fan_out)
        if self.uniform:
            limit = math.sqrt(6.0 / fans)
            Uniform(-limit, limit, self.seed)(var)
        else:
            Normal(0.0, math.sqrt(2.0 / fans), self.seed)(var)


class MSRA(Initializer):
    r"""For rectifiers (He et al. 2015): uniform $$U[-l, l), l = \sqrt{6 / fan\_in}$$, else $$N(0, 2 / fan\_in)$$."""

    def __init__(self, uniform: bool = True, fan_in: float | None = None, seed: int = 0) -> None:
        self.uniform, self.fan_in, self.seed = uniform, fan_in, seed

    def __call__(self, var: Variable) -> None:
        fan_in = _fans(var.shape)[0] if self.fan_in is None else self.fan_in
        if self.uniform:
            limit = math.sqrt(6.0 / fan_in)
            Uniform(-limit, limit, self.seed)(var)
        else:
            Normal(0.0, math.sqrt(2.0 / fan_in), self.seed)(var)


class NumpyArrayInitializer(Initializer):
    """A given array, carried by the startup program itself: op assign_value. value: of the variable's shape."""

    _SLOTS = {
        "bool": "bool_values",
        "float32": "fp32_values",
        "float64": "fp64_values",
        "int32": "int32_values",
        "int64": "int64_values",
    }

    def __init__(self, value: Any) -> None:
        import numpy as np

        self.value = np.asarray(value)

    def __call__(self, var: Variable) -> None:
        slot = self._SLOTS.get(str(var.dtype))
        if slot is None or self.value.shape != var.shape:
            raise InvalidArgumentError(
                f"NumpyArrayInitializer: variable {var.name!r} is {var.dtype}{list(var.shape)}, the array has shape "
                f"{list(self.value.shape)}; expected the same shape and dtype {', '.join(self._SLOTS)}"
            )
        values = self.value.astype(var.dtype).ravel().tolist()
        _append("assign_value", var, {slot: [int(v) for v in values] if slot == "bool_values" else values})

    def __repr__(self) -> str:
        return f"NumpyArrayInitializer({self.value.dtype}{list(self.value.shape)})"


class Bilinear(Initializer):
    """Weights [out, in, k, k] with which a transposed convolution of stride ceil(k / 2) interpolates linearly."""

    def __call__(self, var: Variable) -> None:
        import numpy as np

        if len(var.shape) != 4 or var.shape[2] != var.shape[3]:
            raise InvalidArgumentError(
                f"Bilinear: variable {var.name!r} has shape {list(var.shape)}; expected filters [o, i, k, k]"
            )
        k = var.shape[3]
        factor = math.ceil(k / 2)
        center = (2 * factor - 1 - factor % 2) / (2 * factor)
        tap = 1 - np.abs(np.arange(k) / factor - center)
        NumpyArrayInitializer(np.broadcast_to(np.outer(tap, tap), var.shape))(var)


ConstantInitializer = Constant
UniformInitializer = Uniform
NormalInitializer = Normal
TruncatedNormalInitializer = TruncatedNormal
XavierInitializer = Xavier
MSRAInitializer = MSRA
BilinearInitializer = Bilinear

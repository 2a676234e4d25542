"""Initializers that draw numbers when the startup program runs."""

from __future__ import annotations

import math

from oprack.errors import InvalidArgumentError
from oprack.initializer import Initializer
from oprack.layers import Variable


def _fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Inputs and outputs of a unit: of a matrix [in, out], or of filters [out, in, *kernel]."""
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    if len(shape) == 2:
        return shape[0], shape[1]
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


class Uniform(Initializer):
    """Draws from the uniform distribution over [low, high): op uniform_random.

    Args:
        low: The lower bound.
        high: The upper bound.
        seed: Seed of the generator; 0: that of the executor.

    Raises:
        InvalidArgumentError: low is not less than high.
    """

    in_order = True  # the op draws element by element, so that parts of a parameter can be drawn by themselves

    def __init__(self, low: float = -1.0, high: float = 1.0, seed: int = 0) -> None:
        if not low < high:
            raise InvalidArgumentError(f"Uniform: low is {low} and high is {high}; expected low < high")
        self.low, self.high, self.seed = low, high, seed

    def __call__(self, var: Variable) -> None:
        self.append("uniform_random", var, {"min": self.low, "max": self.high, "seed": self.seed})


class Normal(Initializer):
    """Draws from the normal distribution N(loc, scale^2): op gaussian_random.

    Args:
        loc: The mean.
        scale: The standard deviation.
        seed: Seed of the generator; 0: that of the executor.

    Raises:
        InvalidArgumentError: scale is negative.
    """

    in_order = True
    op_type = "gaussian_random"

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        if scale < 0:
            raise InvalidArgumentError(f"{type(self).__name__}: scale is {scale}; expected a standard deviation >= 0")
        self.loc, self.scale, self.seed = loc, scale, seed

    def __call__(self, var: Variable) -> None:
        self.append(self.op_type, var, {"mean": self.loc, "std": self.scale, "seed": self.seed})


class TruncatedNormal(Normal):
    """Draws from N(loc, scale^2), cut off at two standard deviations: op truncated_gaussian_random.

    Args:
        loc: The mean.
        scale: The standard deviation.
        seed: Seed of the generator; 0: that of the executor.

    Raises:
        InvalidArgumentError: scale is negative.
    """

    op_type = "truncated_gaussian_random"
    in_order = False  # what lies outside is drawn again at the end


class Xavier(Initializer):
    r"""Keeps the variance of signals and gradients (Glorot and Bengio, 2010), the default of weights.

    Draws from $$U[-l, l), l = \sqrt{6 / (fan\_in + fan\_out)}$$ or $$N(0, 2 / (fan\_in + fan\_out))$$.

    Args:
        uniform: Whether to draw from the uniform distribution; False: the normal one.
        fan_in: Number of inputs of a unit; None: from the shape, [in, out] or [out, in, *kernel].
        fan_out: Number of outputs of a unit; None: from the shape, [in, out] or [out, in, *kernel].
        seed: Seed of the generator; 0: that of the executor.
    """

    in_order = True

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
    r"""Keeps the variance of signals behind rectifiers (He et al., 2015).

    Draws from $$U[-l, l), l = \sqrt{6 / fan\_in}$$ or $$N(0, 2 / fan\_in)$$.

    Args:
        uniform: Whether to draw from the uniform distribution; False: the normal one.
        fan_in: Number of inputs of a unit; None: from the shape, [in, out] or [out, in, *kernel].
        seed: Seed of the generator; 0: that of the executor.
    """

    in_order = True

    def __init__(self, uniform: bool = True, fan_in: float | None = None, seed: int = 0) -> None:
        self.uniform, self.fan_in, self.seed = uniform, fan_in, seed

    def __call__(self, var: Variable) -> None:
        fan_in = _fans(var.shape)[0] if self.fan_in is None else self.fan_in
        if self.uniform:
            limit = math.sqrt(6.0 / fan_in)
            Uniform(-limit, limit, self.seed)(var)
        else:
            Normal(0.0, math.sqrt(2.0 / fan_in), self.seed)(var)


class XavierUniform(Xavier):
    r"""Draws from $$U[-l, l), l = \sqrt{6 / (fan\_in + fan\_out)}$$: Xavier under Paddle 2's name.

    Args:
        fan_in: Number of inputs of a unit; None: from the shape, [in, out] or [out, in, *kernel].
        fan_out: Number of outputs of a unit; None: from the shape, [in, out] or [out, in, *kernel].
    """

    def __init__(self, fan_in: float | None = None, fan_out: float | None = None) -> None:
        super().__init__(True, fan_in, fan_out)


class XavierNormal(Xavier):
    r"""Draws from $$N(0, 2 / (fan\_in + fan\_out))$$: Xavier under Paddle 2's name.

    Args:
        fan_in: Number of inputs of a unit; None: from the shape, [in, out] or [out, in, *kernel].
        fan_out: Number of outputs of a unit; None: from the shape, [in, out] or [out, in, *kernel].
    """

    def __init__(self, fan_in: float | None = None, fan_out: float | None = None) -> None:
        super().__init__(False, fan_in, fan_out)


class KaimingUniform(Initializer):
    r"""Draws from $$U[-l, l), l = gain \sqrt{3 / fan\_in}$$ (He et al., 2015).

    Args:
        fan_in: Number of inputs of a unit; None: from the shape, [in, out] or [out, in, *kernel].
        negative_slope: The slope of "leaky_relu" for negative elements.
        nonlinearity: The activation behind the parameter, which says the gain: "relu", "leaky_relu", "tanh", "selu",
            "linear", "sigmoid", "conv1d", "conv2d" or "conv3d".

    Raises:
        InvalidArgumentError: nonlinearity is none of these.
    """

    in_order = True
    uniform = True

    def __init__(self, fan_in: float | None = None, negative_slope: float = 0.0, nonlinearity: str = "relu") -> None:
        gains = {
            "relu": math.sqrt(2.0),
            "leaky_relu": math.sqrt(2.0 / (1 + negative_slope**2)),
            "tanh": 5.0 / 3,
            "selu": 0.75,
            **dict.fromkeys(("linear", "sigmoid", "conv1d", "conv2d", "conv3d"), 1.0),
        }
        if nonlinearity not in gains:
            raise InvalidArgumentError(
                f"{type(self).__name__}: nonlinearity is {nonlinearity!r}; expected one of {', '.join(gains)}"
            )
        self.fan_in, self.gain = fan_in, gains[nonlinearity]

    def __call__(self, var: Variable) -> None:
        deviation = self.gain / math.sqrt(_fans(var.shape)[0] if self.fan_in is None else self.fan_in)
        if self.uniform:
            Uniform(-math.sqrt(3.0) * deviation, math.sqrt(3.0) * deviation)(var)
        else:
            Normal(0.0, deviation)(var)


class KaimingNormal(KaimingUniform):
    r"""Draws from $$N(0, gain^2 / fan\_in)$$ (He et al., 2015).

    Args:
        fan_in: Number of inputs of a unit; None: from the shape, [in, out] or [out, in, *kernel].
        negative_slope: The slope of "leaky_relu" for negative elements.
        nonlinearity: The activation behind the parameter, which says the gain, as for KaimingUniform.

    Raises:
        InvalidArgumentError: nonlinearity is none of those.
    """

    uniform = False


UniformInitializer = Uniform
NormalInitializer = Normal
TruncatedNormalInitializer = TruncatedNormal
XavierInitializer = Xavier
MSRAInitializer = MSRA

"""The activations that oneDNN applies to a result, by their names in attributes."""

from __future__ import annotations

from collections.abc import Callable

from oprack.kernel import Array, ArrayModule

from oprack_fused.kernels._steps import Steps

_PLAIN = {name: name for name in ("abs", "mish", "relu", "sigmoid", "sqrt", "tanh")}


def activated(x: Array, name: str, alpha: float, beta: float, step: Steps, xp: ArrayModule) -> Array:
    """An activation of x.

    Args:
        x: Any shape.
        name: The activation; "" is none.
        alpha: Its first number.
        beta: Its second number.
        step: Runs plain ops.
        xp: The array library.

    Returns:
        The result.
    """
    if name in _PLAIN:
        return step(_PLAIN[name], X=x)

    def linear() -> Array:
        return xp.clip(alpha * x + beta, 0, 1).astype(x.dtype)

    others: dict[str, Callable[[], Array]] = {
        "": lambda: x,
        "clip": lambda: xp.clip(x, x.dtype.type(alpha), x.dtype.type(beta)),
        "gelu_erf": lambda: step("gelu", X=x),
        "gelu_tanh": lambda: step("gelu", X=x, approximate=True),
        "hard_sigmoid": linear,
        "hard_swish": lambda: x * linear(),
        "leaky_relu": lambda: step("leaky_relu", X=x, alpha=alpha),
        "relu6": lambda: xp.clip(x, 0, x.dtype.type(alpha)),
        "swish": lambda: x / (1 + xp.exp(-x * x.dtype.type(alpha))),
    }
    return others[name]()

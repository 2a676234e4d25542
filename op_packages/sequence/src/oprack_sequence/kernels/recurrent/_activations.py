"""Activations of recurrent cells: computed in place, with derivatives in terms of the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oprack.kernel import Array, ArrayModule


@dataclass(frozen=True)
class Activation:
    """apply(x, xp): x becomes f(x). slope(y, xp): f'(x) where y = f(x)."""

    apply: Callable[[Any, Any], None]
    slope: Callable[[Any, Any], Any]


def _sigmoid(x: Array, xp: ArrayModule) -> None:
    # large negative x overflows in exp and gives 1 / inf = 0, which is right; callers silence the warning
    xp.negative(x, out=x)
    xp.exp(x, out=x)
    x += 1
    xp.reciprocal(x, out=x)


def _tanh(x: Array, xp: ArrayModule) -> None:
    xp.tanh(x, out=x)


def _relu(x: Array, xp: ArrayModule) -> None:
    xp.maximum(x, 0, out=x)


def _identity(x: Array, xp: ArrayModule) -> None:
    pass


ACTIVATIONS = {
    "identity": Activation(_identity, lambda y, xp: xp.ones_like(y)),
    "sigmoid": Activation(_sigmoid, lambda y, xp: y * (1 - y)),
    "tanh": Activation(_tanh, lambda y, xp: 1 - y * y),
    "relu": Activation(_relu, lambda y, xp: (y > 0).astype(y.dtype)),
}
"""By the names that op attributes use; gru_unit numbers them in this order."""

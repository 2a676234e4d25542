"""What all distributions have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
from oprack import functional as F

Tensor = Any


def tensors(*values: Any) -> list[Tensor]:
    """Numbers and arrays as floating tensors of one shape."""
    found = [v if isinstance(v, oprack.Tensor) else oprack.to_tensor(np.asarray(v, "float32")) for v in values]
    shape = list(np.broadcast_shapes(*[tuple(t.shape) for t in found]))
    return [t if list(t.shape) == shape else t.broadcast_to(shape) for t in found]


def noise(kind: str, shape: Any, dtype: str) -> Tensor:
    """Random numbers: "normal" of mean 0 and deviation 1, "uniform" from 0 to 1."""
    sizes = [int(s) for s in shape]
    if kind == "normal":
        return F.gaussian_random(shape=sizes, dtype=dtype, mean=0.0, std=1.0)
    return F.uniform_random(shape=sizes, dtype=dtype, min=0.0, max=1.0)


class Distribution:
    """A random distribution.

    Args:
        batch_shape: The shape of the distributions that it holds.
        event_shape: The shape of one sample.
    """

    def __init__(self, batch_shape: Any = (), event_shape: Any = ()) -> None:
        self._batch_shape, self._event_shape = tuple(batch_shape), tuple(event_shape)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the distributions that it holds."""
        return self._batch_shape

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return oprack.sqrt(self.variance)

    def sample(self, shape: Any = ()) -> Tensor:
        """Samples through which no gradients flow."""
        with oprack.no_grad():
            return self.rsample(shape)

    def rsample(self, shape: Any = ()) -> Tensor:
        """Samples through which gradients flow."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at a value."""
        raise NotImplementedError

    def prob(self, value: Tensor) -> Tensor:
        """The density at a value."""
        return F.exp(self.log_prob(value))

    def probs(self, value: Tensor) -> Tensor:
        """The density at a value."""
        return self.prob(value)

    def kl_divergence(self, other: Distribution) -> Tensor:
        """The Kullback-Leibler divergence from another distribution."""
        return kl_divergence(self, other)

    def _extend_shape(self, sample_shape: Any) -> tuple[int, ...]:
        return (*sample_shape, *self._batch_shape, *self._event_shape)


class ExponentialFamily(Distribution):
    """A distribution of the exponential family."""


_RULES: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(cls_p: type, cls_q: type) -> Callable[[Any], Any]:
    """A decorator of a function that computes the divergence of two classes."""

    def registered(function: Any) -> Any:
        _RULES[cls_p, cls_q] = function
        return function

    return registered


def kl_divergence(p: Any, q: Any) -> Any:
    """The Kullback-Leibler divergence of two distributions.

    Raises:
        NotImplementedError: Nobody has registered one for their classes.
    """
    found = [(a, b) for a, b in _RULES if isinstance(p, a) and isinstance(q, b)]
    if not found:
        raise NotImplementedError(
            f"kl_divergence: no rule for {type(p).__name__} and {type(q).__name__}; register_kl adds one"
        )
    nearest = min(found, key=lambda pair: (type(p).__mro__.index(pair[0]), type(q).__mro__.index(pair[1])))
    return _RULES[nearest](p, q)

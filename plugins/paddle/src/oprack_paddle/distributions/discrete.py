"""Distributions of whole numbers and classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oprack
from oprack import functional as F

from oprack_paddle.distributions.base import Distribution, ExponentialFamily, noise, register_kl, tensors

Tensor = Any


def _clipped(p: Tensor) -> Tensor:
    eps = float(np.finfo(p.dtype).eps)
    return oprack.clip(p, eps, 1 - eps)


class Bernoulli(ExponentialFamily):
    """1 with a probability, else 0."""

    def __init__(self, probs: Any, name: Any = None) -> None:
        (self.probs_param,) = tensors(probs)
        self.logits = oprack.logit(_clipped(self.probs_param))
        vars(self)["probs"] = self.probs_param  # in place of the method of that name
        super().__init__(self.probs_param.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.probs_param

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.probs_param * (1 - self.probs_param)

    def sample(self, shape: Any = ()) -> Tensor:
        """Samples."""
        u = noise("uniform", self._extend_shape(shape), self.probs_param.dtype)
        return (u < self.probs_param).astype(self.probs_param.dtype)

    def rsample(self, shape: Any = (), temperature: float = 1.0) -> Tensor:
        """Smooth samples through which gradients flow."""
        u = oprack.clip(noise("uniform", self._extend_shape(shape), self.probs_param.dtype), 1e-7, 1 - 1e-7)
        return (self.logits + oprack.log(u) - F.log1p(-u)) / temperature

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a value."""
        p = _clipped(self.probs_param)
        return value * oprack.log(p) + (1 - value) * F.log1p(-p)

    def entropy(self) -> Tensor:
        """The entropy."""
        p = _clipped(self.probs_param)
        return -(p * oprack.log(p) + (1 - p) * F.log1p(-p))

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a value that is not larger."""
        zero, one = oprack.zeros_like(self.probs_param), oprack.ones_like(self.probs_param)
        return oprack.where(value < 0, zero, oprack.where(value >= 1, one, 1 - self.probs_param))


class Geometric(Distribution):
    """How often 0 comes before the first 1."""

    probs: Any

    def __init__(self, probs: Any) -> None:
        (given,) = tensors(probs)
        vars(self)["probs"] = given  # in place of the method of that name
        super().__init__(given.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return 1.0 / self.probs - 1.0

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (1.0 / self.probs - 1.0) / self.probs

    def rsample(self, shape: Any = ()) -> Tensor:
        """Samples."""
        u = oprack.clip(noise("uniform", self._extend_shape(shape), self.probs.dtype), 1e-7, 1 - 1e-7)
        return F.floor(oprack.log(u) / F.log1p(-self.probs))

    def pmf(self, k: Any) -> Tensor:
        """The probability of a number."""
        return (1.0 - self.probs) ** k * self.probs

    def log_pmf(self, k: Any) -> Tensor:
        """The logarithm of the probability of a number."""
        return oprack.log(self.pmf(k))

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the probability of a number."""
        return self.log_pmf(value)

    def cdf(self, k: Any) -> Tensor:
        """The probability of a number that is not larger."""
        return 1.0 - (1.0 - self.probs) ** (k + 1)

    def entropy(self) -> Tensor:
        """The entropy."""
        p: Any = self.probs
        return -((1.0 - p) * F.log1p(-p) + p * oprack.log(p)) / p


class Categorical(Distribution):
    """Classes, by numbers to which their probabilities are proportional."""

    def __init__(self, logits: Any, name: Any = None) -> None:
        (self.logits,) = tensors(logits)
        self._prob = self.logits / self.logits.sum(-1, keepdim=True)
        super().__init__(self.logits.shape[:-1])

    def sample(self, shape: Any = ()) -> Tensor:
        """Classes."""
        sizes, count = list(shape), math.prod(shape)
        flat = self._prob.reshape([-1, self._prob.shape[-1]])
        drawn = F.multinomial(flat, num_samples=count, replacement=True)
        return drawn.transpose([1, 0]).reshape([*sizes, *self._prob.shape[:-1]])

    def _logs(self) -> Tensor:
        shifted = self.logits - oprack.max(self.logits, -1, True)
        return shifted - oprack.log(F.exp(shifted).sum(-1, keepdim=True))

    def entropy(self) -> Tensor:
        """The entropy of the softmax of the logits."""
        logs = self._logs()
        return -(F.exp(logs) * logs).sum(-1)

    def kl_divergence(self, other: Any) -> Tensor:
        """The Kullback-Leibler divergence of the softmax of the logits."""
        mine, theirs = self._logs(), other._logs()
        return (F.exp(mine) * (mine - theirs)).sum(-1, keepdim=True)

    def probs(self, value: Tensor) -> Tensor:
        """The probabilities of classes."""
        if self._prob.ndim == 1:
            return F.gather(self._prob, value.reshape([-1])).reshape(list(value.shape))
        index = (
            value.reshape([1] * (self._prob.ndim - value.ndim) + list(value.shape))
            if value.ndim < self._prob.ndim
            else value
        )
        return oprack.take_along_axis(self._prob, index.broadcast_to([*self._prob.shape[:-1], index.shape[-1]]), -1)

    def prob(self, value: Tensor) -> Tensor:
        """The probabilities of classes."""
        return self.probs(value)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithms of the probabilities of classes."""
        return oprack.log(self.probs(value))


class Multinomial(Distribution):
    """How often each class comes in so many draws."""

    probs: Any

    def __init__(self, total_count: int, probs: Any) -> None:
        if total_count < 1:
            raise ValueError(f"Multinomial: total_count is {total_count}; expected a positive number")
        (given,) = tensors(probs)
        self.total_count = total_count
        vars(self)["probs"] = given / given.sum(-1, keepdim=True)  # in place of the method of that name
        super().__init__(given.shape[:-1], given.shape[-1:])

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, shape: Any = ()) -> Tensor:
        """Counts."""
        from oprack_paddle.state import generator

        p = np.asarray(self.probs, "float64")
        drawn = generator().multinomial(self.total_count, p / p.sum(-1, keepdims=True), (*shape, *self._batch_shape))
        return oprack.to_tensor(drawn.astype(self.probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of counts."""
        value = value.astype(self.probs.dtype)
        terms = (value * oprack.log(_clipped(self.probs)) - F.lgamma(value + 1)).sum(-1)
        return F.lgamma(value.sum(-1) + 1) + terms

    def entropy(self) -> Tensor:
        """The entropy."""
        n, p = self.total_count, np.asarray(self.probs, "float64")
        k = np.arange(1, n + 1).reshape(-1, *[1] * p.ndim)
        lgamma = np.vectorize(math.lgamma)
        choose = lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)
        weights = np.exp(choose + k * np.log(p) + (n - k) * np.log1p(-p))
        one = -(p * np.log(p)).sum(-1)
        found = n * one - math.lgamma(n + 1) + (weights * lgamma(k + 1.0)).sum((0, -1))
        return oprack.to_tensor(found.astype(self.probs.dtype))


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    return Categorical.kl_divergence(p, q)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    a, b = _clipped(p.probs_param), _clipped(q.probs_param)
    return a * (oprack.log(a) - oprack.log(b)) + (1 - a) * (F.log1p(-a) - F.log1p(-b))


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return oprack.log(p.probs / q.probs) + (1 / p.probs - 1) * (F.log1p(-p.probs) - F.log1p(-q.probs))

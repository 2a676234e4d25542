"""Distributions of real numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oprack
from oprack import functional as F

from oprack_paddle.distributions.base import Distribution, ExponentialFamily, noise, register_kl, tensors
from oprack_paddle.state import generator

Tensor = Any
_LOG_2PI = math.log(2 * math.pi)


class _LocScale(Distribution):
    """A shape that is moved and stretched."""

    def __init__(self, loc: Any, scale: Any, name: Any = None) -> None:
        self.loc, self.scale = tensors(loc, scale)
        super().__init__(self.loc.shape)

    def _standard(self, shape: Any) -> Tensor:
        raise NotImplementedError

    def rsample(self, shape: Any = ()) -> Tensor:
        """Samples through which gradients flow."""
        return self.loc + self.scale * self._standard(self._extend_shape(shape))

    def _z(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale


class Normal(_LocScale):
    """The normal distribution."""

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale * self.scale

    def _standard(self, shape: Any) -> Tensor:
        return noise("normal", shape, self.loc.dtype)

    def sample(self, shape: Any = (), seed: int = 0) -> Tensor:
        """Samples through which no gradients flow."""
        return super().sample(shape)

    def entropy(self) -> Tensor:
        """The entropy."""
        return 0.5 + 0.5 * _LOG_2PI + oprack.log(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at a value."""
        z = self._z(value)
        return -0.5 * z * z - oprack.log(self.scale) - 0.5 * _LOG_2PI


class LogNormal(Normal):
    """A number whose logarithm is normal."""

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return F.exp(self.loc + self.scale * self.scale * 0.5)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        square = self.scale * self.scale
        return F.expm1(square) * F.exp(2 * self.loc + square)

    def rsample(self, shape: Any = ()) -> Tensor:
        """Samples through which gradients flow."""
        return F.exp(super().rsample(shape))

    def entropy(self) -> Tensor:
        """The entropy."""
        return super().entropy() + self.loc

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at a value."""
        return super().log_prob(oprack.log(value)) - oprack.log(value)


class Laplace(_LocScale):
    """The Laplace distribution."""

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return 2 * self.scale * self.scale

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return math.sqrt(2) * self.scale

    def _standard(self, shape: Any) -> Tensor:
        u = noise("uniform", shape, self.loc.dtype) - 0.5
        return -F.sign(u) * F.log1p(-2 * F.abs(u) * (1 - 1e-7))

    def entropy(self) -> Tensor:
        """The entropy."""
        return 1 + oprack.log(2 * self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at a value."""
        return -oprack.log(2 * self.scale) - F.abs(self._z(value))

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a smaller value."""
        z = self._z(value)
        return 0.5 - 0.5 * F.sign(z) * F.expm1(-F.abs(z))

    def icdf(self, value: Tensor) -> Tensor:
        """The value of a probability."""
        term = value - 0.5
        return self.loc - self.scale * F.sign(term) * F.log1p(-2 * F.abs(term))


class Gumbel(_LocScale):
    """The Gumbel distribution."""

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc + self.scale * float(np.euler_gamma)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale * self.scale * (math.pi**2 / 6)

    def _standard(self, shape: Any) -> Tensor:
        return -oprack.log(-oprack.log(oprack.clip(noise("uniform", shape, self.loc.dtype), 1e-7, 1 - 1e-7)))

    def entropy(self) -> Tensor:
        """The entropy."""
        return oprack.log(self.scale) + 1 + float(np.euler_gamma)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at a value."""
        z = self._z(value)
        return -(z + F.exp(-z)) - oprack.log(self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a smaller value."""
        return F.exp(-F.exp(-self._z(value)))


class Cauchy(_LocScale):
    """The Cauchy distribution, which has neither mean nor variance."""

    @property
    def mean(self) -> Tensor:
        """There is none."""
        raise ValueError("Cauchy distribution has no mean.")

    @property
    def variance(self) -> Tensor:
        """There is none."""
        raise ValueError("Cauchy distribution has no variance.")

    def _standard(self, shape: Any) -> Tensor:
        return F.tan(math.pi * (noise("uniform", shape, self.loc.dtype) - 0.5))

    def entropy(self) -> Tensor:
        """The entropy."""
        return math.log(4 * math.pi) + oprack.log(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at a value."""
        z = self._z(value)
        return -math.log(math.pi) - oprack.log(self.scale) - F.log1p(z * z)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a smaller value."""
        return F.atan(self._z(value)) / math.pi + 0.5


class Uniform(Distribution):
    """Numbers between two bounds."""

    def __init__(self, low: Any, high: Any, name: Any = None) -> None:
        self.low, self.high = tensors(low, high)
        super().__init__(self.low.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (self.high - self.low) ** 2 / 12

    def rsample(self, shape: Any = ()) -> Tensor:
        """Samples through which gradients flow."""
        return self.low + (self.high - self.low) * noise("uniform", self._extend_shape(shape), self.low.dtype)

    def sample(self, shape: Any = (), seed: int = 0) -> Tensor:
        """Samples through which no gradients flow."""
        return super().sample(shape)

    def entropy(self) -> Tensor:
        """The entropy."""
        return oprack.log(self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at a value."""
        return oprack.log(self.prob(value))

    def prob(self, value: Tensor) -> Tensor:
        """The density at a value."""
        inside = F.logical_and(value > self.low, value < self.high).astype(self.low.dtype)
        return inside / (self.high - self.low)


class Beta(ExponentialFamily):
    """The beta distribution."""

    def __init__(self, alpha: Any, beta: Any) -> None:
        self.alpha, self.beta = tensors(alpha, beta)
        super().__init__(self.alpha.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        total = self.alpha + self.beta
        return self.alpha * self.beta / (total * total * (total + 1))

    def sample(self, shape: Any = ()) -> Tensor:
        """Samples."""
        drawn = generator().beta(np.asarray(self.alpha), np.asarray(self.beta), self._extend_shape(shape))
        return oprack.to_tensor(drawn.astype(self.alpha.dtype))

    def _log_norm(self) -> Tensor:
        return F.lgamma(self.alpha) + F.lgamma(self.beta) - F.lgamma(self.alpha + self.beta)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at a value."""
        return (self.alpha - 1) * oprack.log(value) + (self.beta - 1) * F.log1p(-value) - self._log_norm()

    def entropy(self) -> Tensor:
        """The entropy."""
        a, b = self.alpha, self.beta
        return self._log_norm() - (a - 1) * F.digamma(a) - (b - 1) * F.digamma(b) + (a + b - 2) * F.digamma(a + b)


class Dirichlet(ExponentialFamily):
    """Probabilities that add up to one."""

    def __init__(self, concentration: Any) -> None:
        (self.concentration,) = tensors(concentration)
        if self.concentration.ndim < 1:
            raise ValueError("Dirichlet: concentration has no dims; expected one at least")
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:])

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total * total * (total + 1))

    def sample(self, shape: Any = ()) -> Tensor:
        """Samples."""
        gamma = generator().standard_gamma(np.asarray(self.concentration), self._extend_shape(shape))
        return oprack.to_tensor((gamma / gamma.sum(-1, keepdims=True)).astype(self.concentration.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at a value."""
        c = self.concentration
        return (oprack.log(value) * (c - 1)).sum(-1) + F.lgamma(c.sum(-1)) - F.lgamma(c).sum(-1)

    def entropy(self) -> Tensor:
        """The entropy."""
        c, k = self.concentration, self.concentration.shape[-1]
        total = c.sum(-1)
        terms = ((c - 1) * F.digamma(c)).sum(-1)
        return F.lgamma(c).sum(-1) - F.lgamma(total) - (k - total) * F.digamma(total) - terms


class Independent(Distribution):
    """A distribution, of which some dims count as one event."""

    def __init__(self, base: Distribution, reinterpreted_batch_rank: int) -> None:
        if not 0 < reinterpreted_batch_rank <= len(base.batch_shape):
            raise ValueError(
                f"Independent: reinterpreted_batch_rank is {reinterpreted_batch_rank}; expected 1 to "
                f"{len(base.batch_shape)}"
            )
        self._base, self._rank = base, reinterpreted_batch_rank
        cut = len(base.batch_shape) - reinterpreted_batch_rank
        super().__init__(base.batch_shape[:cut], base.batch_shape[cut:] + base.event_shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self._base.mean

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self._base.variance

    def sample(self, shape: Any = ()) -> Tensor:
        """Samples."""
        return self._base.sample(shape)

    def rsample(self, shape: Any = ()) -> Tensor:
        """Samples through which gradients flow."""
        return self._base.rsample(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at a value."""
        return self._base.log_prob(value).sum(list(range(-self._rank, 0)))

    def entropy(self) -> Tensor:
        """The entropy."""
        return self._base.entropy().sum(list(range(-self._rank, 0)))


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio, gap = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + gap - 1 - oprack.log(ratio))


@register_kl(LogNormal, LogNormal)
def _log_normal(p: Any, q: Any) -> Any:
    return _normal(p, q)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    return oprack.log((q.high - q.low) / (p.high - p.low))


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, gap = p.scale / q.scale, F.abs(p.loc - q.loc) / q.scale
    return -oprack.log(ratio) + gap + ratio * F.exp(-F.abs(p.loc - q.loc) / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    return oprack.log(((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale))


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    total = p.alpha + p.beta
    first = q._log_norm() - p._log_norm()
    second = (p.alpha - q.alpha) * F.digamma(p.alpha) + (p.beta - q.beta) * F.digamma(p.beta)
    return first + second + ((q.alpha + q.beta) - total) * F.digamma(total)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    norms = F.lgamma(a.sum(-1)) - F.lgamma(b.sum(-1)) - (F.lgamma(a) - F.lgamma(b)).sum(-1)
    return norms + ((a - b) * (F.digamma(a) - F.digamma(a.sum(-1, keepdim=True)))).sum(-1)

"""Kullback-Leibler divergences, by the classes of two distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import oprack
from oprack import functional as F

from oprack_paddle.distributions import continuous as c
from oprack_paddle.distributions import discrete as d

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


@register_kl(c.Normal, c.Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio, gap = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + gap - 1 - oprack.log(ratio))


@register_kl(c.LogNormal, c.LogNormal)
def _log_normal(p: Any, q: Any) -> Any:
    return _normal(p, q)


@register_kl(c.Uniform, c.Uniform)
def _uniform(p: Any, q: Any) -> Any:
    return oprack.log((q.high - q.low) / (p.high - p.low))


@register_kl(c.Laplace, c.Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, gap = p.scale / q.scale, F.abs(p.loc - q.loc) / q.scale
    return -oprack.log(ratio) + gap + ratio * F.exp(-F.abs(p.loc - q.loc) / p.scale) - 1


@register_kl(c.Cauchy, c.Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    return oprack.log(((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale))


@register_kl(c.Beta, c.Beta)
def _beta(p: Any, q: Any) -> Any:
    total = p.alpha + p.beta
    first = q._log_norm() - p._log_norm()
    second = (p.alpha - q.alpha) * F.digamma(p.alpha) + (p.beta - q.beta) * F.digamma(p.beta)
    return first + second + ((q.alpha + q.beta) - total) * F.digamma(total)


@register_kl(c.Dirichlet, c.Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    norms = F.lgamma(a.sum(-1)) - F.lgamma(b.sum(-1)) - (F.lgamma(a) - F.lgamma(b)).sum(-1)
    return norms + ((a - b) * (F.digamma(a) - F.digamma(a.sum(-1, keepdim=True)))).sum(-1)


@register_kl(d.Categorical, d.Categorical)
def _categorical(p: Any, q: Any) -> Any:
    return d.Categorical.kl_divergence(p, q)


@register_kl(d.Bernoulli, d.Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    a, b = d._clipped(p.probs_param), d._clipped(q.probs_param)
    return a * (oprack.log(a) - oprack.log(b)) + (1 - a) * (F.log1p(-a) - F.log1p(-b))


@register_kl(d.Geometric, d.Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return oprack.log(p.probs / q.probs) + (1 / p.probs - 1) * (F.log1p(-p.probs) - F.log1p(-q.probs))

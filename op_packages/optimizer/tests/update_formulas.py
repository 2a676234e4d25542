"""Update rules in NumPy: `rule(w, g, s, lr, t)` gives the new w and changes the state s; t counts from 1."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray


def _32(value: float) -> float:
    """What the 32 bits of an attribute hold."""
    return float(np.float32(value))


def _power(beta: float, t: int) -> float:
    """The startup program's constant, then multiplied by the attribute."""
    return beta * _32(beta) ** (t - 1)


def sgd(w: Array, g: Array, s: dict[str, Any], lr: float, t: int) -> Array:
    return w - lr * g


def momentum(mu: float, nesterov: bool = False, decay: float = 0.0) -> Any:
    def rule(w, g, s, lr, t):
        g = g + decay * w
        s["v"] = mu * s.get("v", 0.0) + g
        return w - lr * (g + mu * s["v"] if nesterov else s["v"])

    return rule


def _means(s: dict[str, Any], g: Array, beta1: float, beta2: float) -> None:
    s["m"] = _32(beta1) * s.get("m", 0.0) + (1 - _32(beta1)) * g
    s["v"] = _32(beta2) * s.get("v", 0.0) + (1 - _32(beta2)) * g * g


def adam(beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, decay: float = 0.0) -> Any:
    def rule(w, g, s, lr, t):
        _means(s, g, beta1, beta2)
        root = np.sqrt(1 - _power(beta2, t))
        w = w * (1 - lr * decay)
        return w - lr * root / (1 - _power(beta1, t)) * s["m"] / (np.sqrt(s["v"]) + epsilon * root)

    return rule


def adamax(w, g, s, lr, t):
    s["m"] = _32(0.9) * s.get("m", 0.0) + (1 - _32(0.9)) * g
    s["u"] = np.maximum(abs(g), _32(0.999) * s.get("u", 0.0) + 1e-8)
    return w - lr / (1 - _power(0.9, t)) * s["m"] / s["u"]


def adagrad(start: float) -> Any:
    def rule(w, g, s, lr, t):
        s["m"] = s.get("m", start) + g * g
        return w - lr * g / (np.sqrt(s["m"]) + 1e-6)

    return rule


def decayed_adagrad(w, g, s, lr, t):
    s["m"] = 0.95 * s.get("m", 0.0) + 0.05 * g * g
    return w - lr * g / (np.sqrt(s["m"]) + 1e-6)


def adadelta(w, g, s, lr, t):
    s["a"] = 0.95 * s.get("a", 0.0) + 0.05 * g * g
    d = -np.sqrt((s.get("b", 0.0) + 1e-6) / (s["a"] + 1e-6)) * g
    s["b"] = 0.95 * s.get("b", 0.0) + 0.05 * d * d
    return w + lr * d


def rmsprop(centered: bool) -> Any:
    def rule(w, g, s, lr, t):
        s["s"] = 0.95 * s.get("s", 0.0) + 0.05 * g * g
        s["a"] = 0.95 * s.get("a", 0.0) + 0.05 * g if centered else 0.0
        s["u"] = 0.3 * s.get("u", 0.0) + lr * g / np.sqrt(s["s"] - s["a"] ** 2 + 1e-6)
        return w - s["u"]

    return rule


def ftrl(w, g, s, lr, t):
    old = s.get("n", np.zeros_like(w))
    s["n"] = old + g * g
    s["z"] = s.get("z", 0.0) + g - (np.sqrt(s["n"]) - np.sqrt(old)) / lr * w
    l1, l2 = 0.01 + 1e-10, 0.02 + 1e-10  # the kernel keeps both from being 0
    with np.errstate(divide="ignore", invalid="ignore"):
        new = (l1 * np.sign(s["z"]) - s["z"]) / (np.sqrt(s["n"]) / lr + 2 * l2)
    return np.where(abs(s["z"]) > l1, new, 0.0)


def lamb(w, g, s, lr, t):
    _means(s, g, 0.9, 0.999)
    mean, square = s["m"] / (1 - _power(0.9, t)), s["v"] / (1 - _power(0.999, t))
    u = mean / (np.sqrt(square) + 1e-6) + 0.01 * w
    lengths = np.linalg.norm(w), np.linalg.norm(u)
    return w - lr * (lengths[0] / lengths[1] if min(lengths) > 0 else 1.0) * u


def lars(w, g, s, lr, t):
    lengths = np.linalg.norm(w), np.linalg.norm(g)
    rate = lr * 0.02 * lengths[0] / (lengths[1] + 0.0005 * lengths[0]) if min(lengths) > 0 else lr
    s["v"] = 0.9 * s.get("v", 0.0) + rate * (g + 0.0005 * w)
    return w - s["v"]


def dpsgd(w, g, s, lr, t):
    """Without noise."""
    return w - lr * g * min(1.0, 0.3 / np.linalg.norm(g))

"""Records of batch norms over listed points, and of their gradients."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import HYBRID, drawn, slopes

MEAN, VARIANCE, SCALE, BIAS = (drawn(2, seed=95 + i, low=0.2, high=1.0) for i in range(4))
ATTRS = {"momentum": 0.8, "epsilon": 1e-5, "data_layout": "NHWC"}


def records(op: str) -> list[OpCase]:
    """In training, and by the running statistics."""
    return [*_case(op, running=False), *_case(op, running=True)]


def _case(op: str, *, running: bool) -> list[OpCase]:
    v, g = HYBRID.values, drawn(*HYBRID.values.shape, seed=99)

    def normed(values: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
        mean, variance = (MEAN, VARIANCE) if running else (values.mean(axis=0), values.var(axis=0))
        return (values - mean) / np.sqrt(variance + 1e-5) * scale + bias

    attrs = ATTRS | {"is_test": running, "use_global_stats": running, "trainable_statistics": False}
    given = {"x": HYBRID, "mean": MEAN, "variance": VARIANCE, "scale": SCALE, "bias": BIAS}
    mean, variance = (MEAN, VARIANCE) if running else (v.mean(axis=0), v.var(axis=0))
    after = [MEAN, VARIANCE] if running else [0.8 * MEAN + 0.2 * mean, 0.8 * VARIANCE + 0.2 * variance]
    saved = mean, 1 / np.sqrt(variance + np.float32(1e-5))
    outputs = {
        "out": HYBRID.with_values(normed(v, SCALE, BIAS).astype(np.float32)),
        "mean_out": after[0],
        "variance_out": after[1],
        "saved_mean": saved[0],
        "saved_variance": saved[1],
        "reserve_space": np.empty(0, np.float32),
    }
    name = "running" if running else "training"
    read = {"x": HYBRID, "scale": SCALE, "bias": BIAS, "mean_out": after[0], "variance_out": after[1]}
    read |= {"saved_mean": saved[0], "saved_variance": saved[1], "out@GRAD": HYBRID.with_values(g)}
    back = {
        "x@GRAD": HYBRID.with_values(slopes(lambda a: normed(a, SCALE, BIAS), v, g)),
        "scale@GRAD": slopes(lambda a: normed(v.astype(np.float64), a, BIAS), SCALE, g),
        "bias@GRAD": slopes(lambda a: normed(v.astype(np.float64), SCALE, a), BIAS, g),
    }
    grads = ["x", "scale", "bias"]
    return [
        OpCase(op, given, attrs, outputs, grads, name=name, rtol=1e-4, atol=1e-5),
        OpCase(f"{op}_grad", read, attrs, back, name=name, rtol=1e-4, atol=1e-5),
    ]

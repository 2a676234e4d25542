"""Weights as integers, and floats rounded to what integers stand for."""

from __future__ import annotations

import numpy as np

from oprack_quantization.post_training.scales import GREATEST


def weight_scales(w: np.ndarray, axis: int | None) -> np.ndarray:
    """The greatest absolute value of each channel along an axis, or of all with None: float32 [C] or [1].

    A channel of zeros has the scale 1.
    """
    others = None if axis is None else tuple(i for i in range(w.ndim) if i != axis)
    found = np.abs(w).max(axis=others).reshape(-1).astype(np.float32)
    return np.where(found > 0, found, np.float32(1))


def along(scales: np.ndarray, rank: int, axis: int | None) -> np.ndarray:
    """Scales of channels, ready to be multiplied with a tensor of this rank."""
    return scales.reshape(-1, *(1,) * (rank - 1 - (axis or 0))) if axis is not None else scales.reshape((1,) * rank)


def integers(x: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """round(127 x / scale) as int8, ties to even. scales: what broadcasts with x."""
    return np.clip(np.rint(x * (GREATEST / scales.astype(np.float64))), -GREATEST, GREATEST).astype(np.int8)


def restored(x: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """What the integers stand for, as float32."""
    return integers(x, scales).astype(np.float32) * (scales / np.float32(GREATEST)).astype(np.float32)

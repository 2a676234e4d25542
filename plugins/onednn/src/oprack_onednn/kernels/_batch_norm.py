"""batch_norm in native code (batch_norm.c), for numbers of channels that oneDNN has no fast implementation for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import Structure, addressof, c_double, c_int64, c_void_p

import numpy as np
from oprack.kernel import Array

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import empty_image, is_channels_last
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.operands import FLOAT, address

_VECTOR, _PERIOD, _CHANNELS = 16, 128, 256
_SHARED = 1 << 15
"""Elements from which on threads share the work."""
_PERIODS = 256
"""The most that a share has: float32 adds up so many numbers without loss."""
_FEWEST, _SHARES = 64, 16
"""The fewest that one has while there are less than so many shares."""


class _Norm(Structure):
    """The struct of batch_norm.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("count", "channels", "period", "shares", "threads", "phase")),
        *((name, c_void_p) for name in ("x", "dy", "scale", "shift")),
        *((name, c_void_p) for name in ("mean", "variance", "inverse", "y", "dscale", "dshift", "work")),
        ("epsilon", c_double),
    )


def serves(images: Sequence[Array], rows: Sequence[Array]) -> bool:
    """Whether native code takes images [N, C, *spatial] and rows [C] such as these, and is the faster one."""
    x = images[0]
    channels = x.shape[1]
    if not x.size or RUNNER.batch_norm is None or not channels % _VECTOR or channels > _CHANNELS or not THREAD.ready():
        return False
    if not all(a.flags.aligned for a in (*images, *rows)):
        return False
    if any(a.dtype != FLOAT or a.shape != (channels,) or not a.flags.c_contiguous for a in rows):
        return False
    return all(a.dtype == FLOAT and a.shape == x.shape and is_channels_last(a) for a in images)


def _run(back: bool, x: Array, dy: Array | None, epsilon: float, **arrays: Array) -> None:
    channels = x.shape[1]
    period = math.lcm(channels, _VECTOR)
    period *= -(-_PERIOD // period)
    periods = -(-x.size // period)
    # whatever the number of threads, so that results do not depend on it
    shares = max(2, min(periods // _FEWEST, _SHARES), -(-periods // _PERIODS))
    threads = THREAD.cores if x.size >= _SHARED else 1
    work = np.empty(period * (6 + 2 * shares), FLOAT)
    places = {name: address(a) for name, a in arrays.items()} | {"x": address(x), "work": address(work)}
    if dy is not None:
        places["dy"] = address(dy)
    norm = _Norm(x.size, channels, period, shares, threads, epsilon=epsilon, **places)
    assert RUNNER.batch_norm is not None
    RUNNER.batch_norm(addressof(norm), back)


def forward(x: Array, scale: Array, shift: Array, epsilon: float) -> tuple[Array, Array, Array, Array]:
    """(y, mean, variance, 1 / sqrt(variance + epsilon)) of an image that is served."""
    y, found = empty_image(x.shape), np.empty((3, x.shape[1]), FLOAT)
    mean, variance, inverse = found
    rows = {"mean": mean, "variance": variance, "inverse": inverse}
    _run(False, x, None, epsilon, scale=scale, shift=shift, y=y, **rows)
    return y, mean, variance, inverse


def backward(x: Array, dy: Array, scale: Array, mean: Array, inverse: Array) -> tuple[Array, Array, Array]:
    """Gradients of x, scale and shift."""
    dx, (dscale, dshift) = empty_image(x.shape), np.empty((2, x.shape[1]), FLOAT)
    rows = {"scale": scale, "mean": mean, "inverse": inverse, "dscale": dscale, "dshift": dshift}
    _run(True, x, dy, 0.0, y=dx, **rows)
    return dx, dscale, dshift

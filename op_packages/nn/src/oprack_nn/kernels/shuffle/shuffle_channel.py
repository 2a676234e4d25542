"""Kernels of shuffle_channel and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.types import ALL_DTYPES

from oprack_nn.kernels.shuffle._family import PLACES, regrouped


@kernel("shuffle_channel", place=PLACES, dtypes=ALL_DTYPES)
def shuffle_channel(X: Array, *, group: int) -> Array:
    return regrouped(X, group, "NCHW")


@kernel("shuffle_channel_grad", place=PLACES, dtypes=ALL_DTYPES)
def shuffle_channel_grad(Out_grad: Array, *, group: int) -> Array:
    return regrouped(Out_grad, Out_grad.shape[1] // group, "NCHW")

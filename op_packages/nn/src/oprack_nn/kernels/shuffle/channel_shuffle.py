"""Kernels of channel_shuffle and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.types import ALL_DTYPES

from oprack_nn.kernels.shuffle._family import PLACES, regrouped
from oprack_nn.ops._layout import is_channel_last


@kernel("channel_shuffle", place=PLACES, dtypes=ALL_DTYPES)
def channel_shuffle(X: Array, *, groups: int, data_format: str) -> Array:
    return regrouped(X, groups, data_format)


@kernel("channel_shuffle_grad", place=PLACES, dtypes=ALL_DTYPES)
def channel_shuffle_grad(Out_grad: Array, *, groups: int, data_format: str) -> Array:
    channels = Out_grad.shape[-1 if is_channel_last(data_format) else 1]
    return regrouped(Out_grad, channels // groups, data_format)

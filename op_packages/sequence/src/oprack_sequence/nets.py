"""Groups of layers that many networks over sequences have in common, as oprack.nets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import layers

if TYPE_CHECKING:
    from oprack.layers import Variable


def sequence_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: int,
    param_attr: str | None = None,
    act: str = "sigmoid",
    pool_type: str = "max",
    bias_attr: bool | None = None,
) -> Variable:
    """layers.sequence_conv, then layers.sequence_pool; arguments and errors are theirs."""
    out = layers.sequence_conv(input, num_filters, filter_size, param_attr=param_attr, bias_attr=bias_attr, act=act)
    return layers.sequence_pool(out, pool_type)

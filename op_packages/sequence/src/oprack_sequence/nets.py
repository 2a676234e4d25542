"""Groups of layers that many networks over sequences have in common, as oprack.nets."""

from __future__ import annotations

from oprack import layers


def sequence_conv_pool(
    input, num_filters, filter_size, param_attr=None, act="sigmoid", pool_type="max", bias_attr=None
):
    """layers.sequence_conv, then layers.sequence_pool; arguments and errors are theirs."""
    out = layers.sequence_conv(input, num_filters, filter_size, param_attr=param_attr, bias_attr=bias_attr, act=act)
    return layers.sequence_pool(out, pool_type)

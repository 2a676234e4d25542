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
    """Appends a convolution over the rows of sequences and a pooling of each: sequence_conv, then sequence_pool.

    Args:
        input: Rows with LoD [T, size].
        num_filters: Number of filters.
        filter_size: How many neighbouring rows a filter sees.
        param_attr: Attributes of the weights.
        act: The op that follows the convolution.
        pool_type: "max", "average", "sum", "sqrt", "first" or "last".
        bias_attr: Attributes of the bias; False: none.

    Returns:
        Variable [sequences, num_filters]. Errors are those of the two layers.
    """
    out = layers.sequence_conv(input, num_filters, filter_size, param_attr=param_attr, bias_attr=bias_attr, act=act)
    return layers.sequence_pool(out, pool_type)

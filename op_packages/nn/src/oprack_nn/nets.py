"""Groups of layers that many networks have in common, as oprack.nets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack import layers
from oprack.errors import InvalidArgumentError
from oprack.layers import check_variable

if TYPE_CHECKING:
    from oprack.layers import ParamAttrLike, Variable


def simple_img_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: int,
    pool_size: int,
    pool_stride: int,
    pool_padding: int = 0,
    pool_type: str = "max",
    global_pooling: bool = False,
    conv_stride: int = 1,
    conv_padding: int = 0,
    conv_dilation: int = 1,
    conv_groups: int = 1,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    act: str | None = None,
) -> Variable:
    """Appends a convolution and a pooling of images: layers.conv2d, then layers.pool2d.

    Args:
        input: Images [N, C, H, W].
        num_filters: Number of filters.
        filter_size: Size of the filters, one number or [height, width].
        pool_size: Size of the pooling window.
        pool_stride: Step between pooling windows.
        pool_padding: Padding of the pooling.
        pool_type: "max" or "avg".
        global_pooling: Whether one window covers the whole image, whatever pool_size is.
        conv_stride: Step between the windows of the convolution.
        conv_padding: Zeros around images.
        conv_dilation: Distance between the elements of a filter.
        conv_groups: Number of groups of channels.
        param_attr: Attributes of the weights.
        bias_attr: Attributes of the biases; False: none.
        act: The op that follows the convolution, such as "relu"; None: none.

    Returns:
        The images after pooling. Errors are those of the two layers.
    """
    out = layers.conv2d(
        input,
        num_filters,
        filter_size,
        stride=conv_stride,
        padding=conv_padding,
        dilation=conv_dilation,
        groups=conv_groups,
        param_attr=param_attr,
        bias_attr=bias_attr,
        act=act,
    )
    return layers.pool2d(out, pool_size, pool_type, pool_stride, pool_padding, global_pooling)


def img_conv_group(
    input: Variable,
    conv_num_filter: Sequence[int],
    pool_size: int,
    conv_padding: Sequence[int] | int = 1,
    conv_filter_size: int = 3,
    conv_act: str | None = None,
    param_attr: ParamAttrLike = None,
    conv_with_batchnorm: Sequence[bool] | bool = False,
    conv_batchnorm_drop_rate: float = 0.0,
    pool_stride: int = 1,
    pool_type: str = "max",
) -> Variable:
    """Appends several convolutions of images, with batch_norm and dropout on demand, then one pooling.

    Arguments from conv_padding to conv_batchnorm_drop_rate are one value for all convolutions, or a list with one for
    each.

    Args:
        input: Images [N, C, H, W].
        conv_num_filter: Number of filters of each convolution.
        pool_size: Size of the pooling window.
        conv_padding: Zeros around images.
        conv_filter_size: Size of the filters.
        conv_act: The op that follows each convolution, or its batch_norm; one for all.
        param_attr: Attributes of the weights.
        conv_with_batchnorm: Whether batch_norm follows.
        conv_batchnorm_drop_rate: Probability of the dropout that follows batch_norm; 0: none.
        pool_stride: Step between pooling windows.
        pool_type: "max" or "avg".

    Returns:
        The images after pooling.

    Raises:
        InvalidArgumentError: A list has another length than conv_num_filter.
    """
    count = len(conv_num_filter)

    def each(value: Any, argument: str) -> list[Any]:
        values = list(value) if isinstance(value, list | tuple) else [value] * count
        if len(values) != count:
            raise InvalidArgumentError(
                f"img_conv_group: {argument} has {len(values)} entries; expected {count}, as conv_num_filter has"
            )
        return values

    rows = zip(
        conv_num_filter,
        each(conv_filter_size, "conv_filter_size"),
        each(conv_padding, "conv_padding"),
        each(param_attr, "param_attr"),
        each(conv_with_batchnorm, "conv_with_batchnorm"),
        each(conv_batchnorm_drop_rate, "conv_batchnorm_drop_rate"),
        strict=True,
    )
    out = input
    for filters, size, padding, attr, normed, drop_rate in rows:
        act = None if normed else conv_act
        out = layers.conv2d(out, filters, size, padding=padding, param_attr=attr, act=act)
        if normed:
            out = layers.batch_norm(out, act=conv_act)
            if drop_rate > 0:
                out = layers.dropout(out, drop_rate)
    return layers.pool2d(out, pool_size, pool_type, pool_stride)


def glu(input: Variable, dim: int = -1) -> Variable:
    """Appends a gated linear unit: the first half of input along `dim`, times the sigmoid of the second.

    Args:
        input: A Variable of floats whose size along dim is even.
        dim: The dim that is halved.

    Returns:
        Variable with half the size along dim.
    """
    a, b = layers.split(input, 2, dim=dim)
    return a * layers.sigmoid(b)


def scaled_dot_product_attention(
    queries: Variable, keys: Variable, values: Variable, num_heads: int = 1, dropout_rate: float = 0.0
) -> Variable:
    r"""Appends attention of queries to keys and values, $$softmax(Q K^T / \sqrt{d}) V$$ for each head.

    With several heads, Q, K and V are projected first, each by a fully connected layer without bias.

    Args:
        queries: [N, T_q, D].
        keys: [N, T_k, D].
        values: [N, T_k, D_v].
        num_heads: Number of heads, of which D and D_v are multiples.
        dropout_rate: Probability of dropout of attention weights.

    Returns:
        Variable [N, T_q, D_v].

    Raises:
        InvalidArgumentError: Ranks or widths do not fit.
    """
    given = {"queries": queries, "keys": keys, "values": values}
    for argument, value in given.items():
        if len(check_variable(value, argument, "scaled_dot_product_attention").shape) != 3:
            raise InvalidArgumentError(
                f"scaled_dot_product_attention: {argument} has shape {list(value.shape)}; expected [N, T, D]"
            )
    width, out_width = queries.shape[-1], values.shape[-1]
    if keys.shape[-1] != width or width % num_heads or out_width % num_heads:
        raise InvalidArgumentError(
            f"scaled_dot_product_attention: queries, keys and values have widths {width}, {keys.shape[-1]} and "
            f"{out_width}; expected the first two equal, and multiples of num_heads {num_heads}"
        )

    def by_heads(x: Variable) -> Variable:
        if num_heads == 1:
            return x
        size = x.shape[-1]
        x = layers.fc(x, size, num_flatten_dims=2, bias_attr=False)
        return layers.transpose(layers.reshape(x, [0, 0, num_heads, size // num_heads]), [0, 2, 1, 3])

    q, k, v = by_heads(queries), by_heads(keys), by_heads(values)
    weights = layers.softmax(layers.matmul(q * (width // num_heads) ** -0.5, k, transpose_y=True))
    if dropout_rate:
        weights = layers.dropout(weights, dropout_rate)
    out = layers.matmul(weights, v)
    if num_heads == 1:
        return out
    return layers.reshape(layers.transpose(out, [0, 2, 1, 3]), [0, 0, out_width])

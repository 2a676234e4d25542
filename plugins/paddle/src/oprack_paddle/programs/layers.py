"""paddle.static.nn: layers, whose parameters the program holds."""

from __future__ import annotations

from typing import Any

from oprack import layers

from oprack_paddle.functions._tools import dtype_name


def fc(
    x: Any,
    size: int,
    num_flatten_dims: int = 1,
    weight_attr: Any = None,
    bias_attr: Any = None,
    activation: Any = None,
    name: Any = None,
) -> Any:
    """A product with a weight, a bias and an activation."""
    return layers.fc(x, size, num_flatten_dims, weight_attr, bias_attr, activation, name)


def embedding(
    input: Any, size: Any, is_sparse: bool = False, is_distributed: bool = False, padding_idx: Any = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Any:  # fmt: skip
    """The rows of a table."""
    return layers.embedding(input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype_name(dtype))


def sparse_embedding(
    input: Any, size: Any, padding_idx: Any = None, is_test: bool = False, entry: Any = None,
    table_class: str = "MemorySparseTable",
    param_attr: Any = None, dtype: Any = "float32", slot: Any = None,
) -> Any:  # fmt: skip
    """The rows of a table, with sparse gradients; the table is a parameter of this process."""
    return layers.embedding(input, size, True, False, padding_idx, param_attr, dtype_name(dtype))


def deform_conv2d(
    x: Any, offset: Any, mask: Any, num_filters: int, filter_size: Any, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1, deformable_groups: int = 1, im2col_step: int = 1, weight_attr: Any = None,
    bias_attr: Any = None, name: Any = None,
) -> Any:  # fmt: skip
    """A convolution at places that are moved by offsets."""
    from oprack_paddle.functions.pictures import deform_conv2d as convolved

    size = [filter_size] * 2 if isinstance(filter_size, int) else list(filter_size)
    weight = layers.create_parameter([num_filters, x.shape[1] // groups, *size], x.dtype, attr=weight_attr)
    bias = None if bias_attr is False else layers.create_parameter([num_filters], x.dtype, attr=bias_attr, is_bias=True)
    return convolved(x, offset, weight, bias, stride, padding, dilation, deformable_groups, groups, mask)


def conv2d(
    input: Any, num_filters: int, filter_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: Any = None,
    param_attr: Any = None, bias_attr: Any = None, use_cudnn: bool = True, act: Any = None, name: Any = None,
    data_format: str = "NCHW",
) -> Any:  # fmt: skip
    """The convolution of pictures."""
    return layers.conv2d(
        input,
        num_filters,
        filter_size,
        stride,
        padding,
        dilation,
        groups,
        param_attr,
        bias_attr,
        act,
        name,
        data_format,
    )


def batch_norm(
    input: Any, act: Any = None, is_test: bool = False, momentum: float = 0.9, epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None, data_layout: str = "NCHW", in_place: bool = False, name: Any = None,
    moving_mean_name: Any = None,
    moving_variance_name: Any = None, do_model_average_for_mean_and_var: bool = True, use_global_stats: bool = False,
) -> Any:  # fmt: skip
    """Each channel, normalized by the batch."""
    return layers.batch_norm(
        input, act, is_test, momentum, epsilon, param_attr, bias_attr, data_layout, name, moving_mean_name,
        moving_variance_name,
        use_global_stats,
    )  # fmt: skip

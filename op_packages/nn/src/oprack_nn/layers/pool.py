"""Layers of pooling."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable

from oprack_nn.layers._images import check_image, int_pair, resolve_padding


# The layer adaptive_pool2d.
def adaptive_pool2d(
    input: Variable, pool_size: int | Sequence[int], pool_type: str = "max", name: str | None = None
) -> Variable:
    """Pools images to a given size, with windows that share an image evenly: op pool2d or max_pool2d_with_index.

    Args:
        input: Images [N, C, H, W].
        pool_size: Size of the result, an int or [h, w].
        pool_type: "max" or "avg".
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [N, C, *pool_size].

    Raises:
        InvalidArgumentError: pool_type is neither.
    """
    layer = "adaptive_pool2d"
    input, _, _ = check_image(input, "NCHW", layer)
    if pool_type not in ("max", "avg"):
        raise InvalidArgumentError(f"{layer}: pool_type is {pool_type!r}; expected 'max' or 'avg'")
    helper = LayerHelper(layer, name=name)
    attrs = {"ksize": int_pair(pool_size, "pool_size", layer), "adaptive": True}
    if pool_type == "max":
        out, places = helper.apply("max_pool2d_with_index", {"X": input}, attrs)
        places.stop_gradient = True
        return out
    return helper.apply("pool2d", {"X": input}, attrs | {"pooling_type": pool_type})


# The layer pool2d.
def pool2d(
    input: Variable,
    pool_size: int | Sequence[int] = -1,
    pool_type: str = "max",
    pool_stride: int | Sequence[int] = 1,
    pool_padding: int | str | Sequence[int] = 0,
    global_pooling: bool = False,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """Takes the maximum or the mean of windows of images: op pool2d.

    Args:
        input: Images [N, C, H, W], or [N, H, W, C] with data_format="NHWC".
        pool_size: Size of the window, an int or [h, w]; -1 with global_pooling.
        pool_type: "max" or "avg".
        pool_stride: Step between windows, an int or [h, w].
        pool_padding: As padding of conv2d; the padding never is the maximum.
        global_pooling: Whether one window covers the whole image.
        ceil_mode: Whether sizes are rounded up.
        name: Prefix of the names of what the layer makes; None: that of the layer.
        exclusive: Whether means leave the padding out.
        data_format: "NCHW" or "NHWC".

    Returns:
        Variable [N, C, H_out, W_out], in the order of dims of input.

    Raises:
        InvalidArgumentError: pool_type is neither, or pool_size is missing.
    """
    layer = "pool2d"
    input, last, _ = check_image(input, data_format, layer)
    if pool_type not in ("max", "avg") or (pool_size == -1 and not global_pooling):
        raise InvalidArgumentError(
            f"pool2d: pool_type is {pool_type!r} and pool_size {pool_size!r}; expected 'max' or 'avg', and a size "
            "unless global_pooling"
        )
    paddings, algorithm = resolve_padding(pool_padding, last, layer)
    attrs = {
        "pooling_type": pool_type,
        "ksize": int_pair(pool_size, "pool_size", layer),
        "strides": int_pair(pool_stride, "pool_stride", layer),
        "paddings": paddings,
        "padding_algorithm": algorithm,
        "global_pooling": global_pooling,
        "ceil_mode": ceil_mode,
        "exclusive": exclusive,
        "data_format": data_format,
    }
    return LayerHelper(layer, name=name).apply(layer, {"X": input}, attrs)

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
    """Pooling of [N, C, H, W] to [N, C, *pool_size], with windows that share the image evenly.

    Ops pool2d, max_pool2d_with_index. Raises InvalidArgumentError.
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
    """Maximum ("max") or mean ("avg") of windows of images [N, C, H, W] (or NHWC).

    pool_size, pool_stride: an int or [h, w]; pool_padding: as padding of conv2d. global_pooling: one window of the
    whole image. ceil_mode: round sizes up. exclusive: means leave padding out. Op pool2d. Raises InvalidArgumentError.
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

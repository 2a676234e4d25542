"""The layer adaptive_pool2d."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable

from oprack_nn.layers._images import check_image, int_pair


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

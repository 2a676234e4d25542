"""Kernels of pool2d and its gradients."""

from __future__ import annotations

from oprack.errors import UnimplementedError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_nn.kernels.pool._family import PLACES, SCATTER, pool, pool_grad, pooled

pool2d = kernel("pool2d", place=PLACES, dtypes=FLOATS)(pool)
pool2d_grad = kernel("pool2d_grad", dtypes=FLOATS, **SCATTER)(pool_grad)


@kernel("pool2d_double_grad", place=PLACES, dtypes=FLOATS)
def pool2d_double_grad(
    grad_x_grad: Array, *, ksize: list[int], pooling_type: str, data_format: str, ctx: KernelContext, xp: ArrayModule
) -> Array:
    if pooling_type == "max":
        raise UnimplementedError(
            "op pool2d_double_grad: max pooling has no second gradient here, since the op does not get X to see where "
            "the maxima were; use average pooling or max_pool2d_with_index"
        )
    return pooled(grad_x_grad, {**ctx.attrs, "ksize": ksize}, data_format, xp)

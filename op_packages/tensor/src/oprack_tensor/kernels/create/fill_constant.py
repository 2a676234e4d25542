"""Kernel of fill_constant."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype

from oprack_tensor.dims import to_ints
from oprack_tensor.kernels.create._constant import cast, constant


@kernel("fill_constant", place=("cpu", "cuda"))
def fill_constant(
    ValueTensor: Array | None = None,
    ShapeTensor: Array | None = None,
    ShapeTensorList: list[Array] | None = None,
    *,
    dtype: int,
    shape: list[int],
    value: float,
    str_value: str,
    xp: ArrayModule,
) -> Array:
    wanted = numpy_dtype(dtype)
    dims = to_ints(ShapeTensor, ShapeTensorList, shape)
    if any(d < 0 for d in dims):
        raise InvalidArgumentError(f"op fill_constant: shape is {dims}; expected no negative size when the op runs")
    if ValueTensor is not None:
        return xp.full(dims, ValueTensor.reshape(-1)[0].astype(wanted), wanted)
    return xp.full(dims, cast(constant("fill_constant", value, str_value, wanted), wanted), wanted)

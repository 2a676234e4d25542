"""The same elements in other dims, repeated where dims grow; and what the dims are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from oprack.device import constant
from oprack.kernel import Array, ArrayModule, KernelContext, KernelSpecialization, kernel
from oprack.tensor import SelectedRows, ShapeOnly

from oprack_tensor.dims import broadcast_dims, product, reshape_dims, squeeze_axes, to_ints, unsqueeze_dims
from oprack_tensor.kernels._reduce import sum_over, sum_to


# tile -----------------------------------------------------------------------------------------------------------------
# Repetitions along each dim, and sums over them.
def sum_of_tiles(X: ShapeOnly, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD summed over the repetitions; of X only the shape is read."""
    # Out's dim i is (repetitions, dim of X)
    full = (1,) * (Out_grad.ndim - X.ndim) + X.shape
    pairs = [n for d, o in zip(full, Out_grad.shape, strict=True) for n in (o // d if d else 1, d)]
    return sum_over(Out_grad.reshape(pairs), tuple(range(0, len(pairs), 2)), xp).reshape(X.shape)


# broadcast_tensors ----------------------------------------------------------------------------------------------------
@kernel("broadcast_tensors", place=("cpu", "cuda"))
def broadcast_tensors(X: list[Array], *, xp: ArrayModule) -> dict[str, Any]:
    """Each in the common shape, in memory of its own."""
    return {"Out": [a.copy() for a in xp.broadcast_arrays(*X)]}


@kernel("broadcast_tensors_grad", place=("cpu", "cuda"))
def broadcast_tensors_grad(
    X: list[ShapeOnly], Out_grad: list[Array], *, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Any]:
    """Sums over what was repeated."""
    pairs = enumerate(zip(X, Out_grad, strict=True))
    return {"X@GRAD": [sum_to(g, x.shape, xp) if ctx.wants("X@GRAD", k) else None for k, (x, g) in pairs]}


# expand ---------------------------------------------------------------------------------------------------------------
@kernel("expand", place=("cpu", "cuda"))
def expand(
    X: Array,
    ExpandTimes: Array | None = None,
    expand_times_tensor: list[Array] | None = None,
    *,
    expand_times: list[int],
    xp: ArrayModule,
) -> Array:
    """X repeated."""
    return xp.tile(X, tuple(to_ints(ExpandTimes, expand_times_tensor, expand_times)))


expand_grad = kernel("expand_grad", place=("cpu", "cuda"))(sum_of_tiles)


# expand_as ------------------------------------------------------------------------------------------------------------
@kernel("expand_as", place=("cpu", "cuda"))
def expand_as(X: Array, target_tensor: ShapeOnly, *, xp: ArrayModule) -> Array:
    """X repeated."""
    return xp.tile(X, [b // max(a, 1) for a, b in zip(X.shape, target_tensor.shape, strict=True)])


expand_as_grad = kernel("expand_as_grad", place=("cpu", "cuda"))(sum_of_tiles)


# expand_as_v2 ---------------------------------------------------------------------------------------------------------
@kernel("expand_as_v2", place=("cpu", "cuda"))
def expand_as_v2(X: Array, Y: ShapeOnly | None = None, *, target_shape: list[int], xp: ArrayModule) -> Array:
    dims = broadcast_dims("expand_as_v2", X.shape, target_shape if Y is None else Y.shape)
    return xp.broadcast_to(X, dims).copy()


@kernel("expand_as_v2_grad", place=("cpu", "cuda"))
def expand_as_v2_grad(X: ShapeOnly, Out_grad: Array, *, xp: ArrayModule) -> Array:
    return sum_to(Out_grad, X.shape, xp)


# expand_v2 ------------------------------------------------------------------------------------------------------------
@kernel("expand_v2", place=("cpu", "cuda"))
def expand_v2(
    X: Array,
    Shape: Array | None = None,
    expand_shapes_tensor: list[Array] | None = None,
    *,
    shape: list[int],
    xp: ArrayModule,
) -> Array:
    dims = broadcast_dims("expand_v2", X.shape, to_ints(Shape, expand_shapes_tensor, shape))
    return xp.broadcast_to(X, dims).copy()


@kernel("expand_v2_grad", place=("cpu", "cuda"))
def expand_v2_grad(X: ShapeOnly, Out_grad: Array, *, xp: ArrayModule) -> Array:
    return sum_to(Out_grad, X.shape, xp)


# flatten --------------------------------------------------------------------------------------------------------------
# Kernels of flatten: views.
@kernel("flatten", place=("cpu", "cuda"), view=True)
def flatten(X: Array, *, axis: int) -> Array:
    """X as a matrix."""
    axis = axis + X.ndim if axis < 0 else axis
    return X.reshape(product(X.shape[:axis]), product(X.shape[axis:]))


@kernel("flatten_grad", place=("cpu", "cuda"))
def flatten_grad(X: ShapeOnly, Out_grad: Array) -> Array:
    """The gradient in the shape of X."""
    return Out_grad.reshape(X.shape).copy()


# flatten2 -------------------------------------------------------------------------------------------------------------
# Kernels of flatten2: views.
@kernel("flatten2", place=("cpu", "cuda"), view=True)
def flatten2(X: Array, *, axis: int, xp: ArrayModule) -> tuple[Array, Array]:
    axis = axis + X.ndim if axis < 0 else axis
    return X.reshape(product(X.shape[:axis]), product(X.shape[axis:])), xp.empty((0, *X.shape), X.dtype)


@kernel("flatten2_grad", place=("cpu", "cuda"), view=True)
def flatten2_grad(Out_grad: Array, XShape: ShapeOnly) -> Array:
    return Out_grad.reshape(XShape.shape[1:])


# flatten_contiguous_range ---------------------------------------------------------------------------------------------
# Kernels of flatten_contiguous_range: views.
@kernel("flatten_contiguous_range", place=("cpu", "cuda"), view=True)
def flatten_contiguous_range(X: Array, *, start_axis: int, stop_axis: int, xp: ArrayModule) -> tuple[Array, Array]:
    dims = X.shape or (1,)
    start, stop = start_axis % len(dims), stop_axis % len(dims)
    out = X.reshape((*dims[:start], product(dims[start : stop + 1]), *dims[stop + 1 :]))
    return out, xp.empty((0, *X.shape), X.dtype)


@kernel("flatten_contiguous_range_grad", place=("cpu", "cuda"), view=True)
def flatten_contiguous_range_grad(Out_grad: Array, XShape: ShapeOnly) -> Array:
    return Out_grad.reshape(XShape.shape[1:])


# reshape --------------------------------------------------------------------------------------------------------------
# Kernels of reshape: views.
@kernel("reshape", place=("cpu", "cuda"), view=True)
def reshape(X: Array, Shape: Array | None = None, ShapeTensor: list[Array] | None = None, *, shape: list[int]) -> Array:
    return X.reshape(reshape_dims("reshape", X.shape, to_ints(None if ShapeTensor else Shape, ShapeTensor, shape)))


@kernel("reshape_grad", place=("cpu", "cuda"), view=True)
def reshape_grad(Out_grad: Array, X: ShapeOnly) -> dict[str, Array]:
    return {"X@GRAD": Out_grad.reshape(X.shape)}


# reshape2 -------------------------------------------------------------------------------------------------------------
# Kernels of reshape2: views.
def _specialize(call: KernelSpecialization) -> Callable[..., Any] | None:
    """A shape that says all itself, but for one dim at most, is what the arrays' own reshape takes."""
    shape = tuple(call.attrs["shape"])
    if call.has_input("Shape") or call.has_input("ShapeTensor") or 0 in shape or min(shape, default=1) < -1:
        return None
    empty, xp = call.xp.empty, call.xp

    def run(X: Array, Shape: Array | None = None, ShapeTensor: Sequence[Array] = ()) -> tuple[Array, ...]:
        if not X.size:
            return reshape2(X, shape=list(shape), xp=xp)
        return X.reshape(shape), empty((0, *X.shape), X.dtype)

    return run


@kernel("reshape2", place=("cpu", "cuda"), view=True, specialize=_specialize)
def reshape2(
    X: Array, Shape: Array | None = None, ShapeTensor: list[Array] | None = None, *, shape: list[int], xp: ArrayModule
) -> tuple[Array, ...]:
    out = X.reshape(reshape_dims("reshape2", X.shape, to_ints(None if ShapeTensor else Shape, ShapeTensor, shape)))
    return out, xp.empty((0, *X.shape), X.dtype)


@kernel("reshape2_grad", place=("cpu", "cuda"), view=True)
def reshape2_grad(Out_grad: Array, XShape: ShapeOnly) -> Array:
    return Out_grad.reshape(XShape.shape[1:])


@kernel("reshape2_grad_grad", place=("cpu", "cuda"), view=True)
def reshape2_grad_grad(DDX: Array, DOut: ShapeOnly) -> Array:
    return DDX.reshape(DOut.shape)


# shape ----------------------------------------------------------------------------------------------------------------
@kernel("shape", place=("cpu", "cuda"))
def shape(Input: Array, *, xp: ArrayModule) -> Array:
    return constant(np.array(Input.shape, "int32"), xp).copy()


@kernel("shape", place=("cpu", "cuda"))
def shape_of_rows(Input: SelectedRows, *, xp: ArrayModule) -> Array:
    return constant(np.array(Input.value.shape, "int32"), xp).copy()


# size -----------------------------------------------------------------------------------------------------------------
@kernel("size", place=("cpu", "cuda"))
def size(Input: ShapeOnly, *, xp: ArrayModule) -> Array:
    return xp.full((), Input.size, dtype="int64")


# squeeze --------------------------------------------------------------------------------------------------------------
# Kernels of squeeze: views.
@kernel("squeeze", place=("cpu", "cuda"), view=True)
def squeeze(X: Array, *, axes: list[int]) -> Array:
    return X.squeeze(squeeze_axes("squeeze", X.shape, axes))


@kernel("squeeze_grad", place=("cpu", "cuda"), view=True)
def squeeze_grad(Out_grad: Array, X: ShapeOnly) -> Array:
    return Out_grad.reshape(X.shape)


# squeeze2 -------------------------------------------------------------------------------------------------------------
# Kernels of squeeze2: views.
@kernel("squeeze2", place=("cpu", "cuda"), view=True)
def squeeze2(X: Array, *, axes: list[int], xp: ArrayModule) -> tuple[Array, Array]:
    return X.squeeze(squeeze_axes("squeeze2", X.shape, axes)), xp.empty((0, *X.shape), X.dtype)


@kernel("squeeze2_grad", place=("cpu", "cuda"), view=True)
def squeeze2_grad(Out_grad: Array, XShape: ShapeOnly) -> Array:
    return Out_grad.reshape(XShape.shape[1:])


# tile -----------------------------------------------------------------------------------------------------------------
@kernel("tile", place=("cpu", "cuda"))
def tile(
    X: Array,
    RepeatTimes: Array | None = None,
    repeat_times_tensor: list[Array] | None = None,
    *,
    repeat_times: list[int],
    xp: ArrayModule,
) -> Array:
    return xp.tile(X, tuple(to_ints(RepeatTimes, repeat_times_tensor, repeat_times)))


tile_grad = kernel("tile_grad", place=("cpu", "cuda"))(sum_of_tiles)


# unsqueeze ------------------------------------------------------------------------------------------------------------
# Kernels of unsqueeze: views.
@kernel("unsqueeze", place=("cpu", "cuda"), view=True)
def unsqueeze(X: Array, *, axes: list[int]) -> Array:
    return X.reshape(unsqueeze_dims("unsqueeze", X.shape, axes))


@kernel("unsqueeze_grad", place=("cpu", "cuda"), view=True)
def unsqueeze_grad(Out_grad: Array, X: ShapeOnly) -> Array:
    return Out_grad.reshape(X.shape)


# unsqueeze2 -----------------------------------------------------------------------------------------------------------
# Kernels of unsqueeze2: views.
@kernel("unsqueeze2", place=("cpu", "cuda"), view=True)
def unsqueeze2(
    X: Array,
    AxesTensor: Array | None = None,
    AxesTensorList: list[Array] | None = None,
    *,
    axes: list[int],
    xp: ArrayModule,
) -> tuple[Array, Array]:
    out = X.reshape(unsqueeze_dims("unsqueeze2", X.shape, to_ints(AxesTensor, AxesTensorList, axes)))
    return out, xp.empty((0, *X.shape), X.dtype)


@kernel("unsqueeze2_grad", place=("cpu", "cuda"), view=True)
def unsqueeze2_grad(Out_grad: Array, XShape: ShapeOnly) -> Array:
    return Out_grad.reshape(XShape.shape[1:])

"""What kernels of reductions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from oprack.kernel import Array, ArrayModule, KernelSpecialization
from oprack.types import FLOATS

from oprack_math.kernels._numeric import accumulator, divide
from oprack_math.kernels._reduce import axes_of, kept, total


def floats_summing(call: KernelSpecialization) -> Callable[..., Any] | None:
    """A function of X and its axes that sums floats in their own dtype; None where the sum has another."""
    if call.dtypes["X"][0].name not in FLOATS or call.attrs.get("out_dtype", -1) >= 0:
        return None
    return partial(total, keep_dim=call.attrs["keep_dim"], xp=call.xp)


def tensor_axes(dim: Sequence[int], axis_tensor: Array | None, axis_tensors: Sequence[Array]) -> list[int]:
    """Dims to reduce: those of the tensors if there are some, else the attribute."""
    if axis_tensors:
        return [int(t.reshape(-1)[0]) for t in axis_tensors]
    return dim if axis_tensor is None else [int(a) for a in axis_tensor.reshape(-1)]


def at_extremum(x: Array, gradient: Array, extremum: Array, axes: tuple[int, ...] | None, xp: ArrayModule) -> Array:
    """The gradient at every element that equals the extremum, else 0."""
    chosen = x == kept(extremum, x.shape, axes)
    return xp.where(chosen, kept(gradient, x.shape, axes), gradient.dtype.type(0))


def shared_at_extremum(
    X: Array,
    AxisTensor: Array | None = None,
    AxisTensorList: Sequence[Array] = (),
    Out: Array | None = None,
    Out_grad: Array | None = None,
    *,
    dim: list[int],
    reduce_all: bool,
    xp: ArrayModule,
) -> Array:
    """The gradient in equal shares at all elements that equal the extremum, else 0."""
    axes = axes_of(X.ndim, tensor_axes(dim, AxisTensor, AxisTensorList), reduce_all)
    chosen = X == kept(Out, X.shape, axes)
    count = chosen.sum(axis=axes, keepdims=True)
    share = divide(kept(Out_grad, X.shape, axes).astype(accumulator(X.dtype)), count.astype(accumulator(X.dtype)), xp)
    return xp.where(chosen, share, share.dtype.type(0)).astype(X.dtype, copy=False)

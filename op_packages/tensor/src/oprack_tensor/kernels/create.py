"""Tensors made from a shape, a range or values of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.device import constant
from oprack.errors import AttributeValueError, InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows, ShapeOnly, numpy_dtype
from oprack.types import dtype_name

from oprack_tensor.dims import product, range_length, to_ints
from oprack_tensor.kernels._index import check_index
from oprack_tensor.kernels._reduce import sum_over


# constant -------------------------------------------------------------------------------------------------------------
# Attributes that hold a number, as an element of a dtype.
def constant_value(op: str, value: float, str_value: str, dtype: np.dtype[Any]) -> complex:
    """The value as a Python number: `str_value` unless it is empty, exactly for integers."""
    if not str_value:
        return value
    try:
        return int(str_value) if dtype.kind in "iu" else complex(str_value) if dtype.kind == "c" else float(str_value)
    except ValueError:
        pass
    try:
        return int(float(str_value)) if dtype.kind in "iu" else float(str_value)
    except (ValueError, OverflowError):
        raise AttributeValueError(
            f"op {op}: attribute str_value is {str_value!r}; "
            f"expected a number of dtype {dtype.name}, or an empty string"
        ) from None


def cast(value: complex, dtype: np.dtype[Any]) -> complex:
    """A Python number as an element of a dtype, again as a Python number, which every array library fills with."""
    element = np.asarray(value).astype(dtype)
    return element.item() if dtype.kind in "biufc" else float(element)


# assign_value ---------------------------------------------------------------------------------------------------------
_LISTS = {"bool": "bool_values", "float32": "fp32_values", "float64": "fp64_values", "int64": "int64_values"}


@kernel("assign_value", place=("cpu", "cuda"))
def assign_value(
    *,
    shape: list[int],
    dtype: int,
    bool_values: list[int],
    fp32_values: list[float],
    fp64_values: list[float],
    int32_values: list[int],
    int64_values: list[int],
    xp: ArrayModule,
) -> Array:
    lists: dict[str, Sequence[float]] = {
        "bool_values": bool_values,
        "fp32_values": fp32_values,
        "fp64_values": fp64_values,
        "int32_values": int32_values,
        "int64_values": int64_values,
    }
    name = _LISTS.get(dtype_name(dtype), "int32_values")
    values = lists[name] or next((v for v in lists.values() if v), [])
    size = product(shape)
    if len(values) < size:
        raise AttributeValueError(
            f"op assign_value: attribute {name} has {len(values)} values but shape {list(shape)} has {size} "
            "elements; expected one value per element"
        )
    return constant(np.array(values[:size], numpy_dtype(dtype)), xp).reshape(shape).copy()


# empty ----------------------------------------------------------------------------------------------------------------
@kernel("empty", place=("cpu", "cuda"))
def empty(
    ShapeTensor: Array | None = None,
    ShapeTensorList: list[Array] | None = None,
    *,
    shape: list[int],
    dtype: int,
    xp: ArrayModule,
) -> Array:
    """Zeros, which an array library need not touch before they are read."""
    dims = to_ints(ShapeTensor, ShapeTensorList, shape)
    if any(d < 0 for d in dims):
        raise InvalidArgumentError(f"op empty: shape is {dims}; expected no negative size when the op runs")
    return xp.zeros(dims, numpy_dtype(dtype))


# eye ------------------------------------------------------------------------------------------------------------------
@kernel("eye", place=("cpu", "cuda"))
def eye(*, num_rows: int, num_columns: int, dtype: int, xp: ArrayModule) -> Array:
    return xp.eye(num_rows, num_rows if num_columns == -1 else num_columns, dtype=numpy_dtype(dtype))


# fill -----------------------------------------------------------------------------------------------------------------
@kernel("fill", place=("cpu", "cuda"))
def fill(*, value: list[float], shape: list[int], dtype: int, xp: ArrayModule) -> Array:
    """The numbers as an array."""
    return constant(np.array(value).astype(numpy_dtype(dtype)), xp).reshape(shape).copy()


# fill_any -------------------------------------------------------------------------------------------------------------
@kernel("fill_any", place=("cpu", "cuda"))
def fill_any(X: Array, *, value: float, xp: ArrayModule) -> Array:
    """The value everywhere."""
    return xp.full(X.shape, value, X.dtype)


@kernel("fill_any_grad", place=("cpu", "cuda"))
def fill_any_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Zeros."""
    return xp.zeros_like(Out_grad)


# fill_any_like --------------------------------------------------------------------------------------------------------
@kernel("fill_any_like", place=("cpu", "cuda"))
def fill_any_like(X: ShapeOnly, *, value: float, dtype: int, xp: ArrayModule) -> Array:
    wanted = X.dtype if dtype < 0 else numpy_dtype(dtype)
    return xp.full(X.shape, cast(value, wanted), wanted)


# fill_constant --------------------------------------------------------------------------------------------------------
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
    return xp.full(dims, cast(constant_value("fill_constant", value, str_value, wanted), wanted), wanted)


# fill_constant_batch_size_like ----------------------------------------------------------------------------------------
@kernel("fill_constant_batch_size_like", place=("cpu", "cuda"))
def fill_constant_batch_size_like(
    Input: ShapeOnly,
    *,
    shape: list[int],
    input_dim_idx: int,
    output_dim_idx: int,
    dtype: int,
    value: float,
    str_value: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    wanted, dims, lod = numpy_dtype(dtype), list(shape), ctx.lod("Input")
    dims[output_dim_idx] = len(lod[-1]) - 1 if lod and input_dim_idx == 0 else Input.shape[input_dim_idx]
    number = constant_value("fill_constant_batch_size_like", value, str_value, wanted)
    return xp.full(dims, cast(number, wanted), wanted)


# fill_zeros_like ------------------------------------------------------------------------------------------------------
@kernel("fill_zeros_like", place=("cpu", "cuda"))
def fill_zeros_like(X: ShapeOnly, *, xp: ArrayModule) -> Array:
    return xp.zeros(X.shape, X.dtype)


@kernel("fill_zeros_like", place=("cpu", "cuda"))
def fill_zeros_like_rows(X: SelectedRows, *, xp: ArrayModule) -> Array:
    return xp.zeros(X.shape, X.value.dtype)


@kernel("fill_zeros_like", place=("cpu", "cuda"))
def fill_zeros_like_array(X: LoDTensorArray, *, xp: ArrayModule) -> LoDTensorArray:
    return LoDTensorArray(
        None if t is None else LoDTensor(xp.zeros_like(t.array), t.lod, place=t.place, check=False) for t in X
    )


# fill_zeros_like2 -----------------------------------------------------------------------------------------------------
@kernel("fill_zeros_like2", place=("cpu", "cuda"))
def fill_zeros_like2(X: ShapeOnly, *, dtype: int, xp: ArrayModule) -> Array:
    """Zeros of the dtype."""
    return xp.zeros(X.shape, numpy_dtype(dtype))


# linspace -------------------------------------------------------------------------------------------------------------
@kernel("linspace", place=("cpu", "cuda"))
def linspace(Start: Array, Stop: Array, Num: Array, *, dtype: int, xp: ArrayModule) -> Array:
    wanted, num = numpy_dtype(dtype), int(Num.reshape(-1)[0])
    if num < 1:
        raise InvalidArgumentError(f"op linspace: Num is {num}; expected at least 1")
    # both ends are converted first, as integers would lose their fraction only then
    start, stop = (float(t.reshape(-1)[0].astype(wanted)) for t in (Start, Stop))
    return xp.linspace(start, stop, num).astype(wanted)


# logspace -------------------------------------------------------------------------------------------------------------
@kernel("logspace", place=("cpu", "cuda"))
def logspace(Start: Array, Stop: Array, Num: Array, Base: Array, *, dtype: int, xp: ArrayModule) -> Array:
    """Powers of the base at even steps."""
    wanted, num = numpy_dtype(dtype), int(Num.reshape(-1)[0])
    if num < 1:
        raise InvalidArgumentError(f"op logspace: Num is {num}; expected at least 1")
    # converted first, as integers would lose their fraction only then
    start, stop, base = (float(t.reshape(-1)[0].astype(wanted)) for t in (Start, Stop, Base))
    return xp.power(base, xp.linspace(start, stop, num)).astype(wanted)


# meshgrid -------------------------------------------------------------------------------------------------------------
@kernel("meshgrid", place=("cpu", "cuda"))
def meshgrid(X: list[Array], *, xp: ArrayModule) -> list[Array]:
    return [a.copy() for a in xp.meshgrid(*(x.reshape(-1) for x in X), indexing="ij")]


@kernel("meshgrid_grad", place=("cpu", "cuda"))
def meshgrid_grad(X: list[ShapeOnly], outputs_grad: list[Array], *, ctx: KernelContext, xp: ArrayModule) -> list[Array]:
    return [
        sum_over(g, tuple(a for a in range(g.ndim) if a != i), xp).reshape(x.shape) if ctx.wants("X@GRAD", i) else None
        for i, (x, g) in enumerate(zip(X, outputs_grad, strict=True))
    ]


# one_hot --------------------------------------------------------------------------------------------------------------
@kernel("one_hot", place=("cpu", "cuda"))
def one_hot(
    X: Array, depth_tensor: Array | None = None, *, depth: int, dtype: int, allow_out_of_range: bool, xp: ArrayModule
) -> Array:
    """Every id against all classes."""
    depth = depth if depth_tensor is None else int(depth_tensor.reshape(-1)[0])
    if not allow_out_of_range:
        check_index("one_hot", "X", X, depth, xp)
    return (X == xp.arange(depth, dtype=X.dtype)).astype(numpy_dtype(dtype))


# one_hot_v2 -----------------------------------------------------------------------------------------------------------
@kernel("one_hot_v2", place=("cpu", "cuda"))
def one_hot_v2(
    X: Array, depth_tensor: Array | None = None, *, depth: int, dtype: int, allow_out_of_range: bool, xp: ArrayModule
) -> Array:
    depth = depth if depth_tensor is None else int(depth_tensor.reshape(-1)[0])
    if not allow_out_of_range:
        check_index("one_hot_v2", "X", X, depth, xp)
    return (X[..., None] == xp.arange(depth, dtype=X.dtype)).astype(numpy_dtype(dtype))


# range ----------------------------------------------------------------------------------------------------------------
@kernel("range", place=("cpu", "cuda"))
def arange(Start: Array, End: Array, Step: Array, *, xp: ArrayModule) -> Array:
    start, end, step = (t.reshape(-1)[0].item() for t in (Start, End, Step))
    if Start.dtype.kind in "iu":
        # modulo 2 ** 64, which is exact for each number of the result, whatever its sign
        steps = xp.arange(range_length(start, end, step), dtype=np.uint64) * np.uint64(step % 2**64)
        return (steps + np.uint64(start % 2**64)).astype(Start.dtype)
    return (start + xp.arange(range_length(start, end, step)) * step).astype(Start.dtype)


# tril_triu ------------------------------------------------------------------------------------------------------------
@kernel("tril_triu", place=("cpu", "cuda"))
def tril_triu(X: Array, *, diagonal: int, lower: bool, xp: ArrayModule) -> Array:
    return (xp.tril if lower else xp.triu)(X, diagonal)


@kernel("tril_triu_grad", place=("cpu", "cuda"))
def tril_triu_grad(Out_grad: Array, *, diagonal: int, lower: bool, xp: ArrayModule) -> Array:
    return (xp.tril if lower else xp.triu)(Out_grad, diagonal)

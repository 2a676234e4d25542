"""Tensors made of numbers, of shapes, and of random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oprack
from oprack import functional as F

from oprack_paddle.functions._tools import dtype_name, is_tensor, plain
from oprack_paddle.state import generator, get_default_dtype, in_dynamic_mode

Tensor = Any


def to_tensor(data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True) -> Tensor:
    """Numbers, lists, arrays or tensors as a tensor; Python's floats become the default dtype."""
    if is_tensor(data) and not isinstance(data, oprack.Tensor):
        return data if dtype is None else data.astype(dtype_name(dtype))
    if isinstance(data, oprack.Tensor):
        found = oprack.clone(data.detach())
        found = found if dtype is None else found.astype(dtype_name(dtype))
    else:
        array = _array(data)
        found = oprack.to_tensor(array, dtype=dtype_name(dtype), place=place if place is not None else None)
        if not in_dynamic_mode():
            return F.assign(found)
    if not stop_gradient:
        found.requires_grad = True
    return found


def _array(data: Any) -> Any:
    if isinstance(data, np.ndarray | np.generic):
        return np.asarray(data)
    if isinstance(data, list | tuple) and any(is_tensor(v) for v in data):
        data = plain(list(data))
    array = np.asarray(data)
    if array.dtype == np.float64:
        return array.astype(get_default_dtype())
    return (
        array.astype("complex64" if get_default_dtype() == "float32" else "complex128")
        if array.dtype.kind == "c"
        else array
    )


def _shape(shape: Any) -> Any:
    if is_tensor(shape):
        return plain(shape) if isinstance(shape, oprack.Tensor) else shape
    return [int(plain(s)) for s in ([shape] if isinstance(shape, int) else shape)]


def full(shape: Any, fill_value: Any, dtype: Any = None, name: Any = None) -> Tensor:
    """One number everywhere; without a dtype, that of the number, and the default dtype for floats."""
    if dtype is None:
        kind = type(plain(fill_value))
        dtype = {bool: "bool", int: "int64", complex: "complex64"}.get(kind, get_default_dtype())
    value = plain(fill_value) if is_tensor(fill_value) else fill_value
    return oprack.full(_shape(shape), value, dtype=dtype_name(dtype))


def full_like(x: Tensor, fill_value: Any, dtype: Any = None, name: Any = None) -> Tensor:
    """One number in the shape of x."""
    return oprack.full_like(x, plain(fill_value) if is_tensor(fill_value) else fill_value, dtype=dtype_name(dtype))


def zeros(shape: Any, dtype: Any = None, name: Any = None) -> Tensor:
    """Zeros."""
    return full(shape, 0.0, dtype or get_default_dtype())


def ones(shape: Any, dtype: Any = None, name: Any = None) -> Tensor:
    """Ones."""
    return full(shape, 1.0, dtype or get_default_dtype())


def zeros_like(x: Tensor, dtype: Any = None, name: Any = None) -> Tensor:
    """Zeros in the shape of x."""
    return full_like(x, 0, dtype)


def ones_like(x: Tensor, dtype: Any = None, name: Any = None) -> Tensor:
    """Ones in the shape of x."""
    return full_like(x, 1, dtype)


def empty(shape: Any, dtype: Any = None, name: Any = None) -> Tensor:
    """A tensor whose elements nobody has set yet; they are zeros."""
    return F.empty(shape=_shape(shape), dtype=dtype_name(dtype) or get_default_dtype())


def empty_like(x: Tensor, dtype: Any = None, name: Any = None) -> Tensor:
    """A tensor of the shape of x whose elements nobody has set yet; they are zeros."""
    return zeros_like(x, dtype)


def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None, name: Any = None) -> Tensor:
    """Numbers from start on, before end, in steps."""
    given = [start, end, step]
    start, end, step = (v.item() if isinstance(v, oprack.Tensor) else v for v in given)
    if end is None:
        start, end = 0, start
    if dtype is None:
        tensors = [v.dtype for v in given if isinstance(v, oprack.Tensor)]
        floats = any(isinstance(v, float) for v in (start, end, step))
        dtype = tensors[0] if tensors and not floats else get_default_dtype() if floats else "int64"
    name_ = dtype_name(dtype)
    if name_ in ("int32", "int64"):
        return oprack.to_tensor(np.arange(int(start), int(end), int(step) or step).astype(name_))
    count = max(0, math.ceil((np.float64(end) - np.float64(start)) / np.float64(step)))
    return oprack.to_tensor((np.float64(start) + np.arange(count) * np.float64(step)).astype(name_))


def linspace(start: Any, stop: Any, num: Any, dtype: Any = None, name: Any = None) -> Tensor:
    """Numbers at equal distances, the ends among them."""
    dtype = dtype_name(dtype) or _common(start, stop)
    return oprack.linspace(plain(start), plain(stop), int(plain(num)), dtype=dtype)


def _common(*ends: Any) -> str:
    return next((v.dtype for v in ends if is_tensor(v) and str(v.dtype).startswith("float")), get_default_dtype())


def logspace(start: Any, stop: Any, num: Any, base: Any = 10.0, dtype: Any = None, name: Any = None) -> Tensor:
    """Powers of a base whose exponents are at equal distances."""
    dtype = dtype_name(dtype) or get_default_dtype()
    ends = [float(np.ravel(plain(v))[0]) for v in (start, stop, base)]
    exponents = np.linspace(ends[0], ends[1], int(np.ravel(plain(num))[0]))
    return oprack.to_tensor(np.power(ends[2], exponents).astype(dtype))


def eye(num_rows: int, num_columns: Any = None, dtype: Any = None, name: Any = None) -> Tensor:
    """Ones on the diagonal of a matrix of zeros."""
    rows, columns = int(plain(num_rows)), None if num_columns is None else int(plain(num_columns))
    return oprack.to_tensor(np.eye(rows, columns, dtype=dtype_name(dtype) or get_default_dtype()))


def tril_indices(row: int, col: Any = None, offset: int = 0, dtype: Any = "int64") -> Tensor:
    """Where the lower triangle of a matrix is."""
    return oprack.to_tensor(
        np.stack(np.tril_indices(row, offset, row if col is None else col)).astype(dtype_name(dtype))
    )


def triu_indices(row: int, col: Any = None, offset: int = 0, dtype: Any = "int64") -> Tensor:
    """Where the upper triangle of a matrix is."""
    return oprack.to_tensor(
        np.stack(np.triu_indices(row, offset, row if col is None else col)).astype(dtype_name(dtype))
    )


def complex(real: Tensor, imag: Tensor, name: Any = None) -> Tensor:
    """Complex numbers of two parts."""
    return F.complex(real, imag)


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Vectors along one dim each, broadcast to a grid."""
    tensors = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
    return list(F.meshgrid(list(tensors)))


def clone(x: Tensor, name: Any = None) -> Tensor:
    """A copy through which gradients flow."""
    return oprack.clone(x)


# Random numbers -------------------------------------------------------------------------------------------------------


def drawn(array: Any, dtype: Any) -> Tensor:
    """What NumPy drew, as a tensor."""
    return oprack.to_tensor(np.asarray(array).astype(dtype_name(dtype) or get_default_dtype()))


def rand(shape: Any, dtype: Any = None, name: Any = None) -> Tensor:
    """Uniform numbers from 0 to 1."""
    return uniform(shape, dtype, 0.0, 1.0)


def uniform(
    shape: Any, dtype: Any = None, min: float = -1.0, max: float = 1.0, seed: int = 0, name: Any = None
) -> Tensor:
    """Uniform numbers in a range."""
    return F.uniform_random(
        shape=_shape(shape), dtype=dtype_name(dtype) or get_default_dtype(), min=float(min), max=float(max), seed=seed
    )


def standard_normal(shape: Any, dtype: Any = None, name: Any = None) -> Tensor:
    """Normal numbers of mean 0 and deviation 1."""
    return F.gaussian_random(shape=_shape(shape), dtype=dtype_name(dtype) or get_default_dtype(), mean=0.0, std=1.0)


def randn(shape: Any, dtype: Any = None, name: Any = None) -> Tensor:
    """Normal numbers of mean 0 and deviation 1."""
    return standard_normal(shape, dtype)


def normal(mean: Any = 0.0, std: Any = 1.0, shape: Any = None, name: Any = None) -> Tensor:
    """Normal numbers of a mean and a deviation, which may be tensors."""
    like = next((v for v in (mean, std) if is_tensor(v)), None)
    if like is None:
        return standard_normal(shape if shape is not None else [1]) * std + mean
    sizes = np.broadcast_shapes(*[tuple(v.shape) for v in (mean, std) if is_tensor(v)])
    return standard_normal(list(sizes), like.dtype) * std + mean


def randint(low: int = 0, high: Any = None, shape: Any = (1,), dtype: Any = None, name: Any = None) -> Tensor:
    """Integers from low on, below high."""
    low, high = (0, low) if high is None else (low, high)
    return F.randint(shape=_shape(shape), low=low, high=high, dtype=dtype_name(dtype) or "int64")


def randint_like(x: Tensor, low: int = 0, high: Any = None, dtype: Any = None, name: Any = None) -> Tensor:
    """Integers in the shape of x."""
    low, high = (0, low) if high is None else (low, high)
    found = F.randint(shape=list(x.shape), low=low, high=high, dtype="int64")
    return found.astype(dtype_name(dtype) or x.dtype)


def randperm(n: int, dtype: Any = "int64", name: Any = None) -> Tensor:
    """The numbers from 0 to n - 1 in a random order."""
    return F.randperm(n=n, dtype=dtype_name(dtype))


def bernoulli(x: Tensor, name: Any = None) -> Tensor:
    """1 with the probabilities x, else 0."""
    return F.bernoulli(x)


def multinomial(x: Tensor, num_samples: int = 1, replacement: bool = False, name: Any = None) -> Tensor:
    """Places, drawn with these probabilities."""
    return F.multinomial(x, num_samples=num_samples, replacement=replacement)


def poisson(x: Tensor, name: Any = None) -> Tensor:
    """Numbers of the Poisson distribution of these rates."""
    return F.poisson(x)


def standard_gamma(x: Tensor, name: Any = None) -> Tensor:
    """Numbers of the gamma distribution of these shapes."""
    return drawn(generator().standard_gamma(np.asarray(x, "float64")), x.dtype)


def _fill(x: Tensor, array: Any, name: str) -> Tensor:
    from oprack_paddle.members.in_place import take_over

    return take_over(name, x, oprack.to_tensor(np.asarray(array).astype(x.dtype)))


def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0, name: Any = None) -> Tensor:
    """Fills a tensor with normal numbers."""
    return _fill(x, standard_normal(list(x.shape), "float64") * std + mean, "normal_")


def uniform_(x: Tensor, min: float = -1.0, max: float = 1.0, seed: int = 0, name: Any = None) -> Tensor:
    """Fills a tensor with uniform numbers."""
    return _fill(x, uniform(list(x.shape), "float64", min, max, seed), "uniform_")


def exponential_(x: Tensor, lam: float = 1.0, name: Any = None) -> Tensor:
    """Fills a tensor with numbers of the exponential distribution."""
    return _fill(x, generator().exponential(1.0 / lam, x.shape), "exponential_")


def cauchy_(x: Tensor, loc: float = 0, scale: float = 1, name: Any = None) -> Tensor:
    """Fills a tensor with numbers of the Cauchy distribution."""
    return _fill(x, loc + scale * generator().standard_cauchy(x.shape), "cauchy_")


def geometric_(x: Tensor, probs: Any, name: Any = None) -> Tensor:
    """Fills a tensor with numbers of the geometric distribution."""
    p = np.broadcast_to(np.asarray(plain(probs), "float64"), x.shape)
    return _fill(x, np.log(generator().random(x.shape)) / np.log1p(-p), "geometric_")


def get_rng_state(device: Any = None) -> list[Any]:
    """The states of random numbers, for set_rng_state."""
    return [generator().bit_generator.state]


def set_rng_state(state_list: Any, device: Any = None) -> None:
    """Go back to states of random numbers."""
    generator().bit_generator.state = state_list[0]

"""Kernels; they draw from `ctx.generator`, so that a run with the same program seed gives the same numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly, numpy_dtype
from oprack.types import FLOATS


# shape ----------------------------------------------------------------------------------------------------------------
# Shapes given as an attribute or as tensors.
def given_shape(op: str, tensor: Array | None, tensors: Sequence[Array] | None, attr: Sequence[int]) -> tuple[int, ...]:
    """Dims as a tuple. Raises InvalidArgumentError for a negative one."""
    if tensor is not None:
        dims = [int(v) for v in tensor.reshape(-1).tolist()]
    elif tensors:
        dims = [int(t.reshape(-1)[0]) for t in tensors]
    else:
        dims = list(attr)
    if any(d < 0 for d in dims):
        raise InvalidArgumentError(f"op {op}: shape is {dims}; expected no negative size when the op runs")
    return tuple(dims)


# uniform --------------------------------------------------------------------------------------------------------------
# What uniform_random and uniform_random_batch_size_like share.
DTYPES = FLOATS | {"bfloat16"}


class Uniform(NamedTuple):
    """Attributes of a uniform distribution, and of the diagonal that is written over the numbers drawn."""

    min: float
    max: float
    seed: int
    diag_num: int
    diag_step: int
    diag_val: float


def uniform(dims: Sequence[int], dtype: object, attrs: Uniform, ctx: KernelContext) -> Array:
    """Array of these dims from U[min, max), then diag_val at diag_num places that are diag_step apart."""
    op, (low, high, seed, diag_num, diag_step, diag_val) = ctx.op_type, attrs
    if low > high:
        raise InvalidArgumentError(f"op {op}: min is {low} and max {high}; expected min <= max")
    wanted = numpy_dtype(dtype)
    values = ctx.generator(seed).uniform(low, high, dims).astype(wanted)
    if high > low and wanted.itemsize < 8:
        values[values >= high] = low  # rounding must not reach the upper bound, which is excluded
    last = (diag_num - 1) * (diag_step + 1)
    if last >= values.size:
        raise InvalidArgumentError(
            f"op {op}: diag_num {diag_num} and diag_step {diag_step} lead to element {last} of {values.size}; "
            "expected fewer"
        )
    if diag_num:
        values.reshape(-1)[: last + 1 : diag_step + 1] = diag_val
    return values


# zero grad ------------------------------------------------------------------------------------------------------------
# The gradient of numbers that do not depend on the input.
def zeros(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Zeros."""
    return xp.zeros_like(Out_grad)


# bernoulli ------------------------------------------------------------------------------------------------------------
@kernel("bernoulli", place=("cpu", "cuda"), dtypes=FLOATS)
def bernoulli(X: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    if X.size and not (X.min() >= 0 and X.max() <= 1):
        raise InvalidArgumentError(
            f"op bernoulli: X has values from {X.min()} to {X.max()}; expected probabilities in [0, 1]"
        )
    return (xp.asarray(ctx.generator(0).random(X.shape)) < X).astype(X.dtype)


# class_center_sample --------------------------------------------------------------------------------------------------
@kernel("class_center_sample", place=("cpu", "cuda"), dtypes={"int32", "int64"})
def class_center_sample(
    Label: Array,
    *,
    num_classes: int,
    num_samples: int,
    fix_seed: bool,
    seed: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    """The classes that occur, and as many others as there is room for."""
    present, remapped = xp.unique(Label, return_inverse=True)
    if len(present) and not (0 <= int(present[0]) and int(present[-1]) < num_classes):
        raise InvalidArgumentError(
            f"op class_center_sample: Label lies in [{int(present[0])}, {int(present[-1])}]; expected classes in "
            f"[0, {num_classes})"
        )
    others = xp.setdiff1d(xp.arange(num_classes, dtype=Label.dtype), present)
    picked = ctx.generator(seed if fix_seed else 0).permutation(len(others))[: max(num_samples - len(present), 0)]
    return remapped.reshape(Label.shape).astype(Label.dtype), xp.concatenate([present, others[xp.asarray(picked)]])


# dirichlet ------------------------------------------------------------------------------------------------------------
@kernel("dirichlet", dtypes=FLOATS)
def dirichlet(Alpha: Array, *, ctx: KernelContext) -> Array:
    """Shares of gamma variables, by their logarithms, so that small ones do not all become 0."""
    if Alpha.size and not (Alpha.min() > 0 and np.isfinite(Alpha.max())):
        raise InvalidArgumentError(
            f"op dirichlet: Alpha has values from {Alpha.min()} to {Alpha.max()}; expected finite numbers above 0"
        )
    generator, alpha = ctx.generator(0), Alpha.astype(np.float64)
    # a variable of shape a is one of shape a + 1 times U^(1/a)
    logs = np.log(generator.standard_gamma(alpha + 1)) - generator.standard_exponential(alpha.shape) / alpha
    shares = np.exp(logs - logs.max(axis=-1, keepdims=True, initial=-np.inf))
    return (shares / shares.sum(axis=-1, keepdims=True)).astype(Alpha.dtype)


# exponential ----------------------------------------------------------------------------------------------------------
@kernel("exponential", place=("cpu", "cuda"), dtypes=FLOATS)
def exponential(X: Array, *, lambda_: float, ctx: KernelContext, xp: ArrayModule) -> Array:
    """Waiting times of that rate."""
    return xp.asarray((ctx.generator(0).standard_exponential(tuple(X.shape)) / lambda_).astype(X.dtype))


# gaussian_inplace -----------------------------------------------------------------------------------------------------
@kernel("gaussian_inplace", place=("cpu", "cuda"), dtypes=FLOATS)
def gaussian_inplace(x: Array, *, mean: float, std: float, seed: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    """Normally distributed numbers."""
    return xp.asarray(ctx.generator(seed).normal(mean, std, tuple(x.shape)).astype(x.dtype))


@kernel("gaussian_inplace_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def gaussian_inplace_grad(out_grad: Array, *, xp: ArrayModule) -> Array:
    """Zeros."""
    return xp.zeros_like(out_grad)


# gaussian_random ------------------------------------------------------------------------------------------------------
@kernel("gaussian_random", place=("cpu", "cuda"), dtypes=FLOATS)
def gaussian_random(
    ShapeTensor: Array | None = None,
    ShapeTensorList: list[Array] | None = None,
    *,
    shape: list[int],
    mean: float,
    std: float,
    seed: int,
    dtype: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    dims = given_shape("gaussian_random", ShapeTensor, ShapeTensorList, shape)
    return xp.asarray(ctx.generator(seed).normal(mean, std, dims).astype(numpy_dtype(dtype)))


# gaussian_random_batch_size_like --------------------------------------------------------------------------------------
@kernel("gaussian_random_batch_size_like", place=("cpu", "cuda"), dtypes=FLOATS)
def gaussian_random_batch_size_like(
    Input: ShapeOnly,
    *,
    shape: list[int],
    input_dim_idx: int,
    output_dim_idx: int,
    mean: float,
    std: float,
    seed: int,
    dtype: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    """Normal numbers, as many rows as Input has."""
    dims = list(shape)
    dims[output_dim_idx] = Input.shape[input_dim_idx]
    return xp.asarray(ctx.generator(seed).normal(mean, std, dims).astype(numpy_dtype(dtype)))


# gumbel_softmax -------------------------------------------------------------------------------------------------------
@kernel("gumbel_softmax", place=("cpu", "cuda"), dtypes=FLOATS)
def gumbel_softmax(
    X: Array, *, temperature: float, hard: bool, axis: int, ctx: KernelContext, xp: ArrayModule
) -> Array:
    """softmax of the disturbed logarithms, or 1 at its greatest element."""
    noise = xp.asarray(ctx.generator(0).gumbel(size=tuple(X.shape)).astype(X.dtype))
    if not X.size:
        return X.copy()
    disturbed = (X + noise) / X.dtype.type(temperature)
    if hard and X.ndim:
        places = xp.arange(X.shape[axis]).reshape([-1 if i == axis % X.ndim else 1 for i in range(X.ndim)])
        return (places == xp.expand_dims(disturbed.argmax(axis=axis), axis)).astype(X.dtype)
    along = axis if X.ndim else None
    raised = xp.exp(disturbed - disturbed.max(axis=along, keepdims=True))
    return raised / raised.sum(axis=along, keepdims=True)


@kernel("gumbel_softmax_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def gumbel_softmax_grad(Out: Array, Out_grad: Array, *, temperature: float, axis: int) -> Array:
    """The gradient of softmax, divided by the temperature."""
    along = axis if Out.ndim else None
    inner = (Out * Out_grad).sum(axis=along, keepdims=True)
    return Out * (Out_grad - inner) / Out.dtype.type(temperature)


# multinomial ----------------------------------------------------------------------------------------------------------
@kernel("multinomial", dtypes=FLOATS)
def multinomial(X: Array, *, num_samples: int, replacement: bool, ctx: KernelContext) -> Array:
    weights = X.reshape(-1, X.shape[-1]).astype(np.float64)
    if num_samples < 1:
        raise InvalidArgumentError(f"op multinomial: num_samples is {num_samples}; expected at least 1")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights.sum(axis=1) > 0).all()):
        raise InvalidArgumentError(
            "op multinomial: X has a weight that is negative or not finite, or a row of zeros; "
            "expected weights >= 0 with a positive sum in each row"
        )
    generator = ctx.generator(0)
    drawn = _with(weights, num_samples, generator) if replacement else _without(weights, num_samples, generator)
    return drawn.astype(np.int64).reshape(*X.shape[:-1], num_samples)


def _with(weights: Array, k: int, generator: np.random.Generator) -> Array:
    """Inverts the cumulated shares; row i's lie in [i, i + 1), so that one sorted list serves all rows."""
    rows, classes = weights.shape
    shares = np.cumsum(weights, axis=1)
    shares /= shares[:, -1:]
    row = np.arange(rows)[:, None]
    flat = (shares + row).reshape(-1)
    found = np.searchsorted(flat, generator.random((rows, k)) + row, side="right") - row * classes
    # rounding of the last share may lead past the last class that has a weight
    last = classes - 1 - np.argmax(weights[:, ::-1] > 0, axis=1)
    return np.minimum(found, last[:, None])


def _without(weights: Array, k: int, generator: np.random.Generator) -> Array:
    """The k classes whose exponential clocks, of rate weight, ring first."""
    fewest = int((weights > 0).sum(axis=1).min())
    if k > fewest:
        raise InvalidArgumentError(
            f"op multinomial: num_samples is {k} but a row of X has {fewest} weights above 0; expected at most as many "
            "without replacement"
        )
    with np.errstate(divide="ignore"):
        times = np.where(weights > 0, generator.standard_exponential(weights.shape) / weights, np.inf)
    return np.argsort(times, axis=1, kind="stable")[:, :k]


# poisson --------------------------------------------------------------------------------------------------------------
_MOST = 1e18  # counts are drawn as integers of 64 bits


@kernel("poisson", dtypes=FLOATS)
def poisson(X: Array, *, ctx: KernelContext) -> Array:
    """Counts of these rates."""
    if X.size and not (X.min() >= 0 and X.max() <= _MOST):
        raise InvalidArgumentError(
            f"op poisson: X has values from {X.min()} to {X.max()}; expected rates from 0 to {_MOST:g}"
        )
    return ctx.generator(0).poisson(X).astype(X.dtype)


poisson_grad = kernel("poisson_grad", place=("cpu", "cuda"), dtypes=FLOATS)(zeros)


# randint --------------------------------------------------------------------------------------------------------------
@kernel("randint", place=("cpu", "cuda"), dtypes=("int32", "int64"))
def randint(
    ShapeTensor: Array | None = None,
    ShapeTensorList: list[Array] | None = None,
    *,
    low: int,
    high: int,
    shape: list[int],
    dtype: int,
    seed: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    if low >= high:
        raise InvalidArgumentError(f"op randint: low is {low} and high {high}; expected low < high")
    dims = given_shape("randint", ShapeTensor, ShapeTensorList, shape)
    return xp.asarray(ctx.generator(seed).integers(low, high, dims, dtype="int64").astype(numpy_dtype(dtype)))


# random_crop ----------------------------------------------------------------------------------------------------------
@kernel("random_crop", place=("cpu", "cuda"))
def random_crop(
    X: Array, Seed: Array, *, shape: list[int], startup_seed: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array, Array]:
    """One gather, with a shift of its own for each instance and dim."""
    given = int(Seed.reshape(-1)[0]) if Seed.size else 0
    generator = ctx.generator(given if given > 0 else startup_seed)
    lead = X.shape[: X.ndim - len(shape)]
    count = math.prod(lead)
    places = [xp.arange(count).reshape(-1, *[1] * len(shape))]
    for i, (size, dim) in enumerate(zip(shape, X.shape[len(lead) :], strict=True)):
        first = xp.asarray(generator.integers(0, dim - size + 1, count)).reshape(-1, *[1] * len(shape))
        places.append(first + xp.arange(size).reshape([-1 if j == i else 1 for j in range(len(shape))]))
    seed = xp.asarray(generator.integers(1, 1 << 31, 1)).astype(xp.int64)
    return X.reshape(count, *X.shape[len(lead) :])[tuple(places)].reshape(*lead, *shape), seed


# randperm -------------------------------------------------------------------------------------------------------------
@kernel("randperm", place=("cpu", "cuda"), dtypes=FLOATS | {"int32", "int64"})
def randperm(*, n: int, dtype: int, seed: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    return xp.asarray(ctx.generator(seed).permutation(n).astype(numpy_dtype(dtype)))


# sampling_id ----------------------------------------------------------------------------------------------------------
@kernel("sampling_id", place=("cpu", "cuda"), dtypes=FLOATS)
def sampling_id(X: Array, *, min: float, max: float, seed: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    """How many of the running sums each draw has passed."""
    drawn = xp.asarray(ctx.generator(seed).uniform(min, max, (len(X), 1)))
    passed = (xp.cumsum(X.astype(xp.float64), axis=1) <= drawn).sum(axis=1)
    return xp.minimum(passed, X.shape[1] - 1).astype(xp.int64)


# seed -----------------------------------------------------------------------------------------------------------------
@kernel("seed", place=("cpu", "cuda"), dtypes=("int32",))
def draw_seed(*, seed: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    """The attribute, or a number drawn."""
    value = seed or int(ctx.generator(0).integers(1, 1 << 31))
    return xp.full(1, value, xp.int32)


# shuffle_batch --------------------------------------------------------------------------------------------------------
@kernel("shuffle_batch", place=("cpu", "cuda"))
def shuffle_batch(
    X: Array, Seed: Array, *, startup_seed: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array, Array, Array]:
    """Rows in a random order."""
    given = int(Seed.reshape(-1)[0]) if Seed.size else 0
    generator = ctx.generator(given if given > 0 else startup_seed)
    rows = X.reshape(math.prod(X.shape[:-1]), X.shape[-1])
    places = xp.asarray(generator.permutation(len(rows)))
    out = xp.empty_like(rows)
    out[places] = rows
    seed = xp.asarray(generator.integers(1, 1 << 31, 1))
    return out.reshape(X.shape), places.astype(xp.int64), seed.astype(xp.int64)


@kernel("shuffle_batch_grad", place=("cpu", "cuda"))
def shuffle_batch_grad(ShuffleIdx: Array, Out_grad: Array) -> Array:
    """Rows back where they came from."""
    shape = Out_grad.shape
    return Out_grad.reshape(math.prod(shape[:-1]), shape[-1])[ShuffleIdx].reshape(shape)


# truncated_gaussian_random --------------------------------------------------------------------------------------------
_CUT = 2.0  # in standard deviations


@kernel("truncated_gaussian_random", place=("cpu", "cuda"), dtypes=FLOATS)
def truncated_gaussian_random(
    *, shape: list[int], mean: float, std: float, seed: int, dtype: int, ctx: KernelContext, xp: ArrayModule
) -> Array:
    generator = ctx.generator(seed)
    values = generator.standard_normal(tuple(shape))
    outside = np.abs(values) > _CUT
    while outside.any():  # one value in 22 is drawn again
        values[outside] = generator.standard_normal(int(outside.sum()))
        outside = np.abs(values) > _CUT
    return xp.asarray((values * std + mean).astype(numpy_dtype(dtype)))


# uniform_random -------------------------------------------------------------------------------------------------------
@kernel("uniform_random", place=("cpu", "cuda"), dtypes=DTYPES)
def uniform_random(
    ShapeTensor: Array | None = None,
    ShapeTensorList: list[Array] | None = None,
    *,
    shape: list[int],
    dtype: int,
    attrs: Uniform,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    dims = given_shape("uniform_random", ShapeTensor, ShapeTensorList, shape)
    return xp.asarray(uniform(dims, dtype, attrs, ctx))


# uniform_random_batch_size_like ---------------------------------------------------------------------------------------
@kernel("uniform_random_batch_size_like", place=("cpu", "cuda"), dtypes=DTYPES)
def uniform_random_batch_size_like(
    Input: ShapeOnly,
    *,
    shape: list[int],
    input_dim_idx: int,
    output_dim_idx: int,
    attrs: Uniform,
    dtype: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    dims = list(shape)
    dims[output_dim_idx] = Input.shape[input_dim_idx]
    return xp.asarray(uniform(dims, dtype, attrs, ctx))


# uniform_random_inplace -----------------------------------------------------------------------------------------------
@kernel("uniform_random_inplace", place=("cpu", "cuda"), dtypes=FLOATS)
def uniform_random_inplace(X: Array, *, attrs: Uniform, ctx: KernelContext, xp: ArrayModule) -> Array:
    """Evenly distributed numbers."""
    return xp.asarray(uniform(X.shape, X.dtype, attrs, ctx))


uniform_random_inplace_grad = kernel("uniform_random_inplace_grad", place=("cpu", "cuda"), dtypes=FLOATS)(zeros)

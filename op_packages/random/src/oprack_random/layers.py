"""Layers of random tensors. seed 0 takes the executor's: the same seed gives the same numbers on every run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from oprack.layers import LayerHelper, Variable, check_dtype, check_variable, int_list
from oprack.types import FLOATS, dtype_enum


# What layers of ops with a shape, given by numbers or Variables, and a dtype share.
def _draw(
    op_type: str,
    shape: Sequence[int | Variable],
    dtype: object,
    dtypes: Collection[str],
    attrs: Mapping[str, float],
    name: str | None,
) -> Variable:
    """The Variable that the op draws; dtypes: those it has."""
    helper = LayerHelper(op_type, name=name)
    dims = int_list(helper, shape, "shape")
    inputs = {"ShapeTensor": dims.tensor, "ShapeTensorList": dims.tensors or None}
    number = int(dtype_enum(check_dtype(dtype, "dtype", op_type, dtypes)))
    return helper.apply(op_type, inputs, {"shape": dims.values, "dtype": number, **attrs}, stop_gradient=True)


def gaussian_random(
    shape: Sequence[int | Variable],
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: object = "float32",
    name: str | None = None,
) -> Variable:
    """From N(mean, std^2); shape: ints, or integer Variables of one element. Op gaussian_random."""
    attrs = {"mean": float(mean), "std": float(std), "seed": seed}
    return _draw("gaussian_random", shape, dtype, FLOATS, attrs, name)


def randint(
    low: int,
    high: int | None = None,
    shape: Sequence[int | Variable] = (1,),
    dtype: object = "int64",
    seed: int = 0,
    name: str | None = None,
) -> Variable:
    """Integers from low to high - 1; one bound alone is `high`, with low 0. Op randint."""
    if high is None:
        low, high = 0, low
    return _draw("randint", list(shape), dtype, {"int32", "int64"}, {"low": low, "high": high, "seed": seed}, name)


def randperm(n: int, dtype: object = "int64", seed: int = 0, name: str | None = None) -> Variable:
    """[n]: 0 to n - 1 in random order. Op randperm."""
    number = int(dtype_enum(check_dtype(dtype, "dtype", "randperm", {"int32", "int64"} | FLOATS)))
    attrs = {"n": n, "dtype": number, "seed": seed}
    return LayerHelper("randperm", name=name).apply("randperm", {}, attrs, stop_gradient=True)


def uniform_random(
    shape: Sequence[int | Variable],
    dtype: object = "float32",
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
    name: str | None = None,
) -> Variable:
    """From U[min, max); shape: ints, or integer Variables of one element. Op uniform_random."""
    attrs = {"min": float(min), "max": float(max), "seed": seed}
    return _draw("uniform_random", shape, dtype, FLOATS, attrs, name)


def uniform_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: object = "float32",
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
    name: str | None = None,
) -> Variable:
    """As uniform_random, but dim `output_dim_idx` is that of dim `input_dim_idx` of `input`.

    Op uniform_random_batch_size_like.
    """
    check_variable(input, "input", "uniform_random_batch_size_like")
    attrs = {
        "shape": list(shape),
        "dtype": int(dtype_enum(check_dtype(dtype, "dtype", "uniform_random_batch_size_like", FLOATS))),
        "input_dim_idx": input_dim_idx,
        "output_dim_idx": output_dim_idx,
        "min": float(min),
        "max": float(max),
        "seed": seed,
    }
    helper = LayerHelper("uniform_random_batch_size_like", name=name)
    return helper.apply("uniform_random_batch_size_like", {"Input": input}, attrs, stop_gradient=True)

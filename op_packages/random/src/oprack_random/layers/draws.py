"""Random tensors. seed 0 takes the executor's: the same seed gives the same numbers on every run of a program."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_dtype, check_variable, int_list
from oprack.types import FLOATS, dtype_enum


def _draw(op_type, shape, dtype, dtypes, attrs, name):
    helper = LayerHelper(op_type, name=name)
    dims = int_list(helper, shape, "shape")
    inputs = {"ShapeTensor": dims.tensor, "ShapeTensorList": dims.tensors or None}
    number = int(dtype_enum(check_dtype(dtype, "dtype", op_type, dtypes)))
    return helper.apply(op_type, inputs, {"shape": dims.values, "dtype": number, **attrs}, stop_gradient=True)


def uniform_random(shape, dtype="float32", min=-1.0, max=1.0, seed=0, name=None):
    """From U[min, max); shape: ints, or integer Variables of one element. Op uniform_random."""
    attrs = {"min": float(min), "max": float(max), "seed": seed}
    return _draw("uniform_random", shape, dtype, FLOATS, attrs, name)


def gaussian_random(shape, mean=0.0, std=1.0, seed=0, dtype="float32", name=None):
    """From N(mean, std^2); shape: ints, or integer Variables of one element. Op gaussian_random."""
    attrs = {"mean": float(mean), "std": float(std), "seed": seed}
    return _draw("gaussian_random", shape, dtype, FLOATS, attrs, name)


def randint(low, high=None, shape=(1,), dtype="int64", seed=0, name=None):
    """Integers from low to high - 1; one bound alone is `high`, with low 0. Op randint."""
    if high is None:
        low, high = 0, low
    return _draw("randint", list(shape), dtype, {"int32", "int64"}, {"low": low, "high": high, "seed": seed}, name)


def randperm(n, dtype="int64", seed=0, name=None):
    """[n]: 0 to n - 1 in random order. Op randperm."""
    number = int(dtype_enum(check_dtype(dtype, "dtype", "randperm", {"int32", "int64"} | FLOATS)))
    attrs = {"n": n, "dtype": number, "seed": seed}
    return LayerHelper("randperm", name=name).apply("randperm", {}, attrs, stop_gradient=True)


def uniform_random_batch_size_like(
    input, shape, dtype="float32", input_dim_idx=0, output_dim_idx=0, min=-1.0, max=1.0, seed=0, name=None
):
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

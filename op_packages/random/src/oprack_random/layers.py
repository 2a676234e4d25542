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
    """Draws numbers from N(mean, std^2): op gaussian_random.

    Args:
        shape: The sizes, ints or integer Variables of one element; or one integer Variable.
        mean: The mean.
        std: The standard deviation.
        seed: Seed of the generator; 0: that of the executor.
        dtype: Dtype of the result, a floating one.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of that shape.
    """
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
    """Draws integers from low to high - 1: op randint.

    Args:
        low: The least integer; without high, the end, and integers start from 0.
        high: The end, which is not drawn; None: as above.
        shape: The sizes, ints or integer Variables of one element.
        dtype: Dtype of the result, int32 or int64.
        seed: Seed of the generator; 0: that of the executor.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of that shape.
    """
    if high is None:
        low, high = 0, low
    return _draw("randint", list(shape), dtype, {"int32", "int64"}, {"low": low, "high": high, "seed": seed}, name)


def randperm(n: int, dtype: object = "int64", seed: int = 0, name: str | None = None) -> Variable:
    """Draws a random permutation of the integers from 0 to n - 1: op randperm.

    Args:
        n: How many.
        dtype: Dtype of the result: int32, int64, float32 or float64.
        seed: Seed of the generator; 0: that of the executor.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [n].
    """
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
    """Draws numbers that are uniformly distributed in [min, max): op uniform_random.

    Args:
        shape: The sizes, ints or integer Variables of one element; or one integer Variable.
        dtype: Dtype of the result, a floating one.
        min: The lower bound.
        max: The upper bound.
        seed: Seed of the generator; 0: that of the executor.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of that shape.
    """
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
    """Draws numbers that are uniformly distributed, as many rows as another Variable has: the op of that name.

    Args:
        input: The Variable that says one size.
        shape: The sizes, of which one is replaced.
        dtype: Dtype of the result, a floating one.
        input_dim_idx: The dim of input whose size is taken.
        output_dim_idx: The dim of the result that gets it.
        min: The lower bound.
        max: The upper bound.
        seed: Seed of the generator; 0: that of the executor.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of that shape.
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

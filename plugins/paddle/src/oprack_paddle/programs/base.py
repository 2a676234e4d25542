"""paddle.base, which programs that began with Fluid use, and its modules core, dygraph, framework and executor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import oprack
from oprack.op.desc_rules import grad_name
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.types import dtype_enum

from oprack_paddle.functions._tools import dtype_name
from oprack_paddle.state import disable_static, enable_static, in_dynamic_mode

__all__ = ["in_dygraph_mode"]  # beside what is defined here

in_dygraph_mode = in_dynamic_mode


class DtypeName(str):
    """The name of a dtype, which int() turns into the number that attributes of ops have for it."""

    def __int__(self) -> int:
        return int(dtype_enum(str(self)))


class VarDesc:
    """What variables are: their dtypes, which are names here as everywhere, and their kinds."""

    class VarType:
        """Dtypes and kinds of variables."""

        BOOL, INT8, UINT8, INT16, INT32, INT64 = map(DtypeName, "bool int8 uint8 int16 int32 int64".split())
        FP16, BF16, FP32, FP64 = map(DtypeName, "float16 bfloat16 float32 float64".split())
        COMPLEX64, COMPLEX128 = map(DtypeName, ("complex64", "complex128"))
        LOD_TENSOR, SELECTED_ROWS, LOD_TENSOR_ARRAY = "lod_tensor", "selected_rows", "lod_tensor_array"


def create_lod_tensor(data: Any, recursive_seq_lens: Sequence[Sequence[int]], place: Any = None) -> Any:
    """A tensor of sequences.

    Args:
        data: An array, or a list of sequences of numbers.
        recursive_seq_lens: The lengths, from the outer level in.
        place: Where it is meant to be.
    """
    if isinstance(data, list):
        data = np.concatenate([np.asarray(part).reshape(len(part), -1) for part in data]).astype("int64")
    return LoDTensor(np.asarray(data), lod_from_lengths(recursive_seq_lens))


class DataFeeder:
    """Makes feeds of rows of samples.

    Args:
        feed_list: Variables, or their names, in the order of a row.
        place: Where the feeds are meant to be.
        program: Where names are looked up; None: the current program.
    """

    def __init__(self, feed_list: Sequence[Any], place: Any = None, program: Any = None) -> None:
        block = (program or oprack.default_main_program()).global_block()
        names = [v if isinstance(v, str) else v.name for v in feed_list]
        self._variables = [block.var(name) for name in names]

    def feed(self, iterable: Any) -> dict[str, Any]:
        """The feed of some rows: sequences of a variable with LoD are put one after another."""
        found = dict[str, Any]()
        for variable, column in zip(self._variables, zip(*iterable, strict=True), strict=True):
            parts = [np.asarray(value, dtype_name(variable.dtype)) for value in column]
            shape = tuple(variable.shape or ())[1:]
            sizes = [abs(s) for s in shape]
            if variable.lod_level:
                rows = np.concatenate([p.reshape(len(p), *sizes) for p in parts])
                found[variable.name] = LoDTensor(rows, lod_from_lengths([[len(p) for p in parts]]))
            else:
                open_size = any(s < 0 for s in shape)
                found[variable.name] = np.stack(parts if open_size else [p.reshape(sizes) for p in parts])
        return found


@contextmanager
def guard(place: Any = None) -> Iterator[None]:
    """Run calls at once inside a with block."""
    was_static = not in_dynamic_mode()
    disable_static()
    try:
        yield
    finally:
        if was_static:
            enable_static()


def enable_dygraph(place: Any = None) -> None:
    """From now on, calls are run at once."""
    disable_static()


def disable_dygraph() -> None:
    """From now on, calls append to the current program."""
    enable_static()


def enabled() -> bool:
    """Whether calls are run at once."""
    return in_dynamic_mode()


def to_variable(value: Any, name: Any = None, zero_copy: Any = None, dtype: Any = None) -> Any:
    """An array as a tensor."""
    return value if isinstance(value, oprack.Tensor) else oprack.to_tensor(value, dtype=dtype_name(dtype))


def convert_np_dtype_to_dtype_(np_dtype: Any) -> Any:
    """The dtype of an array's dtype."""
    return DtypeName(dtype_name(np_dtype))


def grad_var_name(var_name: str) -> str:
    """The name of a variable's gradient."""
    return grad_name(var_name)

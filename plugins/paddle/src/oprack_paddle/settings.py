"""What holds for a whole process: the default dtype, flags, the static mode, states of random numbers, printing."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
from oprack.errors import InvalidArgumentError

from oprack_paddle.functions._tools import dtype_name
from oprack_paddle.functions._tools import is_tensor as _is_tensor
from oprack_paddle.state import forget_generator, in_dynamic_mode

_flags: dict[str, Any] = {}


def get_flags(flags: Any) -> dict[str, Any]:
    """Flags that were set; Paddle's flags choose among its own kernels, and none changes a result here."""
    return {f: _flags.get(f) for f in ([flags] if isinstance(flags, str) else flags)}


def set_flags(flags: dict[str, Any]) -> None:
    """Keep flags for get_flags."""
    if not isinstance(flags, dict):
        raise TypeError(f"set_flags: flags is {flags!r}; expected a dict")
    _flags.update(flags)


def is_tensor(x: Any) -> bool:
    """Whether a value is a tensor."""
    return _is_tensor(x)


def seed(seed: int) -> Any:
    """Start the random numbers anew."""
    forget_generator()
    return oprack.seed(int(seed))


def set_printoptions(
    precision: Any = None, threshold: Any = None, edgeitems: Any = None, sci_mode: Any = None, linewidth: Any = None
) -> None:
    """How tensors are printed; the settings are NumPy's."""
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    np.set_printoptions(**{k: v for k, v in given.items() if v is not None})
    if sci_mode is not None:
        np.set_printoptions(suppress=not sci_mode)


class iinfo:
    """The limits of an integer dtype."""

    def __init__(self, dtype: Any) -> None:
        found = np.iinfo(dtype_name(dtype))
        self.min, self.max, self.bits, self.dtype = int(found.min), int(found.max), found.bits, found.dtype.name


class finfo:
    """The limits of a floating dtype."""

    def __init__(self, dtype: Any) -> None:
        found = np.finfo(dtype_name(dtype))
        self.min, self.max, self.eps = float(found.min), float(found.max), float(found.eps)
        self.tiny = self.smallest_normal = float(found.tiny)
        self.resolution, self.bits, self.dtype = float(found.resolution), found.bits, found.dtype.name


def check_shape(
    shape: Any, op_name: str = "", expected_shape_type: Any = None, expected_element_type: Any = None,
    expected_tensor_dtype: Any = None,
) -> None:  # fmt: skip
    """Refuse what is no shape.

    Raises:
        InvalidArgumentError: It is none.
    """
    sizes = shape.tolist() if _is_tensor(shape) and hasattr(shape, "tolist") else shape
    if not isinstance(sizes, list | tuple) and not _is_tensor(sizes):
        raise InvalidArgumentError(f"{op_name}: shape is {shape!r}; expected a list or a tensor of integers")


def disable_signal_handler() -> None:
    """Nothing to do: oprack handles no signals."""


def batch(reader: Any, batch_size: int, drop_last: bool = False) -> Any:
    """A reader of batches, made of a reader of samples."""
    if batch_size <= 0:
        raise ValueError(f"batch: batch_size is {batch_size}; expected a positive number")

    def read() -> Any:
        rows = []
        for row in reader():
            rows.append(row)
            if len(rows) == batch_size:
                yield rows
                rows = []
        if rows and not drop_last:
            yield rows

    return read


class LazyGuard:
    """Parameters are created at once all the same, since nothing here is too large for that."""

    def __enter__(self) -> LazyGuard:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def create_parameter(
    shape: Any, dtype: Any, name: Any = None, attr: Any = None, is_bias: bool = False, default_initializer: Any = None
) -> Any:
    """A parameter, in the program or by itself."""
    make = oprack.nn.create_parameter if in_dynamic_mode() else oprack.layers.create_parameter
    if in_dynamic_mode():
        return make(list(shape), dtype_name(dtype), attr, is_bias, default_initializer)
    return make(shape=list(shape), dtype=dtype_name(dtype), name=name, attr=attr, is_bias=is_bias,
                default_initializer=default_initializer)  # fmt: skip

"""feed and fetch: the ops through which values enter and leave a program, and the checks of what is fed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.errors import (
    FeedDtypeError,
    FeedLoDError,
    FeedNameError,
    FeedShapeError,
    InvalidArgumentError,
    InvalidLoDError,
)
from oprack.runtime.operator import OperatorBase
from oprack.tensor import LoDTensor, LoDTensorArray, Scope, SelectedRows, check_lod
from oprack.types import DTYPE_NAMES, VarType

if TYPE_CHECKING:
    from oprack.desc import BlockDesc, VarDesc
    from oprack.runtime.run_context import RunContext


class FeedOp(OperatorBase):
    """Out = X[col]: takes one value from the list that the executor filled."""

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        fed = self.get_input(scope, self.input("X"))
        col = self.attrs["col"]
        if not isinstance(fed, list) or not 0 <= col < len(fed) or fed[col] is None:
            raise FeedNameError(
                f"op feed: nothing was fed for input number {col}, variable {self.output('Out')!r}; add it to "
                "feed={...}"
            )
        self.set_output(scope, self.output("Out"), fed[col])


class FetchOp(OperatorBase):
    """Out[col] = X: puts one value into the list that the executor reads."""

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        value = self.get_input(scope, self.input("X"))
        name, col = self.output("Out"), self.attrs["col"]
        var = scope.find_var(name) or scope.var(name)
        if not isinstance(var.value, list):
            var.value = []
        var.value.extend([None] * (col + 1 - len(var.value)))
        var.value[col] = value


def as_fed_value(name: str, value: Any, var: VarDesc | None) -> Any:
    """The value to feed as `name`, checked against its VarDesc.

    value: array, LoDTensor, SelectedRows, a list of LoDTensors, or a pair (array, LoD offsets).
    Raises FeedDtypeError, FeedShapeError, FeedLoDError; each names the variable, what was fed and what is expected.
    """
    if isinstance(value, SelectedRows | LoDTensorArray):
        return value
    if isinstance(value, LoDTensor):
        tensor = LoDTensor(value.array, value.lod, place=value.place, layout=value.layout, check=False, shared=True)
    else:
        lod = None
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], list):
            value, lod = value
        try:
            array = value if hasattr(value, "dtype") and hasattr(value, "shape") else _array(value, var)
            tensor = LoDTensor(array, shared=True)
            tensor.dtype  # noqa: B018  a dtype that Paddle does not have raises here
        except InvalidArgumentError as error:
            raise FeedDtypeError(f"feed {name!r}: {error}") from error
        except (ValueError, TypeError) as error:
            raise FeedShapeError(
                f"feed {name!r}: {type(value).__name__} can't be made an array ({error}); pass numpy.ndarray or "
                "LoDTensor"
            ) from error
        tensor.lod = lod or []
    try:
        tensor.lod = check_lod(tensor.lod, tensor.shape[0] if tensor.array.ndim else 0, f"feed {name!r}")
    except InvalidLoDError as error:
        raise FeedLoDError(str(error)) from error
    if var is not None and var.type == VarType.LOD_TENSOR:
        _check_against(name, tensor, var)
    return tensor


def _array(value: Any, var: VarDesc | None) -> np.ndarray:
    """A Python number or list takes the dtype that the program declares."""
    from oprack.tensor import numpy_dtype

    return np.asarray(value, numpy_dtype(var.dtype) if var is not None and var.dtype is not None else None)


def _check_against(name: str, tensor: LoDTensor, var: VarDesc) -> None:
    expected = DTYPE_NAMES.get(var.dtype) if var.dtype is not None else None
    if expected is not None and tensor.dtype != expected:
        raise FeedDtypeError(
            f"feed {name!r}: got {tensor.dtype}{list(tensor.shape)}; the program expects {expected}; "
            f"pass value.astype({expected!r})"
        )
    dims = tuple(var.shape or ())
    if dims and len(dims) != len(tensor.shape):
        raise FeedShapeError(
            f"feed {name!r}: got shape {list(tensor.shape)} of rank {len(tensor.shape)}; the program expects rank "
            f"{len(dims)}, shape {list(dims)} (-1 = any size)"
        )
    if var.need_check_feed and any(d not in (-1, s) for d, s in zip(dims, tensor.shape, strict=True)):
        raise FeedShapeError(
            f"feed {name!r}: got shape {list(tensor.shape)}; the program expects {list(dims)} (-1 = any size)"
        )
    if var.lod_level and len(tensor.lod) != var.lod_level:
        raise FeedLoDError(
            f"feed {name!r}: got {len(tensor.lod)} LoD levels; the program expects {var.lod_level}; pass "
            f"oprack.LoDTensor(array, lod) with {var.lod_level} list(s) of offsets, such as [[0, 2, 5]]"
        )


def feed_ops(block: BlockDesc) -> dict[str, int]:
    """Variable -> col of the feed ops of a block."""
    return {op.outputs["Out"][0]: int(op.attrs.get("col", 0)) for op in block.ops if op.type == "feed"}


def set_feeds(block: BlockDesc, values: dict[str, Any], scope: Scope) -> None:
    """Put values where the block reads them: into the list of its feed ops, and the others into their variables."""
    columns = feed_ops(block)
    if columns:
        fed: list[Any] = [None] * (max(columns.values()) + 1)
        for name, col in columns.items():
            fed[col] = values.pop(name)
        holder = next(op.inputs["X"][0] for op in block.ops if op.type == "feed")
        scope.var(holder).value = fed
    for name, value in values.items():
        # a fed persistable variable keeps its value after the run, as a parameter set by hand would
        declared = block.find_var_recursive(name)
        known = scope.find_var(name) if declared is not None and declared.persistable else None
        (known or scope.var(name)).value = value


def fetch_ops(block: BlockDesc) -> dict[str, int]:
    """Variable -> col of the fetch ops of a block."""
    return {op.inputs["X"][0]: int(op.attrs.get("col", 0)) for op in block.ops if op.type == "fetch"}

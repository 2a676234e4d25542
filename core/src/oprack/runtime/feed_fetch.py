"""How values enter and leave a run: the ops feed and fetch, what is fed and fetched, numbers that Python computes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.desc import BlockDesc
from oprack.device import DeviceContextPool, host_array, transform_sparse, transform_value
from oprack.errors import (
    CorruptModelError,
    FeedDtypeError,
    FeedError,
    FeedLoDError,
    FeedNameError,
    FeedShapeError,
    FetchNameError,
    InvalidArgumentError,
    InvalidLoDError,
    OpError,
    did_you_mean,
)
from oprack.python.records import dataclass
from oprack.runtime.operator import OperatorBase
from oprack.tensor import CPUPlace, LoDTensor, LoDTensorArray, Scope, SparseValue, check_lod, numpy_dtype, plain_array
from oprack.tensor.kinds import SPARSE_TENSORS, kind_of
from oprack.types import DTYPE_NAMES, VarType, dtype_name

if TYPE_CHECKING:
    from oprack.desc import VarDesc
    from oprack.program import Schedule
    from oprack.runtime.run_context import RunContext


class FeedOp(OperatorBase):
    """Out = X[col]: takes one of the values that the executor filled in, by column."""

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        fed = self.get_input(scope, self.input("X"))
        col = self.attrs["col"]
        if not isinstance(fed, dict) or col not in fed:
            raise FeedNameError(
                f"op feed: nothing was fed for input number {col}, variable {self.output('Out')!r}; add it to "
                "feed={...}"
            )
        value = fed[col]
        if run.place.kind != "cpu":  # copied once, however many ops read it
            value = transform_value(value, run.place, run.pool)
        self.set_output(scope, self.output("Out"), value)


class FetchOp(OperatorBase):
    """Out[col] = X: puts one value beside those of the other fetch ops, by column."""

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        value = self.get_input(scope, self.input("X"))
        name, col = self.output("Out"), self.attrs["col"]
        var = scope.find_var(name) or scope.var(name)
        if not isinstance(var.value, dict):
            var.value = {}
        var.value[col] = value


# What is fed ---------------------------------------------------------------------------------------------------------
def as_fed_value(name: str, value: Any, var: VarDesc | None) -> Any:
    """Convert and check a value that is fed.

    The memory stays the caller's. An array that is not as kernels take it (another byte order, strides, a subclass) is
    converted.

    Args:
        name: The variable.
        value: Array, LoDTensor or eager tensor, a sparse value, a pair (array, LoD offsets), or a list of these for
            an array of tensors.
        var: The variable's VarDesc; None skips the checks against it.

    Returns:
        The LoDTensor, LoDTensorArray or sparse value to feed.

    Raises:
        FeedDtypeError: The dtype is not that of the variable, or none that kernels know.
        FeedShapeError: The dims are not those of the variable.
        FeedLoDError: The LoD is broken, or has other levels than the variable.
        FeedError: The value is of another sort than the variable.
    """
    kind = VarType.LOD_TENSOR if var is None else var.type
    if hasattr(value, "__oprack_value__"):
        value = value.__oprack_value__()
    if isinstance(value, LoDTensorArray) or (isinstance(value, list) and kind == VarType.LOD_TENSOR_ARRAY):
        _check_kind(name, "LoDTensorArray", var, VarType.LOD_TENSOR_ARRAY)
        items: list[Any] = [t if t is None else as_fed_value(f"{name}[{i}]", t, None) for i, t in enumerate(value)]
        return LoDTensorArray(items)
    if isinstance(value, SparseValue):
        if kind_of(value) in SPARSE_TENSORS:
            _check_kind(name, type(value).__name__, var, kind_of(value))
            _check_sparse(name, value, var)
        pattern, array = [fed_array(name, a) for a in value.pattern], fed_array(name, value.elements)
        return value.rebuilt(pattern, array, shared=True)
    tensor = _fed_tensor(name, value, var)
    try:
        tensor.lod = check_lod(tensor.lod, tensor.shape[0] if tensor.array.ndim else 0, f"feed {name!r}")
    except InvalidLoDError as error:
        raise FeedLoDError(str(error)) from error
    _check_kind(name, "LoDTensor", var, VarType.LOD_TENSOR)
    if var is not None and var.type == VarType.LOD_TENSOR:
        _check_against(name, tensor, var)
    return tensor


def _fed_tensor(name: str, value: Any, var: VarDesc | None) -> LoDTensor:
    """A tensor over the memory of what is fed, which no op may write to; its LoD is not checked yet."""
    if isinstance(value, LoDTensor):
        return LoDTensor(fed_array(name, value.array), value.lod, place=value.place, check=False, shared=True)
    lod = None
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], list):
        value, lod = value
    try:
        array = value if hasattr(value, "dtype") and hasattr(value, "shape") else _array(value, var)
    except (ValueError, TypeError) as error:
        raise FeedShapeError(
            f"feed {name!r}: {type(value).__name__} can't be made an array ({error}); pass numpy.ndarray or LoDTensor"
        ) from error
    tensor = LoDTensor(fed_array(name, array), shared=True)
    tensor.lod = lod or []
    return tensor


def fed_array(name: str, array: Any) -> Any:
    """The array as kernels take it.

    Raises:
        FeedDtypeError: Kernels do not know the dtype, or the array has masked elements.
    """
    try:
        dtype_name(array.dtype)
        plain = plain_array(array)
    except InvalidArgumentError as error:
        raise FeedDtypeError(f"feed {name!r}: {error}") from error
    # A read-only array with memory of its own is a constant to kernel libraries, which keep what they derive from it;
    # whoever feeds one can make it writable again. A view of it is none.
    return plain.view() if isinstance(plain, np.ndarray) and not plain.flags.writeable else plain


def _check_kind(name: str, fed: str, var: VarDesc | None, kind: VarType) -> None:
    """Refuse one of a tensor, an array of tensors and a sparse tensor for another; ops judge other sorts of values.

    Paddle declares sparse tensors of either layout as SPARSE_COO.
    """
    told = _TOLD_APART.get(kind)
    if var is not None and told is not None and _TOLD_APART.get(var.type, told) != told:
        raise FeedError(f"feed {name!r}: got a {fed}; the program expects a {var.type.name}")


_TOLD_APART = {
    VarType.LOD_TENSOR: "dense",
    VarType.LOD_TENSOR_ARRAY: "array",
    **dict.fromkeys(SPARSE_TENSORS, "sparse"),
}


def _check_sparse(name: str, value: SparseValue, var: VarDesc | None) -> None:
    """Raise unless dtype and dims of a sparse tensor are those that the program declares."""
    if var is None or var.type not in SPARSE_TENSORS:
        return
    expected = DTYPE_NAMES.get(var.dtype) if var.dtype is not None else None
    if expected is not None and value.dtype != expected:
        raise FeedDtypeError(
            f"feed {name!r}: got a {type(value).__name__} of {value.dtype}; the program expects {expected}"
        )
    _check_dims(name, value.shape, tuple(var.shape or ()), var)


def _array(value: Any, var: VarDesc | None) -> np.ndarray:
    """A Python number or list takes the dtype that the program declares."""
    return np.asarray(value, numpy_dtype(var.dtype) if var is not None and var.dtype is not None else None)


def _check_against(name: str, tensor: LoDTensor, var: VarDesc) -> None:
    """Raise unless dtype, dims and number of LoD levels are those that the program declares."""
    expected = DTYPE_NAMES.get(var.dtype) if var.dtype is not None else None
    if expected is not None and tensor.dtype != expected:
        raise FeedDtypeError(
            f"feed {name!r}: got {tensor.dtype}{list(tensor.shape)}; the program expects {expected}; "
            f"pass value.astype({expected!r})"
        )
    _check_dims(name, tensor.shape, tuple(var.shape or ()), var)
    if var.lod_level and len(tensor.lod) != var.lod_level:
        raise FeedLoDError(
            f"feed {name!r}: got {len(tensor.lod)} LoD levels; the program expects {var.lod_level}; pass "
            f"oprack.LoDTensor(array, lod) with {var.lod_level} list(s) of offsets, such as [[0, 2, 5]]"
        )


def _check_dims(name: str, shape: tuple[int, ...], dims: tuple[int, ...], var: VarDesc) -> None:
    # Paddle writes no dims both for a scalar and for dims that are not known; an input that it checks has some
    known = bool(dims) or (var.need_check_feed and var.shape is not None)
    # a state that a program declares as [n] may be kept as [1, n]; the shape rules of the ops that read it decide
    same_size = not var.need_check_feed and min(dims, default=0) >= 0 and math.prod(dims) == math.prod(shape)
    if known and len(dims) != len(shape) and not same_size:
        raise FeedShapeError(
            f"feed {name!r}: got shape {list(shape)} of rank {len(shape)}; the program expects rank "
            f"{len(dims)}, shape {list(dims)} (-1 = any size)"
        )
    if var.need_check_feed and any(d not in (-1, s) for d, s in zip(dims, shape, strict=False)):
        raise FeedShapeError(
            f"feed {name!r}: got shape {list(shape)}; the program expects {list(dims)} (-1 = any size)"
        )


def blamed(error: Exception, block: BlockDesc, fed: Mapping[str, Any]) -> Exception:
    """The error of a run, or one that blames what was fed with other dims than the program declares.

    Models run with other dims than they declare where their ops allow it, so nobody is refused before the run. An op
    that does not says what is wrong with its own inputs, after passes perhaps with a weight of several ops.

    Args:
        error: The error.
        block: The block that the program starts with.
        fed: Names and values.
    """
    if isinstance(error, FeedError) or not isinstance(error, InvalidArgumentError | OpError):
        return error
    texts = []
    for name, value in fed.items():
        var, shape = block.find_var_recursive(name), list(getattr(value, "shape", ()))
        dims = list(var.shape) if var is not None and var.shape else shape
        if len(dims) != len(shape) or any(d not in (-1, s) for d, s in zip(dims, shape, strict=True)):
            texts.append(f"feed {name!r}: got shape {shape}; the program declares {dims} (-1 = any size)")
    return FeedShapeError(f"{'; '.join(texts)}, and the run failed.\n{error}") if texts else error


def feed_columns(block: BlockDesc) -> list[tuple[int, str]]:
    """(col, variable) of the feed ops of a block, sorted.

    Raises:
        CorruptModelError: One of them lacks its column or its variable.
    """
    return _columns(block, "feed")


def fetch_columns(block: BlockDesc) -> list[tuple[int, str]]:
    """(col, variable) of the fetch ops of a block, sorted.

    Raises:
        CorruptModelError: One of them lacks its column or its variable.
    """
    return _columns(block, "fetch")


def _columns(block: BlockDesc, op_type: str) -> list[tuple[int, str]]:
    columns: list[tuple[int, str]] = []
    for op in block.ops:
        if op.type != op_type:
            continue
        names, col = op.output("Out") if op_type == "feed" else op.input("X"), op.attr("col", len(columns))
        if len(names) != 1 or not isinstance(col, int):
            raise CorruptModelError(
                f"op {op.type} names the variables {names} and col {col!r}; expected one variable and an integer col"
            )
        columns.append((col, names[0]))
    return sorted(columns, key=lambda column: column[0])


@dataclass(frozen=True)
class FeedOps:
    """What the feed ops of a block read and write.

    Attributes:
        columns: (col, variable), sorted.
        holders: What they read from.
    """

    block: BlockDesc
    columns: list[tuple[int, str]]
    holders: frozenset[str]

    @classmethod
    def of(cls, block: BlockDesc) -> FeedOps:
        """Those of a block.

        Raises:
            CorruptModelError: For a feed op that lacks its variable or column.
        """
        holders = frozenset(n for op in block.ops if op.type == "feed" for n in op.input("X"))
        return cls(block, feed_columns(block), holders)


def set_feeds(feeds: FeedOps, values: dict[str, Any], scope: Scope) -> None:
    """Put values where the block reads them: those of its feed ops by column, the others into their variables."""
    block = feeds.block
    fed = {col: values[name] for col, name in feeds.columns}
    for holder in feeds.holders:
        scope.var(holder).value = fed
    for name in values.keys() - {n for _, n in feeds.columns}:
        # a fed persistable variable keeps its value after the run, as a parameter set by hand would
        declared = block.find_var_recursive(name)
        known = scope.find_var(name) if declared is not None and declared.persistable else None
        (known or scope.var(name)).value = values[name]


def wrong_names(block: BlockDesc, inputs: Sequence[str], missing: Sequence[str], unknown: Sequence[str]) -> str:
    """The message about names that were fed and are no variables, and inputs that were not fed."""
    known = inputs or [v.name for v in block.vars.values() if v.need_check_feed]
    return (
        (f"feed: {', '.join(map(repr, unknown))} is no variable of the program. " if unknown else "")
        + (f"feed: input {', '.join(map(repr, missing))} was not fed. " if missing else "")
        + (f"The program's inputs are {', '.join(map(repr, known))}." if known else "It has no feed ops.")
    )


# What is fetched -----------------------------------------------------------------------------------------------------
_LAST = 3  # ops whose outputs a message names


def fetch_names(block: BlockDesc, fetch_list: Sequence[Any] | None) -> list[str]:
    """The names of the variables to fetch.

    Args:
        block: The block that the program starts with.
        fetch_list: Names, or objects with a `name`; None means those of the block's fetch ops.

    Raises:
        FetchNameError: Something else is listed, or the block has no such variable.
    """
    if fetch_list is None:
        return [name for _, name in fetch_columns(block)]
    if isinstance(fetch_list, str):
        raise FetchNameError(f"fetch_list is the string {fetch_list!r}; expected a list of names: [{fetch_list!r}]")
    names = [n if isinstance(n, str) else getattr(n, "name", n) for n in fetch_list]
    for name in names:
        if not isinstance(name, str):
            raise FetchNameError(f"fetch_list has {name!r}; expected names of variables, or objects with a `name`")
        if block.find_var_recursive(name) is None:
            last = [n for op in block.ops[-_LAST:] for n in op.output_arg_names()]
            raise FetchNameError(
                f"fetch {name!r}: block 0 of the program has no such variable{did_you_mean(name, block.vars)}"
                + (f"; its last ops write {', '.join(map(repr, last))}" if last else "")
            )
    return names


def fetched(value: Any, name: str, block: BlockDesc, pool: DeviceContextPool, return_numpy: bool) -> Any:
    """The value of a variable after a run, in host memory.

    Args:
        value: The value; None when no op set it.
        name: The variable.
        block: The block that declares it.
        pool: Contexts of the places from which values are copied.
        return_numpy: Whether tensors are returned as arrays without LoD.

    Raises:
        FetchNameError: No op of the run set the variable.
        InvalidArgumentError: An array is asked for, and the tensor has LoD.
    """
    if value is None:
        raise FetchNameError(
            f"fetch {name!r}: no op of the run set it; it is declared in the program, but its op did not run or "
            "left this output out"
        )
    if isinstance(value, np.ndarray):  # the caller's own
        return value if return_numpy else LoDTensor(value)
    declared = block.find_var_recursive(name)
    if isinstance(value, LoDTensorArray):
        return [_on_host(t, name, pool, return_numpy, copied=True) for t in value]
    return _on_host(value, name, pool, return_numpy, copied=bool(declared and declared.persistable))


def _on_host(value: Any, name: str, pool: DeviceContextPool, return_numpy: bool, *, copied: bool) -> Any:
    """The value in host memory; `copied` when the scope goes on using its own."""
    if isinstance(value, SparseValue):
        return transform_sparse(value, CPUPlace(), pool)
    if not isinstance(value, LoDTensor):
        return value
    array = host_array(value, pool)
    if (copied or value.shared) and value.place.kind == "cpu":  # from a device it was copied already
        array = array.copy()
    if not return_numpy:
        return LoDTensor(array, value.lod, check=False)
    if value.lod:
        raise InvalidArgumentError(
            f"fetch {name!r}: it has LoD {value.lod if len(str(value.lod)) < 80 else '...'}, which a plain array "
            "can't hold; pass return_numpy=False to get LoDTensors"
        )
    return array


def set_schedules(block: BlockDesc, schedules: Mapping[str, Schedule], scope: Scope) -> None:
    """Write the present values of schedules into their persistable variables, in the scope that has them."""
    for name, schedule in schedules.items():
        var = block.var(name)
        array = np.full(var.shape or (), schedule(), numpy_dtype(var.dtype or VarType.FP32))
        (scope.find_var(name) or scope.root().var(name)).value = LoDTensor(array)

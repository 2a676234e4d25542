"""What the operators share: conditions, scopes of steps, sums of gradients."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
from oprack.desc import BlockDesc
from oprack.desc.reach import writes
from oprack.device import dense_rows
from oprack.errors import InvalidArgumentError
from oprack.kernel import ArrayModule
from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import LoDTensor, LoDTensorArray, Scope, SelectedRows
from oprack.types import GRAD_SUFFIX, VarType

Value: TypeAlias = LoDTensor | LoDTensorArray | SelectedRows
"""What variables hold that have gradients."""

_V = TypeVar("_V")


def host_array(tensor: LoDTensor) -> np.ndarray:
    """A small tensor in host memory."""
    return np.asarray(tensor)


def scalar(op_type: str, slot: str, tensor: LoDTensor) -> int:
    """The only element of a tensor. Raises InvalidArgumentError when it has more, or none."""
    if not isinstance(tensor, LoDTensor) or tensor.array.size != 1:
        what = f"a tensor of shape {list(tensor.shape)}" if isinstance(tensor, LoDTensor) else type(tensor).__name__
        raise InvalidArgumentError(f"op {op_type}: {slot} is {what}; expected a tensor of one element")
    return host_array(tensor).reshape(-1)[0].item()


def is_read_by(run: RunContext, names: Collection[str], op_type: str) -> bool:
    """Whether any op of this type, in any block of the program, reads one of these variables."""
    return any((op_type, name) in run.program.last_readers for name in names)


def written_names(block: BlockDesc) -> set[str]:
    """Names that the ops of a block and of its sub-blocks write."""
    return {n for op in block.ops for n in writes(op, block.program)}


def shared(value: _V) -> _V:
    """The value, marked so that no kernel writes into its memory."""
    if isinstance(value, LoDTensor | SelectedRows):
        value.shared = True
    return value


def reference(tensor: LoDTensor) -> LoDTensor:
    """Another tensor on the same memory, which nobody may write into from now on."""
    tensor.shared = True
    return LoDTensor(tensor.array, tensor.lod, place=tensor.place, check=False, shared=True)


def reads_last(run: RunContext, op: OperatorBase, scopes: Collection[str]) -> bool:
    """Whether an op is the last of its type that reads step scopes: later passes need them as well."""
    return max(run.program.last_readers[op.type, name] for name in scopes) == (op.block.idx, op.index)


def zero_gradient(block: BlockDesc, gradient: str, value: Value | None, xp: ArrayModule) -> Value | None:
    """Zeros like the value of a variable, without rows where the program declares its gradient as SelectedRows."""
    var = block.find_var_recursive(gradient)
    if var is not None and var.type is VarType.SELECTED_ROWS and isinstance(value, LoDTensor):
        rows = xp.zeros((0, *value.shape[1:]), value.array.dtype)
        return SelectedRows(xp.zeros(0, xp.int64), rows, value.shape[0], place=value.place)
    return zeros_like(value, xp)


def changeable(gradient: Value | None) -> Value | None:
    """A gradient for a block: tensors are marked as shared, arrays are copied, since blocks change them in place."""
    return LoDTensorArray(gradient) if isinstance(gradient, LoDTensorArray) else shared(gradient)


@overload
def zeros_like(value: LoDTensor, xp: ArrayModule) -> LoDTensor: ...
@overload
def zeros_like(value: Value | None, xp: ArrayModule) -> LoDTensor | LoDTensorArray | None: ...
def zeros_like(value: Value | None, xp: ArrayModule) -> LoDTensor | LoDTensorArray | None:
    """Zeros of the shape, dtype, LoD and kind of a value; None for what has no gradient."""
    if isinstance(value, LoDTensor):
        array = xp.zeros(value.array.shape, value.array.dtype)  # its values may be freed
        return LoDTensor(array, value.lod, place=value.place, check=False)
    if isinstance(value, LoDTensorArray):
        return LoDTensorArray(None if t is None else zeros_like(t, xp) for t in value)
    return None


@overload
def added(total: LoDTensor | None, part: LoDTensor | None, xp: ArrayModule) -> LoDTensor | None: ...
@overload
def added(total: Value | None, part: Value | None, xp: ArrayModule) -> Value | None: ...
def added(total: Any, part: Any, xp: ArrayModule) -> Any:
    """Sum of two gradients of one variable; None is zero. Arrays add up element by element."""
    if total is None or part is None:
        return part if total is None else total
    if isinstance(total, LoDTensorArray):
        length = max(len(total), len(part))
        padded = [[*array, *[None] * (length - len(array))] for array in (total, part)]
        return LoDTensorArray(added(a, b, xp) for a, b in zip(*padded, strict=True))
    if isinstance(total, SelectedRows) and isinstance(part, SelectedRows):
        rows, value = xp.concatenate([total.rows, part.rows]), xp.concatenate([total.value, part.value])
        return SelectedRows(rows, value, total.height, place=total.place, check=False)
    if isinstance(total, SelectedRows) or isinstance(part, SelectedRows):
        total, part = (
            LoDTensor(dense_rows(v, xp), place=v.place) if isinstance(v, SelectedRows) else v for v in (total, part)
        )
    return LoDTensor(total.array + part.array, total.lod, place=total.place, check=False)


def grad_names(names: Sequence[str]) -> list[str]:
    """Names of the gradients of variables, as gradient blocks spell them."""
    return [n + GRAD_SUFFIX for n in names]


def release(scopes: Sequence[Scope]) -> None:
    """Drop the scopes of steps."""
    for scope in scopes:
        if scope.parent is not None:
            scope.parent.delete_scope(scope)


def scope_value(scope: Scope, name: str) -> Value | None:
    """Value of a variable as seen from a scope; None when it holds none or nobody has it."""
    var = scope.find_var(name)
    return None if var is None else var.value


def own(scope: Scope, name: str, value: Value | None) -> None:
    """Set a variable of this very scope, whatever its ancestors have."""
    scope.var(name).value = value

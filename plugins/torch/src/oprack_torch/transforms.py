"""Mixed precision and batches: what torch.autocast and torch.vmap do to a call, by the op's own rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from oprack.bridge import autocast_dtype, infer_abstract, takes_batches
from torch.utils._pytree import tree_leaves, tree_map

from oprack_torch.arrays import DTYPES, NAMES, abstract_of
from oprack_torch.plain import Registered

_AUTOCAST = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
_CAST = (torch.float16, torch.bfloat16, torch.float32)


def casting(op: Registered, lod: bool, *args: Any, **attrs: Any) -> Any:
    """A call inside torch.autocast: its floating arguments get the dtype that oprack's autocast gives them."""
    floats = {NAMES[t.dtype] for t in tree_leaves(args) if isinstance(t, torch.Tensor) and t.dtype in _CAST}
    half = NAMES[torch.get_autocast_dtype("cpu")]
    target = None if op.in_place else autocast_dtype(op.type, floats, half)
    if target is not None:
        dtype = DTYPES[target]
        args = tree_map(lambda t: t.to(dtype) if isinstance(t, torch.Tensor) and t.dtype in _CAST else t, args)
    with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
        return (op.with_lod if lod else op.overload)(*args, **attrs)


def over_batch(op: Registered, info: Any, in_dims: Sequence[Any], *args: Any, **attrs: Any) -> Any:
    """A call of the whole batch where the op's rules allow it; else one for each example, one after the other."""
    pairs = list(zip(args, in_dims, strict=True))
    expr, flat = op.expression([_at(a, d, 0) for a, d in pairs], attrs)
    abstract = [None if t is None else abstract_of(t) for t in flat]
    if takes_batches(expr, abstract, infer_abstract(expr, abstract)):
        result = op.overload(*[_in_front(a, d, info.batch_size) for a, d in pairs], **attrs)
        return result, tree_map(lambda _: 0, result)
    rows = [op.overload(*[_at(a, d, i) for a, d in pairs], **attrs) for i in range(info.batch_size)]
    if isinstance(rows[0], torch.Tensor | list):
        return _stacked(rows)
    columns = [_stacked(column) for column in zip(*rows, strict=True)]
    return tuple(values for values, _ in columns), tuple(dims for _, dims in columns)


def _at(argument: Any, dim: Any, i: int) -> Any:
    """An argument of example i of a batch."""
    if isinstance(argument, list | tuple) and isinstance(dim, list | tuple):
        return [_at(a, d, i) for a, d in zip(argument, dim, strict=True)]
    return argument.select(dim, i) if isinstance(argument, torch.Tensor) and dim is not None else argument


def _in_front(argument: Any, dim: Any, size: int) -> Any:
    """An argument with the dim of the batch in front."""
    if not isinstance(argument, torch.Tensor):
        return argument
    return argument.expand(size, *argument.shape) if dim is None else argument.movedim(dim, 0)


def _stacked(rows: Sequence[Any]) -> tuple[Any, Any]:
    """A result of all examples, and its dim of the batch."""
    if isinstance(rows[0], list | tuple):
        return [torch.stack(list(column)) for column in zip(*rows, strict=True)], [0] * len(rows[0])
    return torch.stack(list(rows)), 0

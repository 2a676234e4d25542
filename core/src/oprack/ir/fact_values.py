"""Facts of single values: what is known from outside, and how the facts of several values combine."""

from __future__ import annotations

from oprack.desc import VarDesc
from oprack.tensor import LoDTensor, Scope
from oprack.types import VarType


def from_outside(name: str, declared: VarDesc | None, scope: Scope | None) -> VarDesc:
    """The fact of a value that no op has written: that of a parameter, or what is checked when it is fed."""
    if declared is None:
        return VarDesc(name)
    fact = unknown(declared)
    fact.dtype = declared.dtype
    if declared.type != VarType.LOD_TENSOR:
        return fact
    fact.lod_level = declared.lod_level
    if declared.persistable and scope is not None:
        var = scope.find_var(name)
        if var is not None and isinstance(var.value, LoDTensor):
            return VarDesc(name, dtype=var.value.dtype, shape=var.value.shape, lod_level=len(var.value.lod))
    # Sizes are compared with what is fed where the program asks for it, else the rank alone; without a scope parameters
    # are as declared.
    if declared.need_check_feed or (declared.persistable and scope is None):
        fact.shape = declared.shape
    elif declared.shape:
        fact.shape = (-1,) * len(declared.shape)
    return fact


def unknown(declared: VarDesc) -> VarDesc:
    """The fact that says no more than what sort of value a variable holds."""
    return VarDesc(declared.name, declared.type, lod_level=declared.lod_level)


def join(a: VarDesc | None, b: VarDesc) -> VarDesc:
    """What holds of both; b alone when a is None."""
    if a is None:
        return b
    fact = unknown(b)
    fact.lod_level = max(a.lod_level, b.lod_level)
    fact.dtype = a.dtype if a.dtype == b.dtype else None
    if a.type == b.type and a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
        fact.shape = tuple(m if m == n else -1 for m, n in zip(a.shape, b.shape, strict=True))
    return fact


def meet(a: VarDesc, b: VarDesc) -> VarDesc:
    """What is known by either of two facts of one value."""
    fact = a.clone()
    fact.dtype = b.dtype if a.dtype is None else a.dtype
    if a.shape is None:
        fact.shape = b.shape
    elif b.shape is not None and len(a.shape) == len(b.shape):
        fact.shape = tuple(max(m, n) for m, n in zip(a.shape, b.shape, strict=True))
    return fact


def same(a: VarDesc | None, b: VarDesc | None) -> bool:
    if a is None or b is None:
        return a is b
    return (a.type, a.dtype, a.shape, a.lod_level) == (b.type, b.dtype, b.shape, b.lod_level)

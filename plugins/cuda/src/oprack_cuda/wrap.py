"""Kernels made from other kernels: with the same parameters, and something done before and after."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from oprack.kernel import Array, KernelSpec, kernel
from oprack.python.containers import with_members
from oprack.tensor import LoDTensor, LoDTensorArray, Place, SelectedRows


def specs_of(function: Callable[..., Any], place: str) -> list[KernelSpec]:
    """What @kernel declared on a function for a place, without those of kernel libraries."""
    return [s for s in vars(function)["__oprack_kernels__"] if s.place == place and s.library == "plain"]


def like(
    function: Callable[..., Any], call: Callable[..., Any], module: str, drop: Iterable[str] = ()
) -> Callable[..., Any]:
    """`call` with the signature of `function`, whose parameters in `drop` are left out; it always takes ctx."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in {"ctx", "out", *drop}]
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY)

    def wrapper(
        *arguments: Array | SelectedRows | None, **named: Any
    ) -> Array | SelectedRows | dict[str, Array] | tuple[Array, ...]:
        return call(*arguments, **named)

    wrapper.__signature__ = inspect.Signature([*parameters, context])  # type: ignore[attr-defined]
    wrapper.__name__ = wrapper.__qualname__ = function.__name__
    wrapper.__module__ = module
    return wrapper


def declare(
    function: Callable[..., Any], op_types: Sequence[str], dtypes: Collection[str], deterministic: bool = True
) -> Callable[..., Any]:
    """@kernel for place cuda, of several ops."""
    for op_type in op_types:
        function = kernel(op_type, place="cuda", dtypes=dtypes, deterministic=deterministic)(function)
    return function


def map_arrays(value: Any, change: Callable[[Any], Any], place: Place | None = None) -> Any:
    """Anything that a kernel takes or returns, of the same type with every array in it changed.

    place: of the objects made, where they hold arrays.
    """
    if isinstance(value, LoDTensor):
        return LoDTensor(change(value.array), value.lod, place=place or value.place, check=False)
    if isinstance(value, SelectedRows):
        rows, values = change(value.rows), change(value.value)
        return SelectedRows(rows, values, value.height, place=place or value.place, check=False)
    if isinstance(value, LoDTensorArray):
        return LoDTensorArray(map_arrays(t, change, place) for t in value)
    if isinstance(value, dict):
        return {k: map_arrays(v, change, place) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return with_members(value, [map_arrays(v, change, place) for v in value])
    return change(value) if hasattr(value, "dtype") else value

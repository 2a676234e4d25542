"""Kernels for place cuda that compute on the host: inputs are copied there, outputs back.

For ops whose work is a chain of decisions over few numbers, which a GPU has nothing to gain from (Paddle has no GPU
kernel for most of them either), and for those that need random numbers in the order of NumPy's generators.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from oprack.kernel import KernelSpec, kernel
from oprack.tensor import CPUPlace, LoDTensor, LoDTensorArray, SelectedRows


def kernels_on_host(module: str, *functions: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Kernels for place cuda of every kernel for the CPU that `functions` declare, by name.

    module: the caller's __name__, whose kernels they become.
    """
    made = {}
    for function in functions:
        wrapper = _on_host(function)
        wrapper.__module__ = module
        for spec in _specs(function):
            wrapper = kernel(spec.op_type, place="cuda", dtypes=spec.dtypes)(wrapper)
        made[function.__name__] = wrapper
    return made


def _specs(function: Any) -> list[KernelSpec]:
    return [s for s in function.__oprack_kernels__ if s.place == "cpu" and s.library == "plain"]


def _on_host(function: Callable[..., Any]) -> Callable[..., Any]:
    import numpy as np

    signature = inspect.signature(function)
    takes_ctx, takes_xp = (name in signature.parameters for name in ("ctx", "xp"))

    def wrapper(*args: Any, ctx: Any, **named: Any) -> Any:
        device = ctx.device
        if takes_ctx:
            named["ctx"] = ctx
        if takes_xp:
            named["xp"] = np
        return _moved(function(*(_moved(a, device.to_host) for a in args), **named), device.from_host)

    parameters = [p for p in signature.parameters.values() if p.name not in ("ctx", "xp", "out")]
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY)
    wrapper.__signature__ = signature.replace(parameters=[*parameters, context])  # type: ignore[attr-defined]
    wrapper.__name__ = wrapper.__qualname__ = function.__name__
    wrapper.__doc__ = f"{function.__module__}.{function.__name__}, on the host."
    return wrapper


def _moved(value: Any, copy: Callable[[Any], Any]) -> Any:
    """Every array of what a kernel takes or returns, copied by `copy`."""
    if isinstance(value, LoDTensor):
        return LoDTensor(copy(value.array), value.lod, place=CPUPlace(), check=False)
    if isinstance(value, SelectedRows):
        return SelectedRows(copy(value.rows), copy(value.value), value.height, place=CPUPlace(), check=False)
    if isinstance(value, LoDTensorArray):
        return LoDTensorArray(_moved(t, copy) for t in value)
    if isinstance(value, dict):
        return {k: _moved(v, copy) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_moved(v, copy) for v in value)
    return copy(value) if hasattr(value, "dtype") else value

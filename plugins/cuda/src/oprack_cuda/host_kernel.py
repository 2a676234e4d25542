"""Kernels for place cuda that compute on the host: inputs are copied there, outputs back.

For the rare attributes and containers of ops that have kernels for the GPU otherwise. An op that has none at all needs
no such kernel: the core runs the CPU's, and cuts plans there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext
from oprack.tensor import CPUPlace, SelectedRows

from oprack_cuda.wrap import declare, like, map_arrays, specs_of


def kernels_on_host(module: str, *functions: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Kernels for place cuda of every kernel for the CPU that `functions` declare, by name.

    module: the caller's __name__, whose kernels they become.
    """
    made = {}
    for function in functions:
        wrapper = _on_host(function, module)
        for spec in specs_of(function, "cpu"):
            wrapper = declare(wrapper, [spec.op_type], spec.dtypes)
        made[function.__name__] = wrapper
    return made


def _on_host(function: Callable[..., Any], module: str) -> Callable[..., Any]:
    parameters = inspect.signature(function).parameters

    def call(*arguments: Array | SelectedRows, ctx: KernelContext, **named: Any) -> Array | SelectedRows:
        device, host = ctx.device, CPUPlace()
        named |= {"ctx": ctx} if "ctx" in parameters else {}
        named |= {"xp": np} if "xp" in parameters else {}
        result = function(*(map_arrays(a, device.to_host, host) for a in arguments), **named)
        return map_arrays(result, device.from_host, ctx.place)

    wrapper: Callable[..., Any] = like(function, call, module, drop=("xp",))
    wrapper.__doc__ = f"{function.__module__}.{function.__name__}, on the host."
    return wrapper

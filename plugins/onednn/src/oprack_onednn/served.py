"""From a kernel of this library back to the NumPy kernel of the same op, where oneDNN is not the better choice."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from oprack.kernel import KernelSignature, bind_signature, kernel
from oprack.op import OpProto
from oprack.packs.manager import default_manager

from oprack_onednn.library import LIBRARY, usable

PRIORITY = 10


class Limits:
    """Below these sizes NumPy is faster than a primitive's call.

    eltwise, binary, moved: elements. product: m n k. together: sequences per step of a recurrence.
    """

    eltwise = 1 << 12
    binary = 1 << 14
    moved = 1 << 14
    product = 1 << 18
    together = 4


def served(*op_types: str, view: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a float32 kernel of this library. It takes `ctx`, and returns NotImplemented to leave the work to NumPy.

    It names every slot and injected parameter that the NumPy kernel takes; attributes come from `ctx`.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(function).parameters)
        library = LIBRARY

        @wraps(function)
        def run(*args: Any, **named: Any) -> Any:
            if not library.ready and not library.usable():
                return plain(names, args, named)
            result = function(*args, **named)
            return plain(names, args, named) if result is NotImplemented else result

        for op_type in op_types:
            _served[op_type] = run
            kernel(
                op_type, place="cpu", dtypes={"float32"}, library="onednn", when=usable, priority=PRIORITY, view=view
            )(run)
        return run

    return declare


_served: dict[str, Callable[..., Any]] = {}
PlainKernel = Callable[[dict[str, Any], Any], Any]
_plain: dict[str, PlainKernel] = {}


def plain(names: list[str], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Run the NumPy kernel of ctx.op_type on the arguments of a kernel of this library."""
    ctx = named["ctx"]
    call = _plain.get(ctx.op_type)
    if call is None:
        call = _plain[ctx.op_type] = plain_kernel(ctx.op_type)
    return call({**dict(zip(names, args, strict=False)), **named}, ctx)


def plain_step(op_type: str, arrays: dict[str, Any], ctx: Any) -> Any:
    """Run the NumPy kernel of an op on arrays by parameter name."""
    return plain([], (), {**arrays, "ctx": ctx})


def step(op_type: str, arrays: dict[str, Any], ctx: Any) -> Any:
    """Run this library's kernel of an op on arrays by parameter name; NumPy's when its module was not imported."""
    function = _served.get(op_type)
    if function is None:
        return plain_step(op_type, arrays, ctx)
    parameters = inspect.signature(function).parameters
    attrs = {name: ctx.attrs[name] for name in parameters if name in ctx.attrs}
    return function(**arrays, **attrs, ctx=ctx)


def plain_kernel(op_type: str) -> PlainKernel:
    """The NumPy kernel of an op for float32 arrays, called with arguments by parameter name and the KernelContext."""
    manager = default_manager()
    proto = manager.op_info(op_type).proto
    for spec in manager.kernel_map(op_type, "cpu"):
        if spec.library != "plain" or "float32" not in spec.dtypes or spec.when is not None or spec.view:
            continue
        signature = bind_signature(spec.function, proto)
        if any(container not in ("", "LoDTensor") for _, _, container in signature.inputs):
            continue
        return _caller(spec.function, signature, proto)
    raise LookupError(f"op {op_type} has no NumPy kernel for float32")


def _caller(function: Callable[..., Any], signature: KernelSignature, proto: OpProto) -> PlainKernel:
    params = [(proto.inputs[slot].param, () if many else None) for slot, many, _ in signature.inputs]

    def call(given: dict[str, Any], ctx: Any) -> Any:
        named = {param: given[param] if param in given else ctx.attrs[attr] for param, attr in signature.attrs}
        for name in signature.injected:
            named[name] = np if name == "xp" else ctx if name == "ctx" else given.get(name)
        return function(*(given.get(*p) for p in params), **named)

    return call

"""From a kernel of this library back to the NumPy kernel of the same op, where oneDNN is not the better choice."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any

import numpy as np
from oprack.errors import DefinitionError
from oprack.kernel import KernelSignature, Predicate, bind_signature, kernel
from oprack.kernel.specialization import Prepare
from oprack.op import OpProto, slot_name
from oprack.packs.manager import default_manager

from oprack_onednn.library import LIBRARY, usable
from oprack_onednn.operands import OperandError

PRIORITY = 10


class Limits:
    """Below these sizes NumPy is faster than a primitive's call.

    eltwise, binary, moved, costly (functions that take NumPy long): elements. product: m n k.
    """

    eltwise = 1 << 12
    costly = 1 << 6
    binary = 1 << 14
    moved = 1 << 14
    product = 1 << 18


@contextmanager
def no_limits() -> Iterator[None]:
    """Every entry of Limits is 0 for the length of a with block."""
    before = {name: value for name, value in vars(Limits).items() if isinstance(value, int)}
    try:
        for name in before:
            setattr(Limits, name, 0)
        yield
    finally:
        for name, value in before.items():
            setattr(Limits, name, value)


def served(
    *op_types: str,
    view: bool = False,
    least: str = "",
    prepare: Prepare | None = None,
    unread: Collection[str] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a float32 kernel of this library. It takes `ctx`, and returns NotImplemented to leave the work to NumPy.

    It names every slot and injected parameter that the NumPy kernel takes; attributes come from `ctx`. least: the entry
    of Limits below whose number of elements of the first input NumPy's kernel is taken. prepare: as in oprack.kernel.
    unread: the parameters that no primitive reads, so that they may have another dtype than float32; where one of the
    others has another, the kernel is not chosen.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(function).parameters
        names, library = tuple(parameters), LIBRARY
        inputs = [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        unknown = set(unread) - set(inputs)
        if unknown:
            raise DefinitionError(f"{function.__qualname__}: unread has {sorted(unknown)}; expected some of {inputs}")
        read = [name for name in inputs if name not in unread]

        @wraps(function)
        def run(*args: Any, **named: Any) -> Any:
            if not (library.ready or library.usable()):
                return plain(names, args, named)
            try:
                result = function(*args, **named)
            except OperandError:
                result = NotImplemented
            return plain(names, args, named) if result is NotImplemented else result

        for op_type in op_types:
            _served[op_type] = run
            declared = kernel(
                op_type,
                dtypes={"float32"},
                library="onednn",
                when=usable & _floats(tuple(slot_name(name, grads=op_type.endswith("_grad")) for name in read)),
                priority=PRIORITY,
                view=view,
                min_numel=getattr(Limits, least) if least else 0,
                prepare=prepare,
            )
            declared(run)
        return run

    return declare


def _floats(slots: tuple[str, ...]) -> Predicate:
    """Whether all of these slots that are given hold float32."""
    return Predicate(
        lambda query: all(query.dtypes.get(slot, "float32") == "float32" for slot in slots),
        f"float32 in {', '.join(slots)}",
    )


_served: dict[str, Callable[..., Any]] = {}
PlainKernel = Callable[[tuple[Any, ...], dict[str, Any]], Any]


def plain(names: tuple[str, ...], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Run the NumPy kernel of ctx.op_type on the arguments of a kernel of this library with parameters `names`."""
    return plain_kernel(named["ctx"].op_type, names)(args, named)


def run_plain(op_type: str, arrays: dict[str, Any], ctx: Any) -> Any:
    """Run the NumPy kernel of an op on arrays by parameter name."""
    return plain_kernel(op_type, tuple(arrays))(tuple(arrays.values()), {"ctx": ctx})


def run_served(op_type: str, arrays: dict[str, Any], ctx: Any) -> Any:
    """Run this library's kernel of an op on arrays by parameter name; NumPy's when its module was not imported."""
    function = _served.get(op_type)
    if function is None:
        return run_plain(op_type, arrays, ctx)
    parameters = _parameters(function)
    attrs = {name: ctx.attrs[name] for name in parameters if name in ctx.attrs}
    first, *_ = parameters
    others = {name: value for name, value in arrays.items() if name != first}
    return function(arrays[first], **others, **attrs, ctx=ctx)


@cache
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


@cache
def plain_kernel(op_type: str, names: tuple[str, ...]) -> PlainKernel:
    """The NumPy kernel of an op for float32 arrays, called with the arguments of a function with parameters `names`."""
    manager = default_manager()
    proto = manager.op_info(op_type).proto
    for spec in manager.kernel_map(op_type, "cpu"):
        if spec.library != "plain" or "float32" not in spec.dtypes or spec.when is not None or spec.view:
            continue
        signature = bind_signature(spec.function, proto)
        if any(container not in ("", "LoDTensor") for _, _, container in signature.inputs):
            continue
        return _caller(spec.function, signature, proto, names)
    raise LookupError(f"op {op_type} has no NumPy kernel for float32")


def _caller(
    function: Callable[..., Any], signature: KernelSignature, proto: OpProto, names: tuple[str, ...]
) -> PlainKernel:
    """Small arrays come here all the time, so what is known beforehand is not looked up again."""
    slots = [(proto.inputs[slot].param, () if many else None) for slot, many, _ in signature.inputs]
    # positions of the kernel's inputs among the arguments; one past them all stands for an absent input
    positions = [names.index(param) if param in names else len(names) for param, _ in slots]
    in_order = positions == list(range(len(positions)))
    pairs = signature.attrs
    wants = {name: name in signature.injected for name in ("xp", "ctx", "out")}
    xp, context, out = wants["xp"], wants["ctx"], wants["out"]

    def call(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        ctx = named["ctx"]
        attrs = ctx.attrs
        given = {param: named[param] if param in named else attrs[attr] for param, attr in pairs}
        if xp:
            given["xp"] = np
        if context:
            given["ctx"] = ctx
        if out:
            given["out"] = named.get("out")
        if in_order and len(args) >= len(positions):
            return function(*args[: len(positions)], **given)
        inputs = [
            args[k] if k < len(args) else named.get(param, absent)
            for k, (param, absent) in zip(positions, slots, strict=True)
        ]
        return function(*inputs, **given)

    return call

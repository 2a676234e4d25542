"""Invokes kernels: from an op's slots and attributes to the parameters of a function, and back to slots.

This is the only place that knows how. The reference path passes objects through it, generated code the texts of
expressions, and a library that calls the kernel of another op arrays alone; each is a kind of Arguments.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from oprack.errors import KernelNotFoundError, KernelResultError
from oprack.kernel.kernel_map import Candidate
from oprack.kernel.signature import KernelSignature
from oprack.op.proto import OpProto, slot_name

_LOG = logging.getLogger(__name__)
_LOGGED: set[tuple[str, str, str]] = set()

Value = TypeVar("Value")
Passed = TypeVar("Passed")


class Arguments(ABC, Generic[Value, Passed]):
    """Where the arguments of a kernel come from. Value: stands for one input of the op; Passed: for an argument."""

    @abstractmethod
    def values(self, slot: str) -> Sequence[Value | None]:
        """Inputs of a slot; empty when it is absent."""

    @abstractmethod
    def value(self, slot: str, i: int, value: Value | None, container: str) -> Passed:
        """Input i of a slot: its bare array, or the object itself where the kernel asks for a container."""

    @abstractmethod
    def attr(self, name: str) -> Passed:
        """An attribute."""

    @abstractmethod
    def injected(self, name: str) -> Passed:
        """`out`, `ctx` or `xp`."""

    @abstractmethod
    def absent(self) -> Passed:
        """What stands for an input that is not there."""

    @abstractmethod
    def several(self, values: list[Passed]) -> Passed:
        """The inputs of a duplicable slot."""

    @abstractmethod
    def group(self, group: type, fields: dict[str, Passed]) -> Passed:
        """A group of slots or attributes that the kernel takes as one parameter."""


def bind_inputs(signature: KernelSignature, given: Arguments[Value, Passed]) -> list[Passed]:
    """The positional arguments of a kernel, in order."""
    flat: list[Passed] = []
    for slot, duplicable, container in signature.inputs:
        values = [given.value(slot, i, v, container) for i, v in enumerate(given.values(slot))]
        flat.append(given.several(values) if duplicable else values[0] if values else given.absent())
    if not signature.slot_groups:
        return flat
    starts = {start: (cls, fields) for start, cls, fields in signature.slot_groups}
    args: list[Passed] = []
    i = 0
    while i < len(flat):
        if i not in starts:
            args.append(flat[i])
            i += 1
            continue
        cls, fields = starts[i]
        args.append(given.group(cls, dict(zip(fields, flat[i : i + len(fields)], strict=True))))
        i += len(fields)
    return args


def bind_named(signature: KernelSignature, given: Arguments[Value, Passed]) -> dict[str, Passed]:
    """The keyword arguments of a kernel: attributes, then what is injected."""
    named = {param: given.attr(name) for param, name in signature.attrs}
    for param, cls, fields in signature.attr_groups:
        named[param] = given.group(cls, {field: given.attr(name) for field, name in fields})
    return named | {name: given.injected(name) for name in signature.injected}


def call(candidate: Candidate, given: Arguments[Value, Any]) -> Any:
    """Call a kernel with objects."""
    signature = candidate.signature
    return candidate.spec.function(*bind_inputs(signature, given), **bind_named(signature, given))


# Results --------------------------------------------------------------------------------------------------------------
def returned(result: Any, proto: OpProto) -> Iterator[tuple[str | int | None, str, Any]]:
    """What a kernel returned, as (key in the result, output slot, value); the key is None when that is the result.

    Raises KernelResultError, without the kernel's name, for slots that the op does not have.
    """
    slots = list(proto.outputs)
    if isinstance(result, dict):
        grads = any("@GRAD" in s for s in slots)
        named = {k: k if k in proto.outputs else slot_name(k, grads=grads) for k in result}
        unknown = [slot for slot in named.values() if slot not in proto.outputs]
        if unknown:
            raise KernelResultError(f"returned {', '.join(unknown)}; expected output slots {', '.join(slots)}")
        for key, slot in named.items():
            yield key, slot, result[key]
    elif isinstance(result, tuple):
        if len(result) > len(slots):
            raise KernelResultError(
                f"returned {len(result)} values; the op has {len(slots)} outputs: {', '.join(slots)}"
            )
        for i, (slot, value) in enumerate(zip(slots, result, strict=False)):
            yield i, slot, value
    elif slots:
        yield None, slots[0], result


# Kernels that decline -------------------------------------------------------------------------------------------------
_WHY = threading.local()


def decline(reason: str) -> Any:
    """NotImplemented, with a reason that the choice of kernels tells: `return decline("X has gaps")`."""
    _WHY.reason = reason
    return NotImplemented


def take_reason() -> str:
    """Why the kernel declined that returned NotImplemented last in this thread; "" when it did not say."""
    reason: str = getattr(_WHY, "reason", "")
    _WHY.reason = ""
    return reason


def invoke(
    op_type: str, candidate: Candidate, numel: int, run: Callable[[Candidate], Any]
) -> tuple[Candidate, Any, dict[str, str]]:
    """Run the first kernel of a chain that does not decline.

    Args:
        op_type: the op, for errors.
        candidate: the best kernel, linked to those that take over.
        numel: number of elements of the first input.
        run: runs one kernel and gives what it returned.

    Returns:
        The kernel that computed, what it returned, and the reasons of those that declined by their names.

    Raises:
        KernelNotFoundError: all declined; it lists their reasons.
        KernelResultError: a kernel declined that does not say may_decline=True.
    """
    declined: dict[str, str] = {}
    current: Candidate | None = candidate
    while current is not None:
        spec = current.spec
        if numel < spec.min_numel and current.next is not None:
            declined[spec.name] = f"the first input has {numel} elements, and it takes {spec.min_numel} or more"
        else:
            result = run(current)
            if result is not NotImplemented:
                if declined:
                    _log(op_type, declined, current)
                return current, result, declined
            if not spec.may_decline:
                raise KernelResultError(
                    f"op {op_type}: kernel {spec.name} of {spec.owner} ({spec.where}) returned NotImplemented; a "
                    "kernel that leaves some calls to others is declared with @kernel(..., may_decline=True)"
                )
            declined[spec.name] = take_reason() or "it returned NotImplemented"
        current = current.next
    lines = [f"  {name}: {reason}" for name, reason in declined.items()]
    raise KernelNotFoundError(
        f"op {op_type}: every kernel that fits has declined:\n"
        + "\n".join(lines)
        + "\nChange the inputs or attributes "
        "accordingly, or install a pack with a kernel that takes them."
    )


def _log(op_type: str, declined: Mapping[str, str], chosen: Candidate) -> None:
    """Say once who declined and why."""
    for name, reason in declined.items():
        if (op_type, name, chosen.spec.name) not in _LOGGED:
            _LOGGED.add((op_type, name, chosen.spec.name))
            spec = chosen.spec
            _LOG.debug("op %s: kernel %s declined: %s; %s of %s runs", op_type, name, reason, spec.name, spec.owner)


# Arrays alone ---------------------------------------------------------------------------------------------------------
class ArrayArguments(Arguments[Any, Any]):
    """Arguments of a kernel that is called with arrays and a context, without an op of a program.

    inputs: by slot, a list for a duplicable one. ctx: has `attrs`, all of them. out: memory that the first output may
    take. xp: the array library, by default NumPy, which is not imported before an op runs.
    """

    def __init__(self, inputs: Mapping[str, Any], ctx: Any, out: Any = None, xp: Any = None) -> None:
        if xp is None:
            import numpy as xp
        self._inputs, self._ctx, self._out, self._xp = inputs, ctx, out, xp

    def values(self, slot: str) -> Sequence[Any]:
        found = self._inputs.get(slot)
        return found if isinstance(found, list | tuple) else () if found is None else (found,)

    def value(self, slot: str, i: int, value: Any, container: str) -> Any:
        return value

    def attr(self, name: str) -> Any:
        return self._ctx.attrs[name]

    def injected(self, name: str) -> Any:
        return {"ctx": self._ctx, "xp": self._xp, "out": self._out}[name]

    def absent(self) -> Any:
        return None

    def several(self, values: list[Any]) -> Any:
        return values

    def group(self, group: type, fields: dict[str, Any]) -> Any:
        return group(**fields)


def call_arrays(
    op_type: str, candidate: Candidate, inputs: Mapping[str, Any], ctx: Any, out: Any = None, xp: Any = None
) -> Any:
    """Run the first kernel of a chain that does not decline on arrays by slot, and give what it returned."""
    given = ArrayArguments(inputs, ctx, out, xp)
    slots = candidate.signature.inputs
    first = next(iter(given.values(slots[0][0])), None) if slots else None
    return invoke(op_type, candidate, getattr(first, "size", 0), lambda one: call(one, given))[1]

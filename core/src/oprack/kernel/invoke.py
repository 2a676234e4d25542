"""Invokes kernels: from an op's slots and attributes to the parameters of a function, and back to slots.

This is the only module that knows how. Its callers say where arguments come from by a subclass of Arguments: on the
reference path arguments are objects, in generated code the texts of expressions, and where one kernel runs another op's
kernel they are arrays.
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from oprack.errors import KernelNotFoundError, KernelResultError
from oprack.kernel.kernel_map import Candidate
from oprack.kernel.signature import KernelSignature
from oprack.op.proto import OpProto, slot_name

# (op type, kernel that declined, kernel that ran), each logged once: a line for each call would bury all others.
_LOGGED: set[tuple[str, str, str]] = set()

Value = TypeVar("Value")
Passed = TypeVar("Passed")


class Arguments(ABC, Generic[Value, Passed]):
    """Where the arguments of a kernel come from.

    `Value` stands for one input of the op, and `Passed` for one argument of the kernel.
    """

    @abstractmethod
    def values(self, slot: str) -> Sequence[Value | None]:
        """The inputs of a slot; empty when the slot is absent."""

    @abstractmethod
    def value(self, slot: str, i: int, value: Value | None, container: str) -> Passed:
        """The argument for one input.

        Args:
            slot: The input slot.
            i: Position of the input in the slot.
            value: The input, or None when it is absent.
            container: "" where the kernel takes a bare array, else the name of the class that it asks for.
        """

    @abstractmethod
    def attr(self, name: str) -> Passed:
        """The argument for an attribute."""

    @abstractmethod
    def injected(self, name: str) -> Passed:
        """The argument for `out`, `ctx` or `xp`."""

    @abstractmethod
    def absent(self) -> Passed:
        """The argument for an absent input."""

    @abstractmethod
    def several(self, values: list[Passed]) -> Passed:
        """The argument for a duplicable slot, from those for its inputs."""

    @abstractmethod
    def group(self, group: type, fields: dict[str, Passed]) -> Passed:
        """The argument for a parameter that takes several slots or attributes.

        Args:
            group: The NamedTuple class of the parameter.
            fields: The arguments for its fields.
        """


def bind_inputs(signature: KernelSignature, arguments: Arguments[Value, Passed]) -> list[Passed]:
    """Bind the input slots of an op to the positional parameters of a kernel.

    Args:
        signature: What the kernel takes.
        arguments: Where the arguments come from.

    Returns:
        The positional arguments, in order.
    """
    flat: list[Passed] = []
    for slot, duplicable, container in signature.inputs:
        values = [arguments.value(slot, i, v, container) for i, v in enumerate(arguments.values(slot))]
        flat.append(arguments.several(values) if duplicable else values[0] if values else arguments.absent())
    if not signature.slot_groups:
        return flat
    # A NamedTuple parameter takes several slots that follow on each other.
    starts = {start: (cls, fields) for start, cls, fields in signature.slot_groups}
    args: list[Passed] = []
    i = 0
    while i < len(flat):
        if i not in starts:
            args.append(flat[i])
            i += 1
            continue
        cls, fields = starts[i]
        args.append(arguments.group(cls, dict(zip(fields, flat[i : i + len(fields)], strict=True))))
        i += len(fields)
    return args


def bind_named(signature: KernelSignature, arguments: Arguments[Value, Passed]) -> dict[str, Passed]:
    """Bind the attributes of an op to the keyword parameters of a kernel.

    Args:
        signature: What the kernel takes.
        arguments: Where the arguments come from.

    Returns:
        The keyword arguments: attributes first, then `out`, `ctx` and `xp` where the kernel takes them.
    """
    named = {param: arguments.attr(name) for param, name in signature.attrs}
    for param, cls, fields in signature.attr_groups:
        named[param] = arguments.group(cls, {field: arguments.attr(name) for field, name in fields})
    return named | {name: arguments.injected(name) for name in signature.injected}


def call(candidate: Candidate, arguments: Arguments[Value, Any]) -> Any:
    """Call a kernel with objects, and return what it returned."""
    signature = candidate.signature
    return candidate.spec.function(*bind_inputs(signature, arguments), **bind_named(signature, arguments))


# Results --------------------------------------------------------------------------------------------------------------
def by_output_slot(result: Any, proto: OpProto) -> Iterator[tuple[str | int | None, str, Any]]:
    """Assign what a kernel returned to the output slots of its op.

    Args:
        result: One value, a tuple in the order of the OpProto, or a dict by slot or by parameter name.
        proto: The op.

    Yields:
        (key in the result, output slot, value). The key is None when the result is the value itself.

    Raises:
        KernelResultError: The result has slots that the op does not have. The message has no subject: callers put the
            name of the kernel before it.
    """
    slots = list(proto.outputs)
    if isinstance(result, dict):
        # A kernel may return names of its parameters: x_grad stands for X@GRAD in a gradient op alone.
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
# A kernel that declines returns NotImplemented and nothing else, so that a plan can compare by identity. Its reason is
# left here, for each thread, since kernels of several threads decline at once.
_LAST_REASON = threading.local()


def decline(reason: str) -> Any:
    """Leave a call to the next kernel that fits: `return decline("X has gaps")`.

    Args:
        reason: Why, for logs and for the error that every kernel declined.

    Returns:
        NotImplemented.
    """
    _LAST_REASON.text = reason
    return NotImplemented


def take_reason() -> str:
    """Return and clear the reason of the last kernel that declined in this thread; "" when it gave none."""
    reason: str = getattr(_LAST_REASON, "text", "")
    _LAST_REASON.text = ""
    return reason


def invoke(
    op_type: str, candidate: Candidate, numel: int, run: Callable[[Candidate], Any]
) -> tuple[Candidate, Any, dict[str, str]]:
    """Run the first kernel of a chain that does not decline.

    Args:
        op_type: The op, for errors.
        candidate: The best kernel, linked to those that take over.
        numel: Number of elements of the first input.
        run: Runs one kernel and returns what it returned.

    Returns:
        The kernel that computed, what it returned, and the reasons of those that declined by their names.

    Raises:
        KernelNotFoundError: Every kernel declined. The message lists their reasons.
        KernelResultError: A kernel declined that is not declared with may_decline=True.
    """
    declined: dict[str, str] = {}
    current: Candidate | None = candidate
    while current is not None:
        spec = current.spec
        # The last kernel of a chain takes every size, since nobody is left.
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
    """Log, once for each kernel, that it declined and why."""
    if (logging := sys.modules.get("logging")) is None:  # nobody listens; see oprack.python.logs
        return
    for name, reason in declined.items():
        if (op_type, name, chosen.spec.name) not in _LOGGED:
            _LOGGED.add((op_type, name, chosen.spec.name))
            text, spec = "op %s: kernel %s declined: %s; %s of %s runs", chosen.spec
            logging.getLogger(__name__).debug(text, op_type, name, reason, spec.name, spec.owner)


# Arguments as objects -------------------------------------------------------------------------------------------------
class ObjectArguments(Arguments[Any, Any]):
    """The objects that a kernel is called with at once, in contrast to texts for generated code."""

    def absent(self) -> Any:
        return None

    def several(self, values: list[Any]) -> Any:
        return values

    def group(self, group: type, fields: dict[str, Any]) -> Any:
        return group(**fields)


class ArrayArguments(ObjectArguments):
    """Arguments of a kernel that is called with arrays and a context, without an op of a program.

    Args:
        inputs: Arrays by slot, a list for a duplicable one.
        ctx: The context. Its `attrs` holds all attributes.
        xp: The array library; None means NumPy, which is not imported before an op runs.
    """

    def __init__(self, inputs: Mapping[str, Any], ctx: Any, xp: Any = None) -> None:
        if xp is None:
            import numpy as xp
        self._inputs, self._ctx, self._xp = inputs, ctx, xp

    def values(self, slot: str) -> Sequence[Any]:
        value = self._inputs.get(slot)
        return value if isinstance(value, list | tuple) else () if value is None else (value,)

    def value(self, slot: str, i: int, value: Any, container: str) -> Any:
        return value

    def attr(self, name: str) -> Any:
        return self._ctx.attrs[name]

    def injected(self, name: str) -> Any:
        return {"ctx": self._ctx, "xp": self._xp, "out": None}[name]


def call_arrays(op_type: str, candidate: Candidate, inputs: Mapping[str, Any], ctx: Any, xp: Any = None) -> Any:
    """As `invoke`, for arrays alone.

    Args:
        op_type: The op, for errors.
        candidate: The best kernel, linked to those that take over.
        inputs: Arrays by slot, a list for a duplicable one.
        ctx: The context. Its `attrs` holds all attributes.
        xp: NumPy or CuPy.

    Returns:
        What the kernel returned: an array, a tuple in the order of the OpProto, or a dict by slot.

    Raises:
        KernelNotFoundError: Every kernel declined.
    """
    arguments = ArrayArguments(inputs, ctx, xp)
    slots = candidate.signature.inputs
    first = next(iter(arguments.values(slots[0][0])), None) if slots else None
    return invoke(op_type, candidate, getattr(first, "size", 0), lambda kernel: call(kernel, arguments))[1]

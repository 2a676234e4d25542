"""Binds a kernel's parameters to the slots and attributes of its op, once, when the kernel is chosen."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oprack.errors import DefinitionError
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.proto import OpProto

INJECTED = ("out", "ctx", "xp")
CONTAINERS = ("LoDTensor", "SelectedRows", "LoDTensorArray")


@dataclass(frozen=True)
class KernelSignature:
    """What to pass to a kernel.

    inputs: (slot, duplicable, container) per positional parameter, in order; container is "" for bare arrays, or the
    name of the class that the annotation asks for. attrs: (parameter, attribute). injected: of `out`, `ctx`, `xp`.
    """

    inputs: tuple[tuple[str, bool, str], ...]
    attrs: tuple[tuple[str, str], ...]
    injected: tuple[str, ...]


def _container(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    # "LoDTensorArray" contains "LoDTensor": look for the longest name first
    return next((c for c in sorted(CONTAINERS, key=len, reverse=True) if c in text), "")


def bind_signature(function: Callable[..., Any], proto: OpProto) -> KernelSignature:
    """Match a kernel's parameters with its op's proto.

    Raises DefinitionError that names the parameter and lists what the op has.
    """
    slots = {s.param: s for s in proto.inputs.values()}
    attrs = {a.param: a.name for a in proto.attrs.values()}
    attrs |= {a: a for a in COMMON_ATTRS}
    inputs, named, injected = [], [], []
    where = f"kernel {function.__module__}.{function.__qualname__} of op {proto.type}"
    for p in inspect.signature(function).parameters.values():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            if p.name not in slots:
                raise DefinitionError(
                    f"{where}: positional parameter {p.name!r} is no input slot; expected one of "
                    f"{', '.join(slots) or 'none (the op has no inputs)'}; attributes go after a bare *"
                )
            slot = slots[p.name]
            if p.default is p.empty and slot.dispensable and not slot.duplicable:
                raise DefinitionError(
                    f"{where}: {p.name!r} may be absent (the slot is dispensable); write {p.name}=None"
                )
            inputs.append((slot.name, slot.duplicable, _container(p.annotation)))
        elif p.kind is p.KEYWORD_ONLY:
            if p.name in INJECTED:
                injected.append(p.name)
            elif p.name in attrs:
                named.append((p.name, attrs[p.name]))
            else:
                raise DefinitionError(
                    f"{where}: keyword-only parameter {p.name!r} is no attribute; expected one of "
                    f"{', '.join([*attrs][: len(proto.attrs)]) or 'none'}, or {', '.join(INJECTED)}"
                )
        else:
            raise DefinitionError(f"{where}: *{p.name} is not allowed; name the slots and attributes that it needs")
    return KernelSignature(tuple(inputs), tuple(named), tuple(injected))

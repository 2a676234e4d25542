"""Binds a kernel's parameters to the slots and attributes of its op, once, when the kernel is added to the op."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from oprack.errors import DefinitionError
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.proto import OpProto
from oprack.python.records import dataclass

INJECTED = ("out", "ctx", "xp")
_KINDS = ("LoDTensor", "SelectedRows", "LoDTensorArray", "SparseCooTensor", "SparseCsrTensor")
CONTAINERS: dict[str, frozenset[str]] = {
    **{name: frozenset({name}) for name in _KINDS},
    "SparseTensor": frozenset({"SparseCooTensor", "SparseCsrTensor"}),
}
"""Class that an annotation may name -> classes of values that the parameter takes, those of `oprack.tensor.kinds`. This
package does not import them, since definitions of ops must not bring NumPy along."""


@dataclass(frozen=True)
class KernelSignature:
    """How the parameters of a kernel are bound.

    Attributes:
        inputs: (slot, whether it is duplicable, container) of each input, in order. The container is "" for bare
            arrays, else the name of the class that the annotation asks for.
        attrs: (parameter, attribute) of each attribute.
        injected: The names among `out`, `ctx` and `xp` that the kernel takes.
        slot_groups: (position of the first input, class, fields) of each parameter that bundles several slots.
        attr_groups: (parameter, class, (field, attribute) pairs) of each parameter that bundles several attributes.
    """

    inputs: tuple[tuple[str, bool, str], ...]
    attrs: tuple[tuple[str, str], ...]
    injected: tuple[str, ...]
    slot_groups: tuple[tuple[int, type, tuple[str, ...]], ...] = ()
    attr_groups: tuple[tuple[str, type, tuple[tuple[str, str], ...]], ...] = ()


def bind_signature(function: Callable[..., Any], proto: OpProto) -> KernelSignature:
    """Match the parameters of a kernel with the slots and attributes of its op.

    Args:
        function: The kernel.
        proto: The op.

    Returns:
        The slot, attribute or injected object that each parameter receives.

    Raises:
        DefinitionError: A parameter matches nothing. The message names it and lists what the op has.
    """
    binder = _Binder(function, proto)
    for p in inspect.signature(function).parameters.values():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            binder.positional(p)
        elif p.kind is p.KEYWORD_ONLY:
            binder.keyword(p)
        else:
            raise DefinitionError(
                f"{binder.where}: *{p.name} is not allowed; name the slots and attributes that it needs"
            )
    return binder.signature()


class _Binder:
    """Collects a KernelSignature, parameter by parameter."""

    def __init__(self, function: Callable[..., Any], proto: OpProto) -> None:
        self._function, self._proto = function, proto
        # Both by the name of the parameter, which for an attribute that is a Python keyword is another one.
        self._slots = {s.param: s for s in proto.inputs.values()}
        self._attrs = {a.param: a.name for a in proto.attrs.values()} | {a: a for a in COMMON_ATTRS}
        self.where = f"kernel {function.__module__}.{function.__qualname__} of op {proto.type}"
        self._inputs: list[tuple[str, bool, str]] = []
        self._attributes: list[tuple[str, str]] = []
        self._injected: list[str] = []
        self._slot_groups: list[tuple[int, type, tuple[str, ...]]] = []
        self._attr_groups: list[tuple[str, type, tuple[tuple[str, str], ...]]] = []

    def signature(self) -> KernelSignature:
        flat = tuple(self._inputs), tuple(self._attributes), tuple(self._injected)
        return KernelSignature(*flat, tuple(self._slot_groups), tuple(self._attr_groups))

    def positional(self, p: inspect.Parameter) -> None:
        group = _named_tuple(self._function, p.annotation)
        if group is None:
            self._input(p.name, p.annotation, has_default=p.default is not p.empty)
            return
        defaults, annotations = _fields(group)
        # Ops of a family may share a group; fields for slots that an op lacks keep their defaults.
        fields = tuple(f for f in annotations if f in self._slots or f not in defaults)
        self._slot_groups.append((len(self._inputs), group, fields))
        for field in fields:
            self._input(field, annotations[field], has_default=field in defaults)

    def _input(self, name: str, annotation: Any, *, has_default: bool) -> None:
        slot = self._slots.get(name)
        if slot is None:
            raise DefinitionError(
                f"{self.where}: positional parameter {name!r} is no input slot; expected one of "
                f"{', '.join(self._slots) or 'none (the op has no inputs)'}; attributes go after a bare *"
            )
        if not has_default and slot.dispensable and not slot.duplicable:
            raise DefinitionError(f"{self.where}: {name!r} may be absent (the slot is dispensable); write {name}=None")
        self._inputs.append((slot.name, slot.duplicable, _container(annotation)))

    def keyword(self, p: inspect.Parameter) -> None:
        group = _named_tuple(self._function, p.annotation)
        if p.name in INJECTED:
            self._injected.append(p.name)
        elif group is not None:
            defaults, annotations = _fields(group)
            fields = [f for f in annotations if f in self._attrs or f not in defaults]
            self._attr_groups.append((p.name, group, tuple((f, self._attr(f)) for f in fields)))
        else:
            self._attributes.append((p.name, self._attr(p.name)))

    def _attr(self, param: str) -> str:
        name = self._attrs.get(param)
        if name is None:
            raise DefinitionError(
                f"{self.where}: keyword-only parameter {param!r} is no attribute; expected one of "
                f"{', '.join([*self._attrs][: len(self._proto.attrs)]) or 'none'}, or {', '.join(INJECTED)}"
            )
        return name


def _fields(group: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Defaults and annotations of a NamedTuple's fields."""
    return group._field_defaults, {f: group.__annotations__.get(f) for f in group._fields}


def _container(annotation: Any) -> str:
    """The class of CONTAINERS that an annotation names; "" for none."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    # "LoDTensorArray" contains "LoDTensor", so try the longest name first.
    return next((c for c in sorted(CONTAINERS, key=len, reverse=True) if c in text), "")


def _named_tuple(function: Callable[..., Any], annotation: Any) -> type | None:
    """The NamedTuple class that an annotation names; None for anything else."""
    if isinstance(annotation, str):
        # Under `from __future__ import annotations` an annotation is text. It names something in the module of the
        # kernel itself, not of a decorator that wraps it.
        unwrapped = inspect.unwrap(function)
        annotation = getattr(unwrapped, "__globals__", {}).get(annotation) if annotation.isidentifier() else None
    is_named_tuple = isinstance(annotation, type) and issubclass(annotation, tuple) and hasattr(annotation, "_fields")
    return annotation if is_named_tuple else None

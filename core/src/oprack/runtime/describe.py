"""An operator in words, for error messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.op.attrs import COMMON_ATTRS
from oprack.tensor import LoDTensor, LoDTensorArray, Scope, SparseValue

if TYPE_CHECKING:
    from oprack.kernel import Candidate
    from oprack.runtime.operator import OperatorBase


def describe_value(value: Any) -> str:
    """ "float32[2, 3] lod=[[0, 1, 2]]", "rows float32[10, 3] (2 rows)", "not set" ..."""
    if value is None:
        return "not set"
    if isinstance(value, LoDTensor):
        lod = f" lod={_short(value.lod)}" if value.lod else ""
        return f"{value.array.dtype}{list(value.shape)}{lod}"
    if isinstance(value, SparseValue):
        return f"{type(value).__name__} {value.elements.dtype}{list(value.shape)} ({value.listed})"
    if isinstance(value, LoDTensorArray):
        return f"LoDTensorArray of {len(value)}"
    return type(value).__name__


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def created_at(attrs: Mapping[str, Any]) -> str:
    """The line of the user's program that created the op, from attribute op_callstack; "" when it is not recorded.

    The stack is pairs of lines as Python prints them, `File "x.py", line 3, in f` and the code, outermost first.
    """
    stack = attrs.get("op_callstack") or []
    frames = [line.strip() for line in stack if line.strip().startswith("File ")]
    users = [f for f in frames if "/paddle/" not in f and "/oprack/" not in f]
    chosen = (users or frames)[-1:]
    if not chosen:
        return ""
    i = next(k for k, line in enumerate(stack) if line.strip() == chosen[0])
    code = stack[i + 1].strip() if i + 1 < len(stack) else ""
    return f"{chosen[0]}: {code}" if code and not code.startswith("File ") else chosen[0]


def describe_operator(op: OperatorBase, scope: Scope | None = None) -> str:
    """Slots with their variables, attributes that differ from the defaults, and the creating line."""

    def slots(title: str, given: Mapping[str, Sequence[str]]) -> list[str]:
        lines = []
        for slot, names in given.items():
            for i, name in enumerate(names):
                label = slot if len(names) == 1 else f"{slot}[{i}]"
                value = ""
                if scope is not None:
                    var = scope.find_var(name)
                    value = ": " + describe_value(var.value if var else None)
                lines.append(f"  {title} {label} = {name!r}{value}")
        return lines

    protos = op.info.proto.attrs
    attrs = [
        f"{k}={_short(v)}"
        for k, v in op.attrs.items()
        if k not in COMMON_ATTRS and (k not in protos or protos[k].default != v)
    ]
    lines = [f"op {op.type}, number {op.index} of block {op.block.idx}, pack {op.info.pack}"]
    lines += slots("input ", op.inputs) + slots("output", op.outputs)
    if attrs:
        lines.append("  attributes " + ", ".join(attrs))
    for kernel, reason in getattr(op, "declined", {}).items():
        lines.append(f"  kernel {kernel} declined: {reason}")
    where = created_at(op.attrs)
    if where:
        lines.append(f"  created by {where}")
    return "\n".join(lines)


def no_buffer_text(op_type: str, slot: str, chosen: Candidate) -> str:
    """Who reads an input without a buffer, for the error."""
    return f"op {op_type}, input {slot}: kernel {chosen.spec.name} of {chosen.spec.owner} ({chosen.spec.where})"

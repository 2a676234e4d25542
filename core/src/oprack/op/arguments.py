"""How Python spells the arguments and results of an op, and how many results it has where a call does not say it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.op.proto import AttrProto, OpProto, param_name

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_RUNTIME = ("mkldnn", "cudnn")


def snake_case(slot: str) -> str:
    """How a slot is spelled: `X` -> x, `LabelLength` -> label_length, `Out@GRAD` -> out_grad."""
    return param_name(_WORDS.sub("_", slot.replace("@GRAD", "_grad")).lower())


def input_names(proto: OpProto) -> dict[str, str]:
    """Spelling by input slot. Where an attribute has it already, the slot holds a tensor in place of that attribute:
    `Shape` beside the attribute shape is shape_input.
    """
    taken = {a.param for a in proto.attrs.values()}
    return {slot: name + "_input" if (name := snake_case(slot)) in taken else name for slot in proto.inputs}


def output_names(slots: Iterable[str]) -> list[str]:
    """Spellings of output slots."""
    return [snake_case(slot) for slot in slots]


def shown_attrs(proto: OpProto) -> dict[str, AttrProto]:
    """Attributes that matter to a caller, by spelling: those that define the op, not how a library runs it."""
    return {
        a.param: a
        for a in proto.attrs.values()
        if a.param.isidentifier() and not (a.extra or a.generated or any(word in a.param for word in _RUNTIME))
    }


def told_outputs(proto: OpProto, attrs: Mapping[str, Any], counts: Mapping[str, int]) -> int | None:
    """How many tensors a duplicable output gets, where attributes or the number of inputs say it.

    Args:
        proto: The op's OpProto.
        attrs: Values of attributes, by name; others have their defaults.
        counts: How many tensors each input slot holds.

    Returns:
        The number; None when a shape has to say it.
    """
    sections, number = (_value(proto, attrs, name) for name in ("sections", "num"))
    if sections:
        return len(sections)
    if isinstance(number, int) and number > 0:
        return number
    return next((n for slot, n in counts.items() if proto.inputs[slot].duplicable), None)


def outputs_along_axis(proto: OpProto, attrs: Mapping[str, Any], shape: Sequence[int] | None) -> int:
    """How many tensors a duplicable output gets that holds one for each index along the attribute axis.

    Args:
        proto: The op's OpProto.
        attrs: Values of attributes, by name; others have their defaults.
        shape: Shape of the first input, -1 for dims that are not known; None when there is no input.

    Returns:
        The number.

    Raises:
        InvalidArgumentError: The shape has no such dim, or nothing says the number.
    """
    axis = _value(proto, attrs, "axis")
    if isinstance(axis, int) and shape is not None:
        rank = len(shape)
        if not -rank <= axis < rank:
            raise InvalidArgumentError(
                f"op {proto.type}: axis is {axis}; expected a dim of shape {list(shape)}, from {-rank} to {rank - 1}"
            )
        if shape[axis] >= 0:
            return int(shape[axis])
    many = [s.name for s in proto.outputs.values() if s.duplicable]
    raise InvalidArgumentError(f"op {proto.type}: pass num_outputs, the number of tensors that {', '.join(many)} gets")


def _value(proto: OpProto, attrs: Mapping[str, Any], name: str) -> Any:
    known = proto.attrs.get(name)
    return attrs.get(name, None if known is None else known.default)

"""Whether an op is as its OpProto says: in its slots, the number of variables in each, and its attributes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from oprack.desc.attr_value import RULES, fitting
from oprack.errors import OprackError, did_you_mean
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.info import OpInfo
from oprack.op.proto import AttrProto, SlotProto
from oprack.types import EMPTY_VAR

Slots = Mapping[str, Sequence[str]]


def misfit(
    info: OpInfo,
    inputs: Slots,
    outputs: Slots,
    attrs: Mapping[str, Any],
    *,
    tensor_attrs: Collection[str] = (),
    foreign_attrs: Collection[str] | None = None,
    runs_itself: bool = False,
    check_attrs: bool = True,
) -> str:
    """What is wrong with an op, as the end of a sentence that begins with the op; "" when it is as its OpProto says.

    Args:
        inputs, outputs: Names of variables by slot.
        tensor_attrs: Attributes that name variables.
        foreign_attrs: Attributes that the OpProto does not have and the op may; None = any, as in programs of other
            versions.
        runs_itself: The op has no kernel, so it says itself which inputs it needs.
        check_attrs: Whether to check values of attributes against the OpProto; False where the op's rules do so.
    """
    proto = info.proto
    why = _slots("input", inputs, proto.inputs) or _slots("output", outputs, proto.outputs)
    if not why and not runs_itself:
        why = _missing_input(inputs, proto.inputs)
    if not why and foreign_attrs is not None:
        why = _foreign_attr(attrs, proto.attrs, foreign_attrs)
    why = why or _wrong_common_attr(attrs)
    if not why and check_attrs and info.checker is not None:
        try:
            info.checker.check(dict(attrs), tensor_attrs)
        except OprackError as error:
            return f"has a wrong attribute: {error}"
    return why


def _missing_input(inputs: Slots, declared: Mapping[str, SlotProto]) -> str:
    for slot, proto in declared.items():
        if not proto.dispensable and all(n == EMPTY_VAR for n in inputs.get(slot, ())):
            return f"lacks input {slot}, which the op needs"
    return ""


def _foreign_attr(attrs: Mapping[str, Any], declared: Mapping[str, AttrProto], foreign: Collection[str]) -> str:
    for name in attrs:
        if name not in declared and name not in COMMON_ATTRS and name not in foreign:
            return f"has attribute {name}{did_you_mean(name, declared)}; the op has {', '.join(declared) or 'none'}"
    return ""


def _wrong_common_attr(attrs: Mapping[str, Any]) -> str:
    for name, (kind, _) in COMMON_ATTRS.items():
        if name in attrs and fitting(attrs[name], kind) is None:
            return f"has attribute {name} = {attrs[name]!r}; expected {RULES[kind].words}"
    return ""


def _slots(what: str, given: Slots, declared: Mapping[str, SlotProto]) -> str:
    for slot, names in given.items():
        if names and slot not in declared:
            return f"has {what} {slot}{did_you_mean(slot, declared)}; the op has {', '.join(declared) or 'none'}"
        if len(names) > 1 and not declared[slot].duplicable:
            return f"has {len(names)} variables in {what} {slot}; expected one"
    return ""

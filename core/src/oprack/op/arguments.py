"""How Python spells the arguments of an op: one rule for the functions, the layers and the stubs made from OpProtos."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

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


def documentation(proto: OpProto, spelled: Mapping[str, str] | None = None) -> str:
    """The op's documentation with its slots and attributes.

    Args:
        spelled: Slot or attribute -> another spelling.
    """
    names = {**input_names(proto), **(spelled or {})}
    lines = [proto.doc, ""]
    lines += [
        f"{names[s.name]}: {s.doc}{' May be absent.' if s.dispensable else ''}"
        for s in proto.inputs.values()
        if not s.extra
    ]
    lines += [f"{names.get(a.name, name)}: {a.doc}" for name, a in shown_attrs(proto).items()]
    outs = [s for s in proto.outputs.values() if not (s.intermediate or s.dispensable)]
    texts = [f"{snake_case(s.name)}: {s.doc}" for s in outs]
    return "\n".join([*lines, f"Returns {'; '.join(texts) or 'nothing'}", f"Op {proto.type}."])

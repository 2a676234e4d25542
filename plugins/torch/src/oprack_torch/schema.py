"""The schemas by which torch knows ops, from the signatures of oprack.functional."""

from __future__ import annotations

import json
import math
from typing import Any

from oprack.bridge import BridgedOp
from oprack.op.proto import AttrProto
from oprack.op.signature import OpParameter
from oprack.types import AttrType

_TYPES = {
    AttrType.INT: "int",
    AttrType.LONG: "int",
    AttrType.FLOAT: "float",
    AttrType.FLOAT64: "float",
    AttrType.STRING: "str",
    AttrType.BOOLEAN: "bool",
    AttrType.INTS: "int[]",
    AttrType.LONGS: "int[]",
    AttrType.FLOATS: "float[]",
    AttrType.FLOAT64S: "float[]",
    AttrType.STRINGS: "str[]",
    AttrType.BOOLEANS: "bool[]",
}


LOD = "lod"
"""The overload that takes and gives LoD."""


def schema_of(op: BridgedOp, in_place: bool = False, lod: bool = False) -> str:
    """The schema of an op: arguments as oprack.functional has them, and all of its outputs.

    An output that may be left out is a list of none or one. `num_outputs` says how many tensors each output gets.

    Args:
        op: The op.
        in_place: Whether it is the form that writes to the inputs that the op declares.
        lod: Whether it is the overload with LoD. Its `levels` says how many LoD levels each tensor has, one after the
            other, `offsets` has all of them; and all offsets of the results are its last result.

    Returns:
        What `torch.library.Library.define` takes.
    """
    mutated = dict(op.info.inplace) if in_place else {}
    letters = {slot: chr(ord("a") + i) for i, slot in enumerate(mutated)}
    texts: list[str] = []
    for p in op.signature.parameters:
        text = _parameter(p, letters)
        if text is not None:
            if p.keyword and "*" not in texts:
                texts.append("*")
            texts.append(text)
    if op.counted:
        texts += ["*"] * ("*" not in texts) + ["int[]? num_outputs=None"]
    if lod:
        texts += ["*"] * ("*" not in texts) + ["int[] levels", "Tensor[] offsets"]
    results = ["Tensor[]" if o.listed else "Tensor" for o in op.outputs if o.slot.name not in mutated.values()]
    results += ["Tensor[]"] * lod
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"{op.type}{'_' if in_place else ''}{'.' + LOD if lod else ''}({', '.join(texts)}) -> {returned}"


def _parameter(p: OpParameter, letters: dict[str, str]) -> str | None:
    if p.slot is not None:
        mark = f"({letters[p.slot.name]}!)" if p.slot.name in letters else ""
        kind = f"Tensor{mark}[]" if p.slot.duplicable else f"Tensor{mark}"
        return f"{kind}? {p.name}=None" if p.slot.dispensable else f"{kind} {p.name}"
    if p.attr is None:  # num_outputs, which every op has that may need it
        return None
    of_attr = _TYPES.get(p.attr.type)
    if of_attr is None:
        return None
    if p.attr.required:
        return f"{of_attr} {p.name}"
    written = _default(p.attr)
    return f"{of_attr}? {p.name}=None" if written is None else f"{of_attr} {p.name}={written}"


def _default(attr: AttrProto) -> str | None:
    """The default as a schema has it; None where it can't be written there, which means the op's default as well."""
    value: Any = attr.default
    if isinstance(value, list | tuple):
        texts = [_literal(v) for v in value]
        return None if None in texts or not texts else f"[{', '.join(map(str, texts))}]"
    return _literal(value)


def _literal(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 1 << 62 else None
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    if isinstance(value, str) and value.isascii() and value.isprintable():
        return json.dumps(value)
    return None

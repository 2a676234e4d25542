"""Ops that compute others on parts, such as a look-up in some of the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oprack.op.info import OpInfo
from oprack.packs.manager import default_manager
from oprack.parallel.layouts.signatures import Choice
from oprack.parallel.rings import ring_number


def op_on_parts(
    info: OpInfo, attrs: Mapping[str, Any], choice: Choice, slots_in: Sequence[str], shapes: Sequence[Any]
) -> tuple[OpInfo, dict[str, Any]]:
    """The op that a rank runs on its parts, and its attributes.

    Args:
        info: The op that is called.
        attrs: Its attributes.
        choice: How it is computed.
        slots_in: The input slot of each argument.
        shapes: The logical shape of each argument.

    Returns:
        The op itself, or what its signature names, with attributes that say which part of what this rank has.
    """
    axis = next((k for k, signature in enumerate(choice.signatures) if signature.via), None)
    if axis is None:
        return info, dict(attrs)
    signature = choice.signatures[axis]
    found = default_manager().op_info(signature.via)
    slot, dim = next((slot, s.dim) for slot, s in signature.inputs.items() if s.kind == "S")
    k = list(slots_in).index(slot)
    layout = choice.inputs[k]
    assert layout is not None
    placement, declared = layout.placement, found.proto.attrs
    facts: dict[str, Any] = {
        "start_index": layout.region(shapes[k])[dim][0],
        "vocab_size": shapes[k][dim],
        "rank": placement.coords[axis],
        "nranks": placement.shape[axis],
    }
    if "ring_id" in declared:
        facts["ring_id"] = ring_number(placement.group(axis))
    given = {name: value for name, value in {**attrs, **facts}.items() if name in declared}
    return found, dict(found.checker.check(given)) if found.checker is not None else given

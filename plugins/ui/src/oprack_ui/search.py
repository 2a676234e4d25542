"""Ops and variables of a program by parts of their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oprack.desc import OpDesc, ProgramDesc

MOST = 200


def find(program: ProgramDesc, query: str) -> dict[str, Any]:
    """Ops whose type, or one of whose variables, has every word of the query in its name.

    Args:
        program: All of its blocks are searched.
        query: Words; capital letters are small ones.

    Returns:
        How many ops there are, and the first `MOST` of them: block, number in it, op type and a note.
    """
    words = query.lower().split()
    places: list[dict[str, Any]] = []
    count = 0
    for block in program.blocks:
        for number, op in enumerate(block.ops):
            note = _match(op, words) if words else None
            if note is not None:
                count += 1
                if count <= MOST:
                    places.append({"block": block.idx, "number": number, "op": op.type, "note": note})
    return {"count": count, "places": places}


def _match(op: OpDesc, words: list[str]) -> str | None:
    """What to say of an op that matches; None for one that does not."""
    kind = op.type.lower()
    rest = [word for word in words if word not in kind]
    variables = list(_variables(op))
    if not rest:
        return next((text for text, _ in variables), "")
    return next((text for text, name in variables if all(word in name.lower() for word in rest)), None)


def _variables(op: OpDesc) -> Iterator[tuple[str, str]]:
    for verb, slots in (("writes", op.outputs), ("reads", op.inputs)):
        for names in slots.values():
            for name in names:
                yield f"{verb} {name}", name

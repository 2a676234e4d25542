"""einsum equations: what they say about operands of given ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oprack.errors import InvalidArgumentError

_SPARE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Equation:
    """One letter per dim: of each operand, and of the result; "..." is spelled out with letters of its own."""

    inputs: tuple[str, ...]
    output: str


def parse(equation: str, ranks: Sequence[int]) -> Equation:
    """Equation for operands of these ranks; without "->" the output has the letters that occur once, sorted.

    Raises InvalidArgumentError that names the part of the equation that does not fit.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    _require(len(parts) == len(ranks), equation, f"it has {len(parts)} operands, but {len(ranks)} tensors are given")
    broadcast = 0
    for part, rank in zip(parts, ranks, strict=True):
        letters = part.replace("...", "", 1)
        _require(letters.isalpha() or not letters, equation, f"{part!r} holds something else than letters and '...'")
        extra = rank - len(letters)
        fits = extra >= 0 if "..." in part else extra == 0
        _require(fits, equation, f"{part!r} has {len(letters)} letters, but its tensor is of rank {rank}")
        broadcast = max(broadcast, extra)
    spare = [c for c in _SPARE if c not in text][:broadcast]
    inputs = tuple(
        part.replace("...", "".join(spare[broadcast - rank + len(part.replace("...", "")) :]))
        for part, rank in zip(parts, ranks, strict=True)
    )
    if arrow:
        output = right.replace("...", "".join(spare))
    else:
        used = left.replace("...", "").replace(",", "")
        output = "".join(spare) + "".join(sorted(c for c in set(used) if used.count(c) == 1))
    unknown = [c for c in output if not any(c in labels for labels in inputs)]
    _require(not unknown, equation, f"the output has {', '.join(unknown)}, which no operand has")
    _require(len(set(output)) == len(output), equation, "the output has a letter twice")
    return Equation(inputs, output)


def sizes(parsed: Equation, shapes: Sequence[tuple[int, ...]], equation: str) -> dict[str, int]:
    """Size of every letter; dims of 1 broadcast, -1 is not known yet.

    Raises InvalidArgumentError when a letter stands for two different sizes.
    """
    found: dict[str, int] = {}
    for labels, shape in zip(parsed.inputs, shapes, strict=True):
        for c, n in zip(labels, shape, strict=True):
            m = found.get(c, 1)
            if not (m == n or 1 in (m, n) or -1 in (m, n)):
                raise InvalidArgumentError(
                    f"op einsum: equation {equation!r}: {c!r} is a dim of size {m} and one of size {n}; expected one "
                    f"size for each letter; the operands have shapes {list(map(list, shapes))}"
                )
            found[c] = n if m == 1 else m if n in (1, -1) else n
    return found


def _require(condition: bool, equation: str, what: str) -> None:
    if not condition:
        raise InvalidArgumentError(
            f"op einsum: equation {equation!r}: {what}; expected one part per operand with one letter per dim, "
            "such as 'bij,bjk->bik' or '...ij,jk->...ik'"
        )

"""Cases of sequence_reverse."""

from __future__ import annotations

from oprack.testing import OpCase

from .._rows import joined, of_every_length, random, sequences, split


def reverse(n: list[int]) -> OpCase:
    x = sequences(random(sum(n), 2, 3), n)
    parts = [p[::-1] for p in split(x)]
    return OpCase("sequence_reverse", {"X": x}, outputs={"Y": joined(parts, x.array)}, grads=["X"])


CASES = of_every_length(reverse)

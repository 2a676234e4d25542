"""Cases of lstm."""

from __future__ import annotations

from oprack.testing import OpCase

from .._rows import of_every_length
from ._lstm import by_rows, lstm_attrs, lstm_inputs
from ._walk import output, program_inputs


def lstm(n: list[int], way: str, peepholes: bool) -> OpCase:
    inputs, attrs = lstm_inputs(n, peepholes), lstm_attrs(peepholes, way == "reverse")
    h, c = (output(v, n) for v in by_rows(inputs, attrs, n))
    return OpCase("lstm", program_inputs(inputs, n), attrs, {"Hidden": h, "Cell": c}, list(inputs))


CASES = [
    c for way in ("forward", "reverse") for peepholes in (False, True) for c in of_every_length(lstm, way, peepholes)
]

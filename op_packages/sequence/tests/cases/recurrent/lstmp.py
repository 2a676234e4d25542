"""Cases of lstmp."""

from __future__ import annotations

from oprack.testing import OpCase

from .._rows import of_every_length
from ._lstm import by_rows, lstm_attrs, lstm_inputs
from ._walk import output, program_inputs


def lstmp(n: list[int], cell_clip: float, proj_clip: float) -> OpCase:
    inputs = lstm_inputs(n, True, 2)
    attrs = lstm_attrs(True, False, proj_activation="tanh", cell_clip=cell_clip, proj_clip=proj_clip)
    r, c = (output(v, n) for v in by_rows(inputs, attrs, n))
    return OpCase("lstmp", program_inputs(inputs, n), attrs, {"Projection": r, "Cell": c}, list(inputs))


CASES = [c for clips in ((0.0, 0.0), (0.1, 0.1), (0.3, 0.15)) for c in of_every_length(lstmp, *clips)]

"""Lines that run in Paddle 2 and in oprack alike give what Paddle 2.6.2 gave."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest

DATA = Path(__file__).parent / "data"
sys.path.insert(0, str(DATA))
from named_lines import LINES, arrays, rates  # noqa: E402

RECORDED = np.load(DATA / "named_lines.npz")
NAMES: dict[str, Any] = {
    "P": oprack,
    "F": oprack.nn.functional,
    "nn": oprack.nn,
    "lr": oprack.optimizer.lr,
    "t": oprack.to_tensor,
    "np": np,
    "rates": rates,
} | {name: oprack.to_tensor(value) for name, value in arrays().items()}


def test_every_line_is_recorded() -> None:
    assert sorted(map(int, RECORDED.files)) == list(range(len(LINES)))


@pytest.mark.parametrize("number", range(len(LINES)), ids=LINES)
def test_a_line_gives_what_paddle_gave(number: int) -> None:
    found, wanted = eval(LINES[number], dict(NAMES)), RECORDED[str(number)]  # the project's own lines
    value = found.numpy() if hasattr(found, "numpy") else np.asarray(found)
    assert value.shape == wanted.shape and value.dtype.kind == wanted.dtype.kind
    np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=2e-6)

"""Copies by tables: what the runner in C and the loop in Python write, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.native_steps import CopyGrid, CopyTable
from oprack_onednn.chain.primitive_chain import PrimitiveChain, run_all
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.objects import MemoryDesc
from oprack_onednn.dnnl.operands import OperandError

IMAGES, POSITIONS, RESULTS, WIDTH, ROWS, COLUMNS = 2, 3, 2, 5, 7, 90
ROWS_OF = [(0, 1, 0, 1), (1, 0, 2, 2), (2, 1, 6, 1)]
COLUMNS_OF = [(p, r, 30 * r + 10 * p + p % 2, 1) for p in range(POSITIONS) for r in range(RESULTS)] + [(2, 0, 88, 2)]
PIXEL = RESULTS * RESULTS * WIDTH


def grid(adds: bool, width: int = WIDTH, rows: Any = None) -> CopyGrid:
    """Positions [p, q] of results [r, s] of `width` numbers."""
    line = POSITIONS * PIXEL
    return CopyGrid(
        *(rows or CopyTable(ROWS_OF), CopyTable(COLUMNS_OF), IMAGES, width, POSITIONS * line, (line, RESULTS * WIDTH)),
        *((PIXEL, WIDTH), (ROWS * COLUMNS * WIDTH, COLUMNS * WIDTH), adds),
    )


def chain_of(made: CopyGrid) -> PrimitiveChain:
    """A copy of the operand into scratch memory, and from there by the grid."""
    assert THREAD.ready()
    chain = PrimitiveChain()
    source = MemoryDesc.strided((IMAGES * POSITIONS * POSITIONS * PIXEL,))
    given, target = chain.input(source), chain.output(MemoryDesc.strided((IMAGES, ROWS, COLUMNS, WIDTH)))
    chain.spread(chain.reorder(given, source), target, made)
    return chain


def expected(x: np.ndarray, before: np.ndarray, adds: bool) -> np.ndarray:
    seen = x.reshape(IMAGES, POSITIONS, POSITIONS, RESULTS, RESULTS, WIDTH)
    y = before.copy()
    for p, r, i, count in ROWS_OF:
        for q, s, j, wide in COLUMNS_OF:
            for a in range(count):
                for b in range(wide):
                    new = seen[:, p, q, r + a, s + b]
                    y[:, i + a, j + b] = before[:, i + a, j + b] + new if adds else new
    return y


@pytest.mark.parametrize("way", ["runner", "first run", "Python"])
@pytest.mark.parametrize("adds", [False, True])
def test_results_go_where_the_tables_say(adds: bool, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert THREAD.ready()
    if way == "runner" and RUNNER.run is None:
        pytest.skip(RUNNER.problem)
    if way == "Python":
        monkeypatch.setattr(RUNNER, "library", None)
        monkeypatch.setattr(RUNNER, "run", None)
    rng = np.random.default_rng(1)
    x = rng.standard_normal(IMAGES * POSITIONS * POSITIONS * PIXEL).astype(np.float32)
    before = rng.standard_normal((IMAGES, ROWS, COLUMNS, WIDTH)).astype(np.float32)
    chain, y = chain_of(grid(adds)), before.copy()
    if way == "runner":
        run_all([(chain.bound(), (x, y))])
    else:
        chain.run(x, y)
    np.testing.assert_array_equal(y, expected(x, before, adds))


def test_a_copy_beyond_its_memory_is_refused() -> None:
    with pytest.raises(OperandError, match="writes"):
        chain_of(grid(False, rows=CopyTable([(0, 0, ROWS, 1)])))
    with pytest.raises(OperandError, match="reads"):
        chain_of(grid(False, rows=CopyTable([(POSITIONS + 5, 0, 0, 1)])))
    with pytest.raises(OperandError, match="not negative"):
        CopyTable([(-1, 0, 0, 1)])

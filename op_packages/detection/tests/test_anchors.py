"""Anchors are computed once for each shape, and nobody who writes to them changes those of the next run."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.kernel import KernelSpecialization
from oprack_detection.kernels.anchor import by_shapes


def cells(Input, Image, *, step, xp):
    """Calls are counted by the test: the first corners of a grid."""
    cells.calls += 1
    return (xp.arange(Input.shape[2]) * step / Image.shape[2]).astype(Input.dtype), xp.ones(2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_once_for_each_shape(dtype):
    cells.calls = 0
    run = by_shapes(cells)(KernelSpecialization("cells", {"step": 2.0, "more": 1}, {}, np))
    for _ in range(3):
        for rows, height in ((3, 10), (4, 10), (3, 20)):
            x, image = np.zeros((1, 1, rows, 1), dtype), np.zeros((1, 3, height, 5))
            first, ones = run(x, image)
            assert first.dtype == dtype and ones.tolist() == [1, 1]
            np.testing.assert_allclose(first, np.arange(rows) * 2.0 / height, rtol=1e-6)
            first += 7
            ones[:] = 0
    assert cells.calls == 3


def test_shapes_are_bounded_and_other_places_are_left_alone():
    cells.calls = 0
    run = by_shapes(cells)(KernelSpecialization("cells", {"step": 1.0}, {}, np))
    for rows in range(40):
        assert run(np.zeros((1, 1, rows, 1)), np.zeros((1, 1, 1, 1)))[0].tolist() == list(range(rows))
    assert cells.calls == 40
    assert by_shapes(cells)(KernelSpecialization("cells", {"step": 1.0}, {}, object())) is None

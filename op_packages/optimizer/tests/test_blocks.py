"""Large parameters are updated block by block, with the bits that the formula on whole arrays gives."""

from __future__ import annotations

import numpy as np
import pytest
from oprack_optimizer.kernels import adam


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("layout", [lambda a: a, lambda a: a.T], ids=["row major", "turned"])
def test_adam_in_blocks(monkeypatch, dtype, layout):
    rng = np.random.default_rng(0)
    p, g, m1, m2 = (layout(rng.random((37, 50)).astype(dtype)) for _ in range(4))
    numbers = [np.asarray(v, dtype) for v in (0.01, 0.9, 0.99)]
    want = adam.step(p, g, m1, m2, *numbers, 0.9, 0.999, 1e-6, np)
    monkeypatch.setattr(adam, "_BLOCK", 64)
    monkeypatch.setattr(adam, "_whole", lambda *a: pytest.fail("not in blocks"))
    got = adam.step(p, g, m1, m2, *numbers, 0.9, 0.999, 1e-6, np)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a, b)

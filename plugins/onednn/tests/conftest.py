"""What the tests of this plugin share."""

from __future__ import annotations

import pytest
from oprack_onednn.library import LIBRARY


@pytest.fixture(autouse=True)
def library():
    """oneDNN, or a skipped test where it does not serve."""
    if not LIBRARY.usable():
        pytest.skip(f"oneDNN does not serve: {LIBRARY.problem}")
    return LIBRARY


@pytest.fixture
def any_size(monkeypatch):
    """Small tensors go to oneDNN, too."""
    from oprack_onednn.served import Limits

    for name in ("eltwise", "costly", "binary", "moved", "product"):
        monkeypatch.setattr(Limits, name, 0)
    # declared limits were read when the kernels were; the choice that heeds them takes the best kernel instead
    monkeypatch.setattr("oprack.kernel.kernel_map._by_size", lambda fitting: fitting[0])

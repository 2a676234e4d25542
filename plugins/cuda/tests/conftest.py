"""What the tests of this plugin share."""

from __future__ import annotations

import pytest
from oprack_cuda.library import CUDA
from oprack_cuda.testing import emulator


@pytest.fixture
def emulated(monkeypatch):
    """Kernels of library "cuda" may run: over strict arrays their sources are compiled as C++."""
    if emulator.compiler() is None:
        pytest.skip("no C++ compiler to run CUDA sources on the host with")
    monkeypatch.setattr(CUDA, "usable", lambda: True)

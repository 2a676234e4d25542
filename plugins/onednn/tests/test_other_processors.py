"""The kernels on a processor without AVX-512: oneDNN has other primitives and layouts there, and fewer of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from oprack_onednn.dnnl.library import LIBRARY

HERE = Path(__file__).parent
FILES = ["test_gradient_kernels.py", "test_operands.py", "test_training_kernels.py"]


def test_kernels_without_avx512():
    if LIBRARY.identity().endswith(", AVX2"):
        pytest.skip("this is such a processor")
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *FILES]
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "no such primitive for this processor" in done.stdout, "oneDNN did not heed the limit"

"""The conformance suite over the pack cuda: the op that a pass makes, and kernels of ops that other packs define."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from oprack.testing import Conformance


class TestCuda(Conformance):
    pack = "cuda"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    without_cases: ClassVar = {"cuda_bias_act": "a pass makes it: test_passes.py"}
    test_case_file = None  # test_shared_kernels.py and the tests on a GPU run them

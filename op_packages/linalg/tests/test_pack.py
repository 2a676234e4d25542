"""The linalg pack against the conformance suite."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, collect_cases


class TestLinalg(Conformance):
    pack = "linalg"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    cases = collect_cases(Path(__file__).parent / "cases")
    # a case moves single elements, after which a symmetric matrix is none
    without_gradients = dict.fromkeys(("eig", "eigh", "eigvalsh"), "matrices of a kind: test_gradients.py")

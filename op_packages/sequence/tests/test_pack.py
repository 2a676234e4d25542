"""The sequence pack against the conformance suite."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, Limitation, collect_cases


class TestSequence(Conformance):
    pack = "sequence"
    cases = collect_cases(Path(__file__).parent / "cases")
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    fuzz_known = Path(__file__).parents[3] / "tests" / "data" / "fuzz_known.toml"
    limitations = (
        Limitation("match_matrix_tensor.0000", "Paddle takes the width of X for that of Y, which differs in the case"),
    )

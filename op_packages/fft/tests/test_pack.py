"""The fft pack against the conformance suite."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, Limitation, collect_cases


class TestFft(Conformance):
    pack = "fft"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    cases = collect_cases(Path(__file__).parent / "cases")
    limitations = [
        Limitation("stft.0000", "the case feeds a complex gradient that it declares as float32", stages=("gradient",)),
    ]

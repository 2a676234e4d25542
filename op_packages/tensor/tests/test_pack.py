"""The tensor pack against the conformance suite."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, Limitation, collect_cases


class TestTensor(Conformance):
    pack = "tensor"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    cases = collect_cases(Path(__file__).parent / "cases")
    limitations = (Limitation("more.top_k.*", "Paddle's gradient of top_k has no LoD", ("gradient",)),)

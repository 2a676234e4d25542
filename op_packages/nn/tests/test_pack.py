"""The nn pack against the conformance suite."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from oprack.testing import Conformance, Limitation, collect_cases

_SHUFFLED = "Paddle's own gradient shuffles by the same groups again instead of back"


class TestNn(Conformance):
    pack = "nn"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    fuzz_known = Path(__file__).parents[3] / "tests" / "data" / "fuzz_known.toml"
    cases = collect_cases(Path(__file__).parent / "cases")
    without_gradients: ClassVar = {"rrelu": "random slopes, which its case files fix: tests/test_numeric_gradients.py"}
    limitations = [
        Limitation("nce.*", "a fixed seed draws other noise here: the generator is Philox"),
        Limitation("shuffle_channel.0000", _SHUFFLED, stages=("gradient",)),
        Limitation("dropout.0032", "a fixed seed draws other numbers here: the generator is Philox"),
        Limitation("silu.0013", "at -100 Paddle's own gradient is nan, the limit is 0", stages=("gradient",)),
        Limitation("swish.0026", "Paddle 2.6 ignores beta, which its definition and 1.x programs have"),
    ]

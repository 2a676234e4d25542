"""The math pack against the conformance suite."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, Limitation, collect_cases

_CUT = "Paddle's CPU kernels cut float32 to bfloat16, these round; sums that cancel show it"
_SWAPPED = "Paddle subtracts the wrong way round when X has the lower rank"


class TestMath(Conformance):
    pack = "math"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    cases = collect_cases(Path(__file__).parent / "cases")
    limitations = [
        *(Limitation(f"elementwise_mul.{n}", _CUT, stages=("gradient",)) for n in ("0028", "0034", "0100", "0106")),
        *(Limitation(f"elementwise_mul.{n}", _CUT, stages=("gradient", "gradient2")) for n in ("0030", "0033")),
        *(Limitation(f"reduce_sum.{n}", _CUT, stages=("forward",)) for n in ("0074", "0075")),
        *(Limitation(f"elementwise_sub.{n}", _SWAPPED, stages=("gradient2",)) for n in ("0048", "0066")),
    ]

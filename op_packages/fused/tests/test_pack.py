"""The fused pack against the conformance suite."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, Limitation, collect_cases

_MODE = "Paddle's kernel leaves origin_mode out"
_PRODUCT = "Paddle's gradient of Y is off where the product's inner function is not linear"


class TestFused(Conformance):
    pack = "fused"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    cases = collect_cases(Path(__file__).parent / "cases")
    limitations = [
        *(Limitation(f"fusion_gru.{n}", _MODE, stages=("forward",)) for n in ("0001", "0003")),
        *(Limitation(f"fused.fused_elemwise_activation.{n}", _PRODUCT, stages=("gradient",)) for n in ("0013", "0015")),
    ]

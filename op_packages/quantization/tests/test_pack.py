"""The quantization pack against the conformance suite."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, collect_cases


class TestQuantization(Conformance):
    pack = "quantization"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    cases = collect_cases(Path(__file__).parent / "cases")
    without_gradients = dict.fromkeys(
        ("fake_quantize_dequantize_moving_average_abs_max",),
        "steps, whose gradient op is stright_throuth_estimator_grad, which has cases",
    )

"""The plugin's op against the conformance suite."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, collect_cases


class TestOnnxRuntime(Conformance):
    pack = "onnxruntime"
    cases = collect_cases(Path(__file__).parent / "cases")

"""The onnx_ops pack against the conformance suite, and against ONNX's own node tests."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, collect_cases

from .node_tests import recorded

HERE = Path(__file__).parent


class TestOnnxOps(Conformance):
    pack = "onnx_ops"
    cases = [*collect_cases(HERE / "cases"), *recorded(HERE / "data" / "node_tests.npz")]

"""The control_flow pack against the conformance suite."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, Limitation

# The other tests of this folder run these; no case file does.
TESTED_HERE = {"assert", "conditional_block_infer", "delete_var", "get_places", "merge_lod_tensor_infer", "print"}


class TestControlFlow(Conformance):
    pack = "control_flow"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    limitations = (
        Limitation(
            "tensor_array_to_tensor.0000", "Paddle leaves OutIndex empty; here it holds the sizes", ("forward",)
        ),
    )

    def test_op_has_cases(self, op_type: str) -> None:
        """A case runs the op, or a test of this folder."""
        if op_type not in TESTED_HERE:
            super().test_op_has_cases(op_type)

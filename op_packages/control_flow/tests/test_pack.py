"""The control_flow pack against the conformance suite."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from oprack.testing import Conformance, Limitation


class TestControlFlow(Conformance):
    pack = "control_flow"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    limitations = (
        Limitation(
            "tensor_array_to_tensor.0000", "Paddle leaves OutIndex empty; here it holds the sizes", ("forward",)
        ),
    )
    without_cases: ClassVar = {
        "assert": "it only raises: test_assert.py",
        "conditional_block_infer": "a block: test_conditional_block.py",
        "delete_var": "its effect is on the scope: test_delete_var.py",
        "get_places": "its result is a list of places: test_get_places.py",
        "merge_lod_tensor_infer": "as merge_lod_tensor, which has cases: test_split_lod_tensor.py",
        "print": "its effect is what it prints: test_print.py",
    }

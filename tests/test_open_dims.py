"""Shape rules of all ops with dims that are not known when a program is built: what runs can be built as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from oprack.op.desc_rules import infer_op
from oprack.packs.manager import default_manager
from oprack.testing import load_cases
from oprack.testing.cases import FileCase
from oprack.types import VarType

CASES = Path(__file__).parent / "data" / "cases"
Opening = Callable[[Sequence[int]], list[int]]
OPENINGS: dict[str, Opening] = {
    "all": lambda dims: [-1] * len(dims),
    "first": lambda dims: [-1, *dims[1:]] if dims else [],
    "every second": lambda dims: [d if i % 2 == 0 else -1 for i, d in enumerate(dims)],
}


def _refusal(case: FileCase, stage: str, opened: Opening) -> str:
    """What a shape rule says of the case's program with open dims; "" when all of them take it."""
    manager = default_manager()
    program, inputs = case.program(stage), case.inputs(stage)
    desc = program.desc.clone()
    if len(desc.blocks) > 1 or not all(manager.has_op(t) for t in program.op_types()):
        return ""
    block = desc.blocks[0]
    for name, var in block.vars.items():
        if var.type in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS):
            var.shape = opened(getattr(inputs.get(name), "shape", None) or var.shape or [])
    for op in block.ops:
        try:
            infer_op(op, block, manager.op_info(op.type))
        except Exception as error:
            return f"{case.id}, {stage}: {type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("which", OPENINGS)
def test_rules_take_dims_that_are_not_known(which: str) -> None:
    asked, refused = 0, []
    for path in sorted(CASES.glob("*.npz")):
        for case in load_cases(path):
            for stage in ("forward", "gradient"):
                if case.has(stage):
                    asked += 1
                    refused.append(_refusal(case, stage, OPENINGS[which]))
    assert asked > 3000
    assert [r for r in refused if r] == []

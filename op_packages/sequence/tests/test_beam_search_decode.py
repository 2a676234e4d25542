"""beam_search_decode refuses arrays of steps that it can't follow."""

from __future__ import annotations

import numpy as np
import pytest
from oprack import Executor
from oprack.desc import OpDesc
from oprack.errors import InvalidArgumentError
from oprack.program import Program
from oprack.tensor import LoDTensor, LoDTensorArray, lod_from_lengths
from oprack.types import VarType


@pytest.mark.parametrize("gap", ["Ids", "Scores"])
def test_a_step_that_was_never_written_is_named(gap: str) -> None:
    step = lod_from_lengths([[1], [1]])
    arrays = {
        "Ids": LoDTensorArray([LoDTensor(np.array([[4]]), step) for _ in range(2)]),
        "Scores": LoDTensorArray([LoDTensor(np.array([[0.5]], np.float32), step) for _ in range(2)]),
    }
    arrays[gap][0] = None
    program = Program()
    block = program.global_block()
    for slot in arrays:
        block.create_var(slot, type=VarType.LOD_TENSOR_ARRAY, dtype="int64" if slot == "Ids" else "float32")
    outputs = {slot: [block.create_var(slot).name] for slot in ("SentenceIds", "SentenceScores")}
    block.append_op(OpDesc("beam_search_decode", {s: [s] for s in arrays}, outputs, {"beam_size": 2, "end_id": 0}))
    with pytest.raises(InvalidArgumentError, match=f"step 0 of {gap} was never written"):
        Executor().run(program, arrays, ["SentenceIds"], return_numpy=False)

"""einsum says which part of an equation does not fit its operands."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.desc import OpDesc
from oprack.errors import InvalidArgumentError
from oprack.op.desc_rules import infer_op
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.types import AttrType

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("equation", "operands", "words"),
    [
        ("ij,jk->ik", [X[0]], ["2 operands", "1 tensors"]),
        ("ij->ik", [X[0]], ["has k"]),
        ("ijk->i", [X[0]], ["3 letters", "rank 2"]),
        ("ij,jk->ik", [X[0], X[0]], ["'j'", "4", "3"]),
        ("i1->i", [X[0]], ["something else than letters"]),
        ("ij->ii", [X[0]], ["a letter twice"]),
    ],
)
def test_einsum_names_the_part_that_does_not_fit(equation, operands, words):
    program = Program()
    block = program.global_block()
    names = [f"x{i}" for i in range(len(operands))]
    for name, value in zip(names, operands, strict=True):
        block.create_var(name, dtype="float32", shape=value.shape)
    block.create_var("out")
    op = OpDesc("einsum", {"Operands": names}, {"Out": ["out"]}, {"equation": equation}, {"equation": AttrType.STRING})
    with pytest.raises(InvalidArgumentError) as caught:
        infer_op(block.append_op(op), block, default_manager().op_info("einsum"))
    assert equation in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)

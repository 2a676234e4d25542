"""The gradient of a variable has its LoD: a recorded case of each op whose gradient reads the first input, with LoD."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from oprack.packs.manager import default_manager
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, Scope
from oprack.testing import FileCase, load_cases
from oprack.testing.runner import copied, missing_ops

CASES = Path(__file__).parent / "data" / "cases"

# Op -> why its gradient has no LoD, or why the case does not run with LoD.
OTHERWISE = {
    "cvm": "CVM has a row for each sequence of X, for each row where X has none",
    "determinant": "Paddle recorded a cotangent of a wrong shape, as for slogdeterminant and stft",
    "fused_embedding_seq_pool": "as of lookup_table",
    "lookup_table": "the first input is a table, whose rows are no sequences",
    "row_conv": "LoD on X asks for the form without padding",
    "slogdeterminant": "as of determinant",
    "stft": "as of determinant",
    "sequence_expand": "LoD on X changes which rows are expanded",
    "transpose": "the rows of X are a dim like the others",
}


def _first_input(case: FileCase) -> str:
    """The variable in the op's first slot, when the gradient op reads it and it is a dense tensor of several rows."""
    op_type = case.header["op_type"]
    gradient_ops = [op for op in case.program("gradient").global_block().ops if op.type == f"{op_type}_grad"]
    slot = next(iter(default_manager().op_info(op_type).proto.inputs), "")
    name = next(iter(case.header["inputs"].get(slot, ())), "")
    value = case.feeds.get(name)
    usable = isinstance(value, LoDTensor) and not value.lod and len(value.shape) > 0 and value.shape[0] > 1
    return name if usable and gradient_ops and name in gradient_ops[0].input_arg_names() else ""


@cache
def _cases() -> dict[str, tuple[FileCase, str, str]]:
    """Op type -> a case, the variable of it that gets LoD, and its gradient."""
    found: dict[str, tuple[FileCase, str, str]] = {}
    for file in sorted(CASES.glob("*.npz")):
        for case in load_cases(file):
            op_type = case.header["op_type"]
            if op_type in OTHERWISE or op_type in found or not case.has("gradient") or case.header["kind"] == "program":
                continue
            if missing_ops(case, "gradient", default_manager()):
                continue
            name = _first_input(case)
            wanted = [w["var"] for w in case.header["grad"]["wrt"] if w["wrt"] == name]
            if wanted:
                found[op_type] = case, name, wanted[0]
    return found


@pytest.mark.parametrize("op_type", sorted(_cases()))
def test_the_gradient_of_a_variable_has_its_lod(op_type: str) -> None:
    case, name, gradient = _cases()[op_type]
    inputs = {n: copied(v) for n, v in case.inputs("gradient").items()}
    given = inputs[name].array
    inputs[name] = LoDTensor(given, [[0, 1, len(given)]])
    scope = Scope()
    for n in case.persistable:
        scope.var(n).set(inputs.pop(n))
    (got,) = Executor().run(case.program("gradient"), inputs, [gradient], scope, return_numpy=False)
    assert got.lod == [[0, 1, len(given)]]

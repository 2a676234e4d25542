"""Every case file called eagerly, twice: the numbers of the reference path, and gradients as its programs have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from eager_programs import run_eagerly
from oprack import Executor, Tensor, to_tensor
from oprack.errors import OprackError
from oprack.functional.generated import function
from oprack.functional.op_function import op_function
from oprack.interpreter.wrappers import tensors_in
from oprack.op.attrs import COMMON_ATTRS
from oprack.packs.manager import default_manager
from oprack.testing import FileCase, load_cases
from oprack.testing.cases import Expected, compare
from oprack.testing.runner import _fetched, _identical, copied, run_case
from oprack.types import AttrType

CASES = Path(__file__).parent / "data" / "cases"
BLOCKS = (AttrType.BLOCK, AttrType.BLOCKS)
ARRAYS = {"write_to_array"}  # changes the array that its output's variable holds; a call has no variables
# A target is computed from another one, whose given gradient Paddle's program takes for the whole.
OTHER_GRADIENTS = {"reorder_lod_tensor_by_rank"}


def _callable(case: FileCase, stage: str = "forward") -> bool:
    """Whether every op is installed and none of them runs a block or works on what only a scope holds."""
    manager = default_manager()
    program = case.program(stage)
    types = program.op_types()
    if not all(manager.has_op(t) for t in types) or types & ARRAYS:
        return False
    return not any(a.type in BLOCKS for t in types for a in manager.op_info(t).proto.attrs.values())


def _given(inputs: dict[str, Any]) -> dict[str, Tensor]:
    """Tensors with memory of their own."""
    return {n: to_tensor(copied(v)) for n, v in inputs.items()}


def _value(tensor: Tensor) -> Any:
    return tensor.value


def _files() -> list[Path]:
    """Cases of ops that are installed; those of whole training steps, by the name of no op, are programs."""
    return [f for f in sorted(CASES.rglob("*.npz")) if default_manager().has_op(f.stem)]


@pytest.mark.parametrize("file", _files(), ids=lambda f: f"{f.parent.name}-{f.stem}")
def test_numbers_are_those_of_the_reference_path(file: Path) -> None:
    tried = 0
    for case in load_cases(file):
        if case.stochastic or not _callable(case):
            continue
        inputs = {n: copied(v) for n, v in case.feeds.items()}  # a run may take tensors out of arrays
        try:
            wanted = run_case(case, "forward", Executor(prepared=False))
        except OprackError:
            continue  # a known limitation, which the tests of its pack list
        tried += 1
        exprs: dict[int, Any] = {}
        for time in ("first", "second"):
            found = run_eagerly(case.program("forward"), _given(inputs), exprs)
            for name, value in wanted.items():
                assert _identical(value, _value(found[name])), f"{case.id}: {name} in its {time} call"
        if file.stem not in OTHER_GRADIENTS and case.has("gradient") and _callable(case, "gradient"):
            _check_gradients(case, inputs)
    if not tried:
        pytest.skip("its cases run blocks, change arrays or draw random numbers; a call by itself does not")


def _check_gradients(case: FileCase, inputs: dict[str, Any]) -> None:
    """Gradients by eager backward against Paddle's gradient program, run by the reference path."""
    try:
        wanted = run_case(case, "gradient", Executor(prepared=False))
    except OprackError:
        return
    given = _given(inputs)
    cotangents, cotangent = case.header["grad"]["cotangents"], case.inputs("gradient")
    names = {e.info["wrt"]: e for e in _fetched(case, "gradient")}
    for name in names:
        if name in given and given[name]._meta.differentiable:
            given[name].requires_grad = True
    wrt = [n for n in names if n in given and given[n].requires_grad]
    found = run_eagerly(case.program("forward"), given)
    targets = [c for c in cotangents if found[c["target"]].requires_grad]
    if not targets or not wrt:
        return
    gradients = oprack.grad(
        [found[c["target"]] for c in targets],
        [given[n] for n in wrt],
        [to_tensor(cotangent[c["var"]]) for c in targets],
        allow_unused=True,
    )
    for name, gradient in zip(wrt, gradients, strict=True):
        expected = names[name]
        if gradient is None:
            continue
        value = gradient.value
        if hasattr(value, "lod"):
            value.lod = getattr(wanted[expected.name], "lod", [])
        reason = compare(Expected(name, wanted[expected.name], expected.info), value)
        assert not reason, f"{case.id}: gradient of {name} {reason}"


# Lists of tensors ---------------------------------------------------------------------------------------------------
def _list_slots(op_type: str) -> list[str]:
    return [s.name for s in default_manager().op_info(op_type).proto.inputs.values() if s.duplicable]


def _calls(case: FileCase, op_type: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Arguments of the function of the case's op: as the case has them, and with one tensor for each list in turn."""
    op = next(op for op in case.program("forward").global_block().ops if op.type == op_type)
    function, given = op_function(op.type), _given(case.feeds)
    arguments: dict[str, Any] = {
        function.attrs[a].param if a in function.attrs else a: v for a, v in op.attrs.items() if a not in COMMON_ATTRS
    }
    arguments = {n: v for n, v in arguments.items() if n in function.attrs}
    counts = {s.name: len(op.outputs.get(s.name, ())) for s in function.proto.outputs.values() if s.duplicable}
    arguments |= {"num_outputs": {n: c for n, c in counts.items() if c}} if any(counts.values()) else {}
    for slot in function.slots:
        if found := [given[n] for n in op.inputs.get(slot.name, ()) if n in given]:
            arguments[function.names[slot.name]] = found if slot.duplicable else found[0]
    yield "lists", arguments
    for slot_name in _list_slots(op.type):
        name = function.names[slot_name]
        if arguments.get(name):
            yield f"a tensor as {name}", arguments | {name: arguments[name][0]}


def _outcome(op_type: str, arguments: dict[str, Any]) -> Any:
    try:
        result = function(op_type)(**arguments)
    except Exception as error:
        return type(error).__name__, str(error)
    return [np.asarray(y.numpy()).tolist() for y in tensors_in(result)]


@pytest.mark.parametrize(
    "file", [f for f in _files() if _list_slots(f.stem)], ids=lambda f: f"{f.parent.name}-{f.stem}"
)
def test_a_call_does_not_depend_on_those_before_it(file: Path) -> None:
    """An op that takes a list does the same the first time, when its call was kept, and for one tensor as for [it]."""
    for case in load_cases(file):
        if case.stochastic or not _callable(case) or file.stem not in case.program("forward").op_types():
            continue
        for what, arguments in _calls(case, file.stem):
            op_function(file.stem).table.clear()
            first, *later = (repr(_outcome(file.stem, arguments)) for _ in range(3))
            assert later == [first] * 2, f"{case.id} with {what}"
            lists = {n: [v] if what == f"a tensor as {n}" else v for n, v in arguments.items()}
            assert repr(_outcome(file.stem, lists)) == first, f"{case.id} with {what}"

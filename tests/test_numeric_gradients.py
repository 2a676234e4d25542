"""Every differentiable op: its gradient against central differences in one random direction, at float64.

The programs and inputs are those of tests/data/cases, widened to float64 and complex128; the gradient is that of
`gradients()`. An op that Paddle does not have is checked by the records of its pack: `OpCase(..., grads=["X"])` in its
tests/cases.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import Executor, LoDTensor, Program, Scope, SelectedRows
from oprack.autodiff import gradients
from oprack.errors import FetchNameError
from oprack.op import GradOpDef, Input, OpDef, Output
from oprack.op.grad import EmptyGradOpMaker
from oprack.op.info import build_op_info
from oprack.packs.manager import default_manager
from oprack.testing import FileCase, OpCase, load_cases
from oprack.testing.op_case import inner, random_like
from oprack.testing.review.gradients import lost_outputs
from oprack.types import EMPTY_VAR, VarType
from pack_records import records, with_gradient

CASES = Path(__file__).parent / "data" / "cases"
STEP, TOLERANCE = 1e-6, 1e-5
WIDE = dict.fromkeys((VarType.FP32, VarType.FP16, VarType.BF16), VarType.FP64) | {VarType.COMPLEX64: VarType.COMPLEX128}
DTYPE_ATTRS = ("dtype", "in_dtype", "out_dtype")

# Op of which Paddle has cases -> why none can be differentiated numerically here, and where it is checked instead.
ELSEWHERE = {
    "array_to_lod_tensor": "arrays: op_packages/control_flow/tests",
    **dict.fromkeys(("cholesky", "eig", "eigh", "eigvalsh"), "matrices of a kind: op_packages/linalg/tests"),
    "cvm": "the gradient of show and click is their counts, by which a table grows; its case files compare with Paddle",
    "deformable_conv_v1": "sampling points on grid lines are kinks; its case files compare with Paddle",
    "exponential": "a draw: op_packages/random/tests",
    "gaussian_inplace": "a draw: op_packages/random/tests",
    "gumbel_softmax": "a draw; a record of its gradient op in op_packages/random/tests",
    **dict.fromkeys(
        (
            "fake_channel_wise_quantize_dequantize_abs_max",
            "fake_quantize_dequantize_abs_max",
            "fake_quantize_dequantize_moving_average_abs_max",
        ),
        "steps, whose gradient goes straight through: op_packages/quantization/tests",
    ),
    "increment": "a counter: its gradient op counts back; op_packages/control_flow/tests",
    "lod_tensor_to_array": "arrays: op_packages/control_flow/tests",
    "merge_lod_tensor": "masks and LoD: op_packages/control_flow/tests",
    "mode": "values that move apart are no more the commonest; its case files compare with Paddle",
    "poisson": "a draw: op_packages/random/tests",
    "print": "the identity; op_packages/control_flow/tests",
    "read_from_array": "arrays: op_packages/control_flow/tests",
    "reorder_lod_tensor_by_rank": "rank tables: op_packages/control_flow/tests",
    "rnn_memory_helper": "the identity; op_packages/control_flow/tests",
    "rrelu": "random slopes: its case files fix them",
    "select_input": "branches: op_packages/control_flow/tests",
    "select_output": "branches: op_packages/control_flow/tests",
    "shrink_rnn_memory": "rank tables: op_packages/control_flow/tests",
    "shuffle_batch": "a draw: op_packages/random/tests",
    "shuffle_channel": "Paddle's gradient is of another permutation, a limitation in op_packages/nn/tests",
    "split_lod_tensor": "masks and LoD: op_packages/control_flow/tests",
    "tensor_array_to_tensor": "arrays: op_packages/control_flow/tests",
    "uniform_random_inplace": "a draw: op_packages/random/tests",
    "while": "blocks: op_packages/control_flow/tests",
    "write_to_array": "arrays: op_packages/control_flow/tests",
    "yolov3_loss": "which box is the best match is a kink; its case files compare with Paddle",
}


def _differentiable() -> list[str]:
    """Ops with a gradient of their own, gradient ops left out: they are what is checked."""
    manager = default_manager()
    found = []
    for op_type in manager.op_types():
        maker = manager.op_info(op_type).grad_op_maker
        if maker is not None and not isinstance(maker, EmptyGradOpMaker) and "_grad" not in op_type:
            found.append(op_type)
    return found


def _files(op_type: str) -> list[Path]:
    return [f for f in (CASES / f"{op_type}.npz", CASES / "legacy_1_8_5" / f"{op_type}.npz") if f.exists()]


def has_cases(op_type: str) -> bool:
    """Whether anything was recorded of the op; an op that Paddle does not have is checked by its pack's records."""
    return bool(_files(op_type))


def _cases(op_type: str) -> list[FileCase]:
    """Cases whose gradient is smooth and deterministic, with tensor inputs alone."""
    files = _files(op_type)
    manager = default_manager()
    return [
        case
        for file in files
        for case in load_cases(file)
        if case.has("gradient")
        and not case.stochastic
        and all(manager.has_op(t) for t in case.op_types("forward"))
        and all(isinstance(v, LoDTensor) for v in case.feeds.values())
        and all(w.get("numeric_check") != "differs" for w in case.header["grad"]["wrt"])
    ]


def _wide(value: LoDTensor) -> LoDTensor:
    if value.dtype in ("float32", "float16", "bfloat16"):
        return LoDTensor(value.array.astype(np.float64), value.lod, check=False)
    if value.dtype == "complex64":
        return LoDTensor(value.array.astype(np.complex128), value.lod, check=False)
    return value


def _wide_program(case: FileCase) -> Program:
    program = case.program("forward")
    for var in program.list_vars():
        var.stop_gradient = False
        var.dtype = WIDE.get(var.dtype, var.dtype)
    for op in program.global_block().ops:
        for attr in DTYPE_ATTRS:
            if op.attrs.get(attr) in WIDE:
                op.set_attr(attr, int(WIDE[op.attrs[attr]]))
    return program


def _results(program: Program, op_type: str) -> list[str]:
    """Floating outputs of the ops of a type that are results, and do not say that no gradient flows back from them."""
    slots = default_manager().op_info(op_type).proto.outputs
    wanted = [s.name for s in slots.values() if not (s.intermediate or s.extra or s.stop_gradient)]
    block = program.global_block()
    names = [n for op in block.ops if op.type == op_type for slot in wanted for n in op.output(slot)]
    floats = (VarType.FP64, VarType.COMPLEX128)
    return [n for n in names if n != EMPTY_VAR and block.var(n).dtype in floats]


class _Problem:
    """A case as a scalar function of its inputs: the sum of outputs times cotangents.

    All floating results of the op are taken, those too of which Paddle's gradient op reads no gradient.
    """

    def __init__(self, case: FileCase) -> None:
        grad = case.header["grad"]
        self.case = case
        self.program = _wide_program(case)
        self.inputs = {n: _wide(v) for n, v in case.inputs("gradient").items()}
        self.targets = {c["target"]: self.inputs[c["var"]] for c in grad["cotangents"]}
        self.wrt = [w["wrt"] for w in grad["wrt"]]
        self._cotangents = [c["var"] for c in grad["cotangents"]]
        self._add_results([n for n in _results(self.program, case.header["op_type"]) if n not in self.targets])

    def _add_results(self, names: list[str]) -> None:
        rng = np.random.default_rng(1)
        for name in names:
            try:
                value = self._run(self.program, self.inputs, [name])[0]
            except FetchNameError:
                continue  # its block did not run
            if isinstance(value, LoDTensor) and value.dtype in ("float64", "complex128"):
                cotangent = f"{name}@COTANGENT"
                self._cotangents.append(cotangent)
                self.inputs[cotangent] = self.targets[name] = LoDTensor(random_like(value.array, rng), value.lod)

    def _run(self, program: Program, inputs: dict[str, LoDTensor], fetch: list[str]) -> list[Any]:
        scope, feed = Scope(), {}
        for name, value in inputs.items():
            if name in self.case.persistable:
                scope.var(name).set(LoDTensor(value.array.copy(), value.lod, check=False))
            elif program.global_block().has_var(name):
                feed[name] = value
        return Executor(prepared=False).run(program, feed, fetch, scope, return_numpy=False)

    def value(self, moved: dict[str, LoDTensor]) -> float:
        outputs = self._run(self.program, self.inputs | moved, list(self.targets))
        pairs = zip(outputs, self.targets.values(), strict=True)
        return sum(inner(out.array, cotangent.array) for out, cotangent in pairs)

    def gradients(self) -> dict[str, np.ndarray]:
        program = self.program.clone()
        block = program.global_block()
        for name in self._cotangents:
            value = self.inputs[name]
            block.create_var(name, dtype=value.dtype, shape=value.shape, lod_level=len(value.lod))
        names = gradients(list(self.targets), self.wrt, self._cotangents, block=block)
        got = self._run(program, self.inputs, [n for n in names if n])
        dense = iter(v.to_dense() if isinstance(v, SelectedRows) else v.array for v in got)
        return {var: next(dense) for var, name in zip(self.wrt, names, strict=True) if name}


def slope_error(problem: Any, var: str, gradient: np.ndarray, rng: np.random.Generator) -> float:
    """Relative error of an input's gradient along a random direction."""
    x = problem.inputs[var]
    direction = random_like(x.array, rng)
    ends = [LoDTensor(x.array + s * STEP * direction, x.lod, check=False) for s in (1, -1)]
    numeric = (problem.value({var: ends[0]}) - problem.value({var: ends[1]})) / (2 * STEP)
    terms = (gradient.conj() * direction).real
    # relative to the terms where they cancel
    scale = max(1.0, abs(numeric), 1e-3 * float(np.abs(terms).sum()))
    return abs(numeric - float(terms.sum())) / scale


def _worst(case: FileCase) -> float:
    """Largest relative error over the inputs."""
    problem, rng, worst = _Problem(case), np.random.default_rng(0), 0.0
    for var, gradient in problem.gradients().items():
        x = problem.inputs[var]
        if x.dtype not in ("float64", "complex128") or not x.array.size:
            continue
        worst = max(worst, slope_error(problem, var, gradient, rng))
    return worst


@pytest.mark.parametrize("op_type", [t for t in _differentiable() if t not in ELSEWHERE])
def test_gradient_is_the_slope(op_type: str) -> None:
    """Some case of the op agrees, those at kinks may not; or, where no case can tell, all records of its pack."""
    cases = _cases(op_type)
    if not cases:
        own = with_gradient(op_type)
        assert own, f"{op_type}: nothing checks its gradient; add an OpCase with grads=[...] to its pack's tests/cases"
        reasons = [reason for record in own for reason in record.check_gradient()]
        assert not reasons, "; ".join(reasons)
        return
    errors = {}
    for case in cases:
        errors[case.id] = _worst(case)
        if errors[case.id] < TOLERANCE:
            return
    raise AssertionError(f"{op_type}: relative errors {errors}")


def test_an_op_without_case_files_is_checked_by_the_records_of_its_pack(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(globals(), "CASES", tmp_path)
    recorded = {case.op for case in records() if case.grads}.intersection(_differentiable())
    assert {"gather", "scale", "swish"} <= recorded
    for op_type in recorded:
        test_gradient_is_the_slope(op_type)
    with pytest.raises(AssertionError, match=r"relu: nothing checks its gradient; add an OpCase with grads="):
        test_gradient_is_the_slope("relu")
    wrong = OpCase("square", {"X": np.ones((2, 3))}, grads=["X"])
    monkeypatch.setattr(OpCase, "check_gradient", lambda self: [f"{self.id}: off"])
    monkeypatch.setitem(globals(), "with_gradient", lambda op_type: [wrong])
    with pytest.raises(AssertionError, match="square: off"):
        test_gradient_is_the_slope("square")


def test_every_floating_result_has_a_gradient_or_says_that_it_has_none() -> None:
    manager = default_manager()
    lost = {t: lost_outputs(manager.op_info(t)) for t in manager.op_types()}
    assert {t: slots for t, slots in lost.items() if slots} == {}


def test_a_result_without_gradient_is_found() -> None:
    class Halves(OpDef, type="halves"):
        """$$Low = X / 2, High = X / 2$$"""

        X = Input("Any tensor.")
        Low = Output("Half of X.")
        High = Output("Half of X.")
        Peak = Output("The largest element.", stop_gradient=True)

    class HalvesGrad(GradOpDef, of=Halves, reads="Low@GRAD", like="Low@GRAD"):
        """Reads the gradient of one half alone."""

    assert lost_outputs(build_op_info(Halves, "test")) == ["High"]


def test_the_exceptions_are_differentiable_ops() -> None:
    assert sorted(set(ELSEWHERE) - set(_differentiable())) == []

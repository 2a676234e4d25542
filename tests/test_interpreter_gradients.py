"""Every differentiable op called eagerly: its gradient against central differences, at float64.

Programs and inputs are those of tests/test_numeric_gradients.py; each of their ops is a recorded call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from eager_programs import run_eagerly
from oprack import LoDTensor, Tensor, to_tensor
from oprack.op.grad import EmptyGradOpMaker
from oprack.packs.manager import default_manager
from oprack.testing import FileCase
from oprack.testing.op_case import inner
from test_numeric_gradients import ELSEWHERE, STEP, TOLERANCE, _cases, _differentiable, _Problem, has_cases, slope_error

# Ops that run blocks of a program: Python's own control flow stands in their place.
WITH_BLOCKS = ("conditional_block", "recurrent")


class _Eager:
    """A problem whose ops are called one by one."""

    def __init__(self, case: FileCase) -> None:
        problem = _Problem(case)
        self.program, self.inputs = problem.program, problem.inputs
        self.targets, self.wrt = problem.targets, problem.wrt

    def run(self, moved: dict[str, LoDTensor], record: bool) -> tuple[dict[str, Tensor], dict[str, Any]]:
        given = {n: to_tensor(v) for n, v in (self.inputs | moved).items()}
        for name in self.wrt if record else ():
            if name in given and given[name].dtype in ("float64", "complex128"):
                given[name].requires_grad = True
        return given, run_eagerly(self.program, given)

    def value(self, moved: dict[str, LoDTensor]) -> float:
        _, found = self.run(moved, record=False)
        return sum(inner(found[n].numpy(), c.array) for n, c in self.targets.items())

    def gradients(self, moved: dict[str, LoDTensor] | None = None, create_graph: bool = False) -> Any:
        """Gradients by input: arrays, or (tensors, inputs) when they are recorded."""
        given, found = self.run(moved or {}, record=True)
        wrt = [n for n in self.wrt if n in given and given[n].requires_grad]
        outputs = [n for n in self.targets if found[n].requires_grad]
        gradients = oprack.grad(
            [found[n] for n in outputs],
            [given[n] for n in wrt],
            [to_tensor(self.targets[n]) for n in outputs],
            allow_unused=True,
            create_graph=create_graph,
        )
        named = {n: g for n, g in zip(wrt, gradients, strict=True) if g is not None}
        return (named, given) if create_graph else {n: g.numpy() for n, g in named.items()}


def _worst(case: FileCase) -> float:
    problem, rng, worst = _Eager(case), np.random.default_rng(0), 0.0
    gradients = problem.gradients()
    assert gradients, f"{case.id}: no gradient"
    for var, gradient in gradients.items():
        x = problem.inputs[var]
        if not x.array.size:
            continue
        worst = max(worst, slope_error(problem, var, gradient, rng))
    return worst


@pytest.mark.parametrize(
    "op_type", [t for t in _differentiable() if t not in (*ELSEWHERE, *WITH_BLOCKS) and has_cases(t)]
)
def test_gradient_is_the_slope(op_type: str) -> None:
    """Some case of the op agrees; those at kinks may not."""
    errors = {}
    for case in _cases(op_type):
        errors[case.id] = _worst(case)
        if errors[case.id] < TOLERANCE:
            return
    if not errors:
        pytest.skip("no recorded case can tell; test_numeric_gradients checks the records of its pack")
    raise AssertionError(f"{op_type}: relative errors {errors}")


def _twice_differentiable() -> list[str]:
    manager = default_manager()
    found = []
    for op_type in _differentiable():
        grad_type = f"{op_type}_grad"
        maker = manager.op_info(grad_type).grad_op_maker if manager.has_op(grad_type) else None
        if maker is not None and not isinstance(maker, EmptyGradOpMaker):
            found.append(op_type)
    return found


def _second_order(case: FileCase) -> float:
    """Relative error of the change of the gradient along a direction."""
    problem, rng = _Eager(case), np.random.default_rng(1)
    gradients, given = problem.gradients(create_graph=True)
    weights = {n: rng.standard_normal(g.shape) for n, g in gradients.items()}
    xs = [n for n in gradients if given[n].size]
    directions = {n: rng.standard_normal(given[n].shape) for n in xs}
    recorded = [n for n, g in gradients.items() if g.requires_grad]
    if not recorded:
        return 0.0  # linear in all inputs
    second = oprack.grad(
        [gradients[n] for n in recorded],
        [given[n] for n in xs],
        [to_tensor(weights[n]) for n in recorded],
        allow_unused=True,
    )
    analytic = sum(float((g.numpy() * directions[n]).sum()) for n, g in zip(xs, second, strict=True) if g is not None)
    ends = []
    for sign in (1, -1):
        moved = {
            n: LoDTensor(problem.inputs[n].array + sign * STEP * directions[n], problem.inputs[n].lod, check=False)
            for n in xs
        }
        there = problem.gradients(moved)
        ends.append(sum(float((there[n] * weights[n]).sum()) for n in recorded))
    numeric = (ends[0] - ends[1]) / (2 * STEP)
    return abs(analytic - numeric) / max(1.0, abs(numeric))


@pytest.mark.parametrize(
    "op_type", [t for t in _twice_differentiable() if t not in (*ELSEWHERE, *WITH_BLOCKS) and has_cases(t)]
)
def test_gradients_of_gradients_are_slopes(op_type: str) -> None:
    """Some case of the op agrees; those at kinks may not."""
    errors = {}
    for case in _cases(op_type):
        errors[case.id] = _second_order(case)
        if errors[case.id] < 10 * TOLERANCE:
            return
    raise AssertionError(f"{op_type}: relative errors {errors}")

"""Schedulers: values of Paddle 2.6.2 (data/lr_schedules.json), their state, and how a run gets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import Executor, Program, Scope, layers, optimizer, program_guard, unique_name
from oprack.errors import InvalidArgumentError
from oprack.optimizer import lr

RECORDED = json.loads((Path(__file__).parent / "data/lr_schedules.json").read_text())
CASES = [(c["case"], c["values"]) for c in RECORDED["cases"]]
IDS = [f"{i}-{case[0]}" for i, (case, _) in enumerate(CASES)]


def _made(case: list[Any]) -> Any:
    arguments = dict(case[1])
    if "lr_lambda" in arguments:
        arguments["lr_lambda"] = lambda n: 0.95**n
    if isinstance(arguments.get("learning_rate"), list):
        arguments["learning_rate"] = _made(arguments["learning_rate"])
    return getattr(lr, case[0])(**arguments)


def _step(scheduler: Any, n: int) -> None:
    if isinstance(scheduler, lr.ReduceOnPlateau):
        scheduler.step(RECORDED["metrics"][n])
    else:
        scheduler.step()


@pytest.mark.parametrize(("case", "values"), CASES, ids=IDS)
def test_values_are_paddles(case: list[Any], values: list[float]) -> None:
    scheduler, got = _made(case), []
    for n in range(len(values)):
        got.append(scheduler())
        _step(scheduler, n)
    np.testing.assert_allclose(got, values, rtol=1e-9, atol=1e-15)
    assert len(set(values)) > 1, "a constant would test nothing"


@pytest.mark.parametrize(("case", "values"), CASES, ids=IDS)
def test_state(case: list[Any], values: list[float]) -> None:
    """A new scheduler goes on exactly where the state was taken; the state is JSON."""
    scheduler = _made(case)
    for n in range(11):
        _step(scheduler, n)
    state = json.loads(json.dumps(scheduler.state_dict()))
    other = _made(case)
    other.set_state_dict(state)
    for n in range(11, 30):
        assert other() == scheduler()
        _step(scheduler, n)
        _step(other, n)
    with pytest.raises(InvalidArgumentError, match="the state has no "):
        other.set_state_dict({})


def test_step_to_an_epoch() -> None:
    scheduler = lr.ExponentialDecay(0.5, 0.9)
    scheduler.step(4)
    assert scheduler() == 0.5 * 0.9**4
    assert lr.ExponentialDecay(0.5, 0.9, last_epoch=3)() == 0.5 * 0.9**4


@pytest.mark.parametrize("prepared", [False, True])
def test_runs_write_it(prepared: bool) -> None:
    """Every run puts the present value into the learning rate's variable; startup puts the first one there."""
    main, startup = Program(), Program()
    scheduler = lr.PiecewiseDecay([1, 2], [0.5, 0.25, 0.125])
    with unique_name.guard(), program_guard(main, startup):
        w = layers.LayerHelper("model").create_parameter("w", [])
        w.desc.shape = ()
        optimizer.SGD(scheduler).minimize(w * 2.0)
    exe, scope = Executor(prepared=prepared), Scope()
    exe.run(startup, scope=scope)

    def held(name: str) -> float:
        return float(scope.get_var(name).get().array.item())

    assert held("learning_rate_0") == 0.5
    value = held("w")
    for rate in (0.5, 0.25, 0.125, 0.125):
        exe.run(main, scope=scope)
        assert held("learning_rate_0") == rate
        value -= 2 * rate
        assert held("w") == pytest.approx(value, rel=1e-6)
        scheduler.step()
    assert main.clone().schedules == main.schedules
    assert main.clone(for_test=True).schedules == {}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lr.StepDecay("0.1", 3), "StepDecay: learning_rate is '0.1'; expected a number"),
        (lambda: lr.StepDecay(-1.0, 3), "learning_rate is -1.0; expected a finite number of at least 0"),
        (lambda: lr.StepDecay(0.1, 0), "step_size is 0; expected a number greater than 0"),
        (lambda: lr.PiecewiseDecay([1, 2], [0.1, 0.2]), "expected ascending boundaries and one value more"),
        (lambda: lr.MultiStepDecay(0.1, [3, 2]), r"milestones are \[3, 2\]; expected steps in ascending order"),
        (lambda: lr.LambdaDecay(0.1, 0.5), "lr_lambda is 0.5; expected a function of the step"),
        (lambda: lr.LinearWarmup(0.1, 3, 0.2, 0.1), "start_lr 0.2 is greater than end_lr 0.1"),
        (lambda: lr.ReduceOnPlateau(0.1, mode="best"), "mode is 'best'"),
        (lambda: lr.ReduceOnPlateau(0.1, factor=1.0), "factor is 1.0; expected less than 1"),
        (lambda: lr.PolynomialDecay(0.1, -3), "decay_steps is -3"),
    ],
)
def test_refusals(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()

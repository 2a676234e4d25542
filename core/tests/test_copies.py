"""What can be pickled and copied, and what is said of what can't."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.errors import PreconditionNotMetError, UnimplementedError
from oprack.io import save_inference_model
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import Scope

X = np.array([[1.0, -2.0]], np.float32)
COPIES = {"pickle": lambda v: pickle.loads(pickle.dumps(v)), "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("how", list(COPIES))
def test_tensors_are_copied_with_what_they_are(rack: PackManager, how: str) -> None:
    x = oprack.to_tensor(X, lod=[[0, 1]], requires_grad=True, name="x")
    oprack.functional.double(x).backward(oprack.to_tensor(X))
    found = COPIES[how](x)
    assert (found.numpy() == X).all() and found.lod == [[0, 1]] and found.name == "x"
    assert found.requires_grad and found.is_leaf and found.grad is None and found._meta is x._meta
    oprack.functional.double(found).backward(oprack.to_tensor(X))
    assert (found.grad.numpy() == 2 * X).all()
    found.set_value(3 * X)
    assert (x.numpy() == X).all()


@pytest.mark.parametrize("how", list(COPIES))
def test_parameters_stay_parameters(rack: PackManager, how: str) -> None:
    w = oprack.to_tensor(X)
    w.__class__ = oprack.Parameter
    w.attr, w.requires_grad = oprack.ParamAttr(name="w", learning_rate=0.5), True
    found = COPIES[how](w)
    assert type(found) is oprack.Parameter and found.attr.learning_rate == 0.5 and found.trainable


@pytest.mark.parametrize("how", list(COPIES))
def test_results_of_recorded_calls_are_not_copied(rack: PackManager, how: str) -> None:
    y = oprack.functional.double(oprack.to_tensor(X, requires_grad=True))
    with pytest.raises(PreconditionNotMetError, match=r"the result of a recorded call; copy its detach\(\)"):
        COPIES[how](y)


@pytest.mark.parametrize("how", list(COPIES))
def test_executors_and_predictors_say_what_to_do_instead(
    build: Callable[..., Program], tmp_path: Any, how: str
) -> None:
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"})])
    save_inference_model(tmp_path / "m", program, ["x"], ["y"], Scope())
    config = oprack.inference.Config(f"{tmp_path}/m.pdmodel", f"{tmp_path}/m.pdiparams")
    predictor = oprack.inference.create_predictor(config)
    with pytest.raises(UnimplementedError, match=r"Executor can't be pickled.*executor\.clone\(\)"):
        COPIES[how](Executor())
    with pytest.raises(UnimplementedError, match=r"a Predictor can't be pickled.*predictor\.clone\(\)"):
        COPIES[how](predictor)
    assert (copy.copy(predictor).run([X])[0] == 2 * X).all()  # type: ignore[index]
    assert (COPIES[how](program).serialize()) == program.serialize()

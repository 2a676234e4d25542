"""Denormal numbers count as 0 in runs of predictors, as in those of Paddle 2.6.2 (1e-38 * 0.1 is 0 in both engines).

Its executors and eager calls keep them, and so do ours.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack.errors import OpError
from oprack.inference import Config, Predictor, create_predictor
from oprack.io import save_inference_model
from oprack.program import Program
from oprack.python.implementation import floating_point_state
from oprack.runtime import Profiler
from oprack.tensor import Scope

pytestmark = pytest.mark.skipif(floating_point_state() is None, reason="denormal numbers are kept here")
WEIGHT = np.ones((600, 2), np.float32)


def in_numpy() -> float:
    return float((np.full(3, 1e-38, np.float32) * np.float32(0.1))[1])


def model(build: Callable[..., Program], folder: Path, ops: list[Any], **feeds: np.ndarray) -> Predictor:
    program, scope = build({**feeds, "w": WEIGHT}, ops), Scope()
    var = program.global_block().vars["w"]
    var.shape, var.persistable = WEIGHT.shape, True
    scope.var("w").set(WEIGHT)
    save_inference_model(folder / "m", program, list(feeds), ["y"], scope)
    config = Config(f"{folder / 'm'}.pdmodel", f"{folder / 'm'}.pdiparams")
    return create_predictor(config)


@pytest.mark.parametrize("way", ["run", "call", "clone", "handles", "profiled"])
def test_runs_of_predictors_flush(build: Callable[..., Program], tmp_path: Path, way: str) -> None:
    x = np.full((2, 3), 1e-38, np.float32)
    predictor = model(build, tmp_path, [("double", {"X": "x"}, {"Out": "y"}, {"factor": 0.1})], x=x)
    predictor = predictor.clone() if way == "clone" else predictor
    for _ in range(4):
        if way == "call":
            (y,) = predictor.call([x])
        elif way == "handles":
            predictor.get_input_handle("x").copy_from_cpu(x)
            predictor.run()
            y = predictor.get_output_handle("y").copy_to_cpu()
        elif way == "profiled":
            with Profiler():
                (y,) = predictor.run([x])
        else:
            (y,) = predictor.run([x])
        assert (y == 0).all()
        assert in_numpy() > 0, "the thread's own calculations keep them"


def test_a_run_that_fails_leaves_the_thread_as_it_was(build: Callable[..., Program], tmp_path: Path) -> None:
    ids = np.array([1, 2])
    predictor = model(build, tmp_path, [("pick", {"Ids": "ids", "W": "w"}, {"Out": "y"})], ids=ids)
    for _ in range(4):
        assert (predictor.run([ids])[0] == WEIGHT[ids]).all()
        with pytest.raises(OpError):
            predictor.run([np.array([1, 900])])
        assert in_numpy() > 0

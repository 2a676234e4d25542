"""Models for tests of Config.set_optim_cache_dir, and what counts how often passes run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import Program
from oprack.inference import Config, create_predictor
from oprack.inference.optim_cache import OptimCache
from oprack.io import save_inference_model
from oprack.ir.models import optimize_model
from oprack.packs.installed import discovery
from oprack.tensor import Scope

X = np.array([[1, -2], [-3, 4]], np.float32)


class Passes:
    """Counts how often passes run over a model."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.runs += 1
        return self.optimize(*args, **kwargs)

    optimize = staticmethod(optimize_model)


def counted(monkeypatch: pytest.MonkeyPatch) -> Passes:
    """Passes of predictors, counted from now on."""
    found = Passes()
    monkeypatch.setattr("oprack.ir.models.optimize_model", found)
    # the files of this checkout may have been written a moment ago
    monkeypatch.setattr(discovery, "changed_since_start", lambda files: "")
    return found


def save(folder: Path, factor: float) -> Path:
    """A model of y = relu(x w) + 1; returns its path without suffix."""
    program, scope = Program(), Scope()
    block = program.global_block()
    for name, shape in (("x", [-1, 2]), ("h", [-1, 3]), ("y", [-1, 3])):
        block.create_var(name, dtype="float32", shape=shape)
    block.create_var("w", dtype="float32", shape=[2, 3], persistable=True)
    block.append_op("matmul_v2", {"X": "x", "Y": "w"}, {"Out": "h"})
    block.append_op("relu", {"X": "h"}, {"Out": "r"})
    block.create_var("r", dtype="float32", shape=[-1, 3])
    block.append_op("scale", {"X": "r"}, {"Out": "y"}, {"bias": 1.0})
    scope.var("w").set(weights(factor))
    folder.mkdir(exist_ok=True)
    save_inference_model(folder / "m", program, ["x"], ["y"], scope)
    return folder / "m"


def weights(factor: float) -> np.ndarray:
    return np.arange(6, dtype=np.float32).reshape(2, 3) * np.float32(factor)


def expected(factor: float, x: np.ndarray = X) -> np.ndarray:
    return np.maximum(x @ weights(factor), 0) + 1


def config(model: Path, cache: OptimCache | None = None) -> Config:
    found = Config(f"{model}.pdmodel", f"{model}.pdiparams")
    if cache is not None:
        found.set_optim_cache_dir(cache.directory)
    return found


def answer(config: Config, x: np.ndarray = X) -> np.ndarray:
    (y,) = create_predictor(config).run([x])
    return y


def only(cache: OptimCache) -> Path:
    ((path, _, _),) = cache.entries()
    return path

"""Whole models at place cuda over strict arrays, and the script that reports on a machine with a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.io import load_inference_model
from oprack_cuda.testing import StrictArray, strict_executor

MODELS = Path(__file__).parents[3] / "tests/data/small_models"


@pytest.mark.parametrize("name", sorted(f.stem for f in MODELS.glob("*.npz")))
@pytest.mark.parametrize("excluded", [(), ("cuda",)], ids=["sources in CUDA C++", "plain"])
def test_small_models_give_paddles_numbers(name: str, excluded: Any, emulated: None) -> None:
    scope = oprack.Scope()
    model, arrays = load_inference_model(MODELS / name, scope), np.load(MODELS / f"{name}.npz")
    feed = {k.removeprefix("in/"): arrays[k] for k in arrays.files if k.startswith("in/")}
    executor = strict_executor(excluded_libraries=excluded)
    for _ in range(2):  # traced, then generated code
        outs = executor.run(model.program, feed, model.fetch_names, scope)
        for i, out in enumerate(outs):
            np.testing.assert_allclose(out, arrays[f"out{i}"], rtol=1e-4, atol=1e-5)
    assert {type(scope.find_var(n).get().array) for n in scope.local_var_names()} == {StrictArray}


def test_report_of_a_machine(tmp_path: Path, emulated: None) -> None:
    script = Path(__file__).with_name("gpu_report.py")
    command = [sys.executable, str(script), "--strict", "--ops", "gelu", "--rounds", "1", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert {name: found["failed"] for name, found in report["conformance"].items()} == {
        "all": {},
        "without cudnn": {},
        "plain": {},
    }
    assert report["conformance"]["all"]["passed"] > 10 and report["recorded"]["differ"] == {}
    assert "| gelu | " in (tmp_path / "report.md").read_text("utf-8")

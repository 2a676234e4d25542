"""Training scripts written for Paddle 2.6.2 run unedited; their losses are those that Paddle printed (losses.json)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
LOSSES = json.loads((HERE / "losses.json").read_text())


def ran(script: str, **variables: str) -> str:
    command = [sys.executable, "-m", "oprack_paddle", str(HERE / "scripts" / f"{script}.py")]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **variables})
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.parametrize("script", ["lstm_amp", "static_while", "model_fit", "loader_workers", "layers_in_program"])
def test_losses_are_those_of_paddle(script):
    losses = json.loads(ran(script).splitlines()[-1])
    assert len(losses) == len(LOSSES[script])
    np.testing.assert_allclose(losses, LOSSES[script], rtol=0, atol=1e-4)


def test_losses_of_two_ranks_are_those_of_paddle(tmp_path):
    pytest.importorskip("mpi4py")
    ran("data_parallel", LOSSES=str(tmp_path / "losses.json"))
    losses = json.loads((tmp_path / "losses.json").read_text())
    np.testing.assert_allclose(losses, LOSSES["data_parallel"], rtol=0, atol=1e-4)


def test_methods_of_variables_give_what_paddle_gives():
    """data/variable_methods.txt is what the script printed under Paddle 2.6.2."""
    assert ran("variable_methods") == (HERE / "data" / "variable_methods.txt").read_text()


def test_setitem_assigns_as_numpy_does():
    assert ran("static_setitem").strip() == "done"

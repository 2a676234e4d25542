"""Layers of paddle.nn give what Paddle 2.6.2 gives for the same weights: layers.npz, written by layer_calls.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent
Layers = tuple[dict[str, Any], dict[str, np.ndarray]]


def read(path: Path) -> Layers:
    """Names and shapes of parameters, and arrays, of each call."""
    with np.load(path) as found:
        arrays = {n: found[n] for n in found.files if n != "parameters"}
        return json.loads(str(found["parameters"])), arrays


PADDLE = read(HERE / "layers.npz")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Layers:
    out = tmp_path_factory.mktemp("layers") / "ours.npz"
    command = [sys.executable, "-m", "oprack_paddle", "--force", str(HERE / "layer_calls.py"), str(out)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ))
    assert found.returncode == 0, found.stderr
    return read(out)


@pytest.mark.parametrize("call", PADDLE[0])
def test_a_layer_gives_what_paddle_gives(call: str, ours: Layers) -> None:
    assert ours[0][call] == PADDLE[0][call]
    number = call.partition(" ")[0]
    wanted = {n: a for n, a in PADDLE[1].items() if n.startswith(f"{number}_")}
    found = {n: a for n, a in ours[1].items() if n.startswith(f"{number}_")}
    assert {n: (a.shape, a.dtype) for n, a in found.items()} == {n: (a.shape, a.dtype) for n, a in wanted.items()}
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=2e-4, atol=2e-5)

"""Nets of paddle.vision.models give what Paddle 2.6.2 gives for the same weights: nets.npz, written by net_calls.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent


def read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Digests of names and shapes of parameters, and scores."""
    with np.load(path) as found:
        return json.loads(str(found["digests"])), {n: found[n] for n in found.files if n != "digests"}


PADDLE = read(HERE / "nets.npz")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    out = tmp_path_factory.mktemp("nets") / "ours.npz"
    command = [sys.executable, "-m", "oprack_paddle", "--force", str(HERE / "net_calls.py"), str(out)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ))
    assert found.returncode == 0, found.stderr
    return read(out)


@pytest.mark.parametrize("net", PADDLE[0])
def test_a_net_gives_what_paddle_gives(net: str, ours: tuple[dict[str, str], dict[str, np.ndarray]]) -> None:
    assert ours[0][net] == PADDLE[0][net]
    for name, scores in PADDLE[1].items():
        if name.startswith(f"{net} "):
            np.testing.assert_allclose(ours[1][name], scores, rtol=0, atol=2e-5 * abs(scores).max())

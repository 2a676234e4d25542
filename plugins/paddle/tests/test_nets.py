"""Nets of paddle.vision.models give what Paddle 2.6.2 gives for the same weights: nets.npz, written by net_calls.py."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from served_script import served

HERE = Path(__file__).parent


def read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Digests of names and shapes of parameters, and scores."""
    with np.load(path) as found:
        return json.loads(str(found["digests"])), {n: found[n] for n in found.files if n != "digests"}


PADDLE = read(HERE / "nets.npz")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    return read(served(HERE / "net_calls.py", tmp_path_factory.mktemp("nets") / "ours.npz", 300))


@pytest.mark.parametrize("net", PADDLE[0])
def test_a_net_gives_what_paddle_gives(net: str, ours: tuple[dict[str, str], dict[str, np.ndarray]]) -> None:
    assert ours[0][net] == PADDLE[0][net]
    for name, scores in PADDLE[1].items():
        if name.startswith(f"{net} "):
            np.testing.assert_allclose(ours[1][name], scores, rtol=0, atol=2e-5 * abs(scores).max())

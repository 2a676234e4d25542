"""Layers of paddle.nn give what Paddle 2.6.2 gives for the same weights: layers.npz, written by layer_calls.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served_script import served

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
    return read(served(HERE / "layer_calls.py", tmp_path_factory.mktemp("layers") / "ours.npz", 120))


@pytest.mark.parametrize("call", PADDLE[0])
def test_a_layer_gives_what_paddle_gives(call: str, ours: Layers) -> None:
    assert ours[0][call] == PADDLE[0][call]
    number = call.partition(" ")[0]
    wanted = {n: a for n, a in PADDLE[1].items() if n.startswith(f"{number}_")}
    found = {n: a for n, a in ours[1].items() if n.startswith(f"{number}_")}
    assert {n: (a.shape, a.dtype) for n, a in found.items()} == {n: (a.shape, a.dtype) for n, a in wanted.items()}
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=2e-4, atol=2e-5)


KINDS = """
import oprack, oprack_paddle as paddle
nn, opt = paddle.nn, paddle.optimizer

class Net(nn.Layer):
    def __init__(self):
        super().__init__("net")
        self.one = nn.Linear(2, 3)
        self.two = nn.SimpleRNN(3, 4, activation="relu")

net = Net()
adam = opt.Adam(opt.lr.StepDecay(0.1, 3, verbose=True), parameters=net.parameters(), multi_precision=True)
assert net.full_name().startswith("net_"), net.full_name()
assert isinstance(net, nn.Layer) and isinstance(nn.Linear(2, 3), nn.Layer) and issubclass(nn.LSTM, nn.Layer)
assert isinstance(oprack.nn.Linear(2, 3), nn.Linear) and not isinstance(nn.ReLU(), nn.Linear)
assert isinstance(adam, opt.Optimizer) and isinstance(adam.schedule, opt.lr.LRScheduler)
assert isinstance(paddle.vision.models.resnet18().bn1, nn.BatchNorm2D)
print("done")
"""


def test_what_paddle_makes_is_an_instance_of_its_classes() -> None:
    found = subprocess.run([sys.executable, "-c", KINDS], capture_output=True, text=True, timeout=60)
    assert found.stdout.strip() == "done", found.stderr

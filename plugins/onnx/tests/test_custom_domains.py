"""A node of the domain of a pack of others, in a model that PyTorch wrote, before and after the pack is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model

PACK = Path(__file__).parents[3] / "examples" / "packs" / "oprack-audio"
N, HOP = 16, 5
WINDOW = np.hanning(N).astype("float32")

RUN = """
import sys
import numpy as np
from oprack import inference

predictor = inference.create_predictor(inference.Config(sys.argv[1], ""))
np.save(sys.argv[3], predictor.run([np.load(sys.argv[2])])[0])
"""


def by_onnx(file: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("PowerSpectrogram", ["r", "window"], ["y"], domain="oprack-audio", hop=HOP),
    ]
    onnx.save(model(nodes, {"x": [2, 40]}, ["y"], {"window": WINDOW}, domains=["oprack-audio"]), file)


def by_torch(file: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch, whose exporter writes the model, is not installed")

    class PowerSpectrogram(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, window):
            return torch.fft.rfft(x.unfold(-1, N, HOP) * window).abs().square().transpose(-1, -2)

        @staticmethod
        def symbolic(g, x, window):
            return g.op("oprack-audio::PowerSpectrogram", x, window, hop_i=HOP)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("window", torch.from_numpy(WINDOW))

        def forward(self, x):
            return PowerSpectrogram.apply(torch.relu(x), self.window)

    names = {"input_names": ["x"], "output_names": ["y"], "custom_opsets": {"oprack-audio": 1}}
    torch.onnx.export(Net().eval(), (torch.zeros(2, 40),), str(file), dynamo=False, **names)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("make", [by_onnx, by_torch])
def test_a_node_runs_once_its_pack_is_installed(tmp_path, make):
    make(tmp_path / "net.onnx")
    x = np.random.default_rng(0).standard_normal((2, 40)).astype("float32")
    np.save(tmp_path / "x.npy", x)
    command = [sys.executable, "-c", RUN, *(str(tmp_path / n) for n in ("net.onnx", "x.npy", "y.npy"))]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert refused.returncode and "no installed pack has the domain 'oprack-audio'" in refused.stderr, refused.stderr

    site = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(site),
    ]
    subprocess.run([*pip, str(PACK)], check=True, timeout=120, env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    paths = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=os.environ | {"PYTHONPATH": paths}
    )
    assert not done.returncode, done.stderr
    frames = np.lib.stride_tricks.sliding_window_view(np.maximum(x, 0), N, 1)[:, ::HOP] * WINDOW
    want = np.abs(np.fft.rfft(frames)).transpose(0, 2, 1) ** 2
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), want, rtol=1e-4, atol=1e-4)

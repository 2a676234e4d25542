"""cuDNN's kernels over a stand-in for its frontend: graphs get the right dims, strides and padding, and what cuDNN
refuses goes to matrix products. `test_graphs_fit_the_real_frontend` builds them with the real one where it is.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from oprack.packs.manager import default_manager
from oprack.testing.cases import load_cases
from oprack.testing.conformance import STAGES
from oprack.testing.runner import differences, run_case
from oprack_cuda import dnn
from oprack_cuda.dnn import Convolution, Operand
from oprack_cuda.library import CUDA
from oprack_cuda.testing import frontend as stand_in
from oprack_cuda.testing import strict_executor

CASES = Path(__file__).parents[3] / "tests/data/cases"
OPS = ("conv2d", "depthwise_conv2d", "conv3d", "conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose")


@pytest.fixture
def frontend(monkeypatch):
    """The stand-in in the place of the frontend, with nothing built."""
    monkeypatch.setattr(dnn.CUDNN, "usable", lambda: True)
    monkeypatch.setattr(dnn.CUDNN, "cudnn", stand_in)
    monkeypatch.setattr(dnn, "_THREAD", dnn._Thread())
    stand_in.executed.clear()
    return stand_in


@pytest.mark.parametrize("op", OPS)
def test_cases(op, frontend):
    files = sorted(CASES.rglob(f"{op}.npz"))
    found = []
    for case in (c for f in files for c in load_cases(f)):
        for stage in STAGES:
            if case.has(stage):
                reasons = differences(case, stage, run_case(case, stage, strict_executor(prepared=False)))
                found += [f"{case.id} {stage}: {r}" for r in reasons]
    assert files and not found, "\n".join(found)
    assert {"conv_fprop", "conv_dgrad", "conv_wgrad"} <= set(stand_in.executed)
    assert set(stand_in.streams) == {0}


def test_refused_geometries_are_remembered_with_the_reason(frontend, monkeypatch):
    monkeypatch.setattr(frontend, "refused_ranks", {5})
    for case in load_cases(CASES / "conv3d.npz"):
        assert not differences(case, "forward", run_case(case, "forward", strict_executor(prepared=False)))
    reasons = dnn.refused()
    assert not frontend.executed
    assert reasons and set(reasons.values()) == {"RuntimeError: no engine for this"}


def test_tf32_is_off_until_it_is_allowed(frontend, monkeypatch):
    key = _geometry("conv_fprop")
    assert dnn.Graph(key, object())._graph.deselected == ["NONDETERMINISTIC", "TENSOR_CORE"]
    monkeypatch.setattr(dnn.CUDNN, "tf32", False)
    dnn.allow_tf32(True)
    assert dnn.Graph(key, object())._graph.deselected == ["NONDETERMINISTIC"]


def test_kernels_are_listed_with_the_reason_why_they_cant_run():
    kernels = {k.library: k for k in default_manager().kernel_map("conv2d", "cuda")}
    assert {"plain", "cudnn"} <= set(kernels)
    if not CUDA.usable():
        assert kernels["cudnn"].when.text == f"cuDNN (not here: {CUDA.problem})"


def _geometry(name, dtype="float32"):
    x = Operand((2, 4, 9, 8), (4 * 9 * 8, 1, 8 * 4, 4))  # channels last
    w, y = Operand((6, 2, 3, 3), (18, 9, 3, 1)), Operand((2, 6, 5, 9), (6 * 5 * 9, 45, 9, 1))
    operands = {"conv_fprop": (x, w, y), "conv_dgrad": (y, w, x), "conv_wgrad": (x, y, w)}[name]
    return Convolution(name, dtype, *operands, ((1, 1), (2, 1)), (2, 1), (1, 1))


@pytest.mark.parametrize("name", ["conv_fprop", "conv_dgrad", "conv_wgrad"])
def test_graphs_fit_the_real_frontend(name, monkeypatch):
    """Names and parameters of what a graph is made by; validating and building it need a driver."""
    cudnn = pytest.importorskip("cudnn", reason="nvidia-cudnn-frontend is not installed", exc_type=ImportError)
    monkeypatch.setattr(dnn.CUDNN, "cudnn", cudnn)
    validated = []

    class Stopped(Exception):
        pass

    def stop(self):
        validated.append(True)
        raise Stopped

    monkeypatch.setattr(cudnn.pygraph, "validate", stop)
    with pytest.raises(Stopped):
        dnn.Graph(_geometry(name), None)
    assert validated
    for method in ("check_support", "build_plans", "get_workspace_size", "execute"):
        assert hasattr(cudnn.pygraph, method)
    assert hasattr(cudnn.numerical_note, "TENSOR_CORE") and hasattr(cudnn.heur_mode, "FALLBACK")

"""Programs that Paddle 2.6.2 wrote, run here: inference outputs, and ten steps of training (tests/data/programs)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import Executor, LoDTensor, Program, Scope
from oprack.io import load_inference_model

PROGRAMS = Path(__file__).parent / "data" / "programs"
TRAINING = sorted(p.name for p in PROGRAMS.glob("train_*"))
INFERENCE = sorted(p.name for p in PROGRAMS.iterdir() if p.is_dir() and not p.name.startswith("train_"))


def _close(got: np.ndarray, want: np.ndarray, tolerance: float) -> bool:
    # relative to the largest element, but not to what float32 leaves of a sum that cancels
    scale = max(1e-3, float(np.abs(want).max(initial=0.0)))
    return got.shape == want.shape and bool(np.allclose(got, want, rtol=tolerance, atol=tolerance * scale))


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("name", INFERENCE)
def test_inference(name: str, prepared: bool) -> None:
    folder = PROGRAMS / name
    meta = json.loads((folder / "meta.json").read_text())
    scope = Scope()
    model = load_inference_model(folder, scope)
    feed = {f["name"]: LoDTensor(np.load(folder / f["file"]), f.get("lod")) for f in meta["feed"]}
    assert model.feed_names == [f["name"] for f in meta["feed"]]
    exe = Executor(prepared=prepared)
    outputs = exe.run(model.program, feed, model.fetch_names, scope, return_numpy=False)
    for got, info in zip(outputs, meta["fetch"], strict=True):
        want = np.load(folder / info["file"])
        assert got.lod == (info.get("lod") or []), info["name"]
        assert got.array.dtype == want.dtype
        if want.dtype.kind == "f":
            assert _close(got.array, want, 1e-4), info["name"]
        else:
            assert np.array_equal(got.array, want), info["name"]


def _load(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("name", TRAINING)
def test_training(name: str, prepared: bool) -> None:
    """Losses of ten steps within 1e-4 (relative), and the parameters and optimizer state afterwards within 1e-3."""
    folder = PROGRAMS / name
    meta = json.loads((folder / "meta.json").read_text())
    program = Program.parse((folder / "main.pdmodel").read_bytes())
    scope = Scope()
    for var, value in _load(folder / "init.npz").items():
        scope.var(var).set(value.copy())
    feeds, exe, losses = _load(folder / "feeds.npz"), Executor(prepared=prepared), []
    for step in range(meta["steps"]):
        if meta.get("lr_var"):
            rate = scope.get_var(meta["lr_var"]).get()
            rate.array = np.full(rate.shape, meta["lr_per_step"][step], np.float32)
        feed = {
            key.split("/", 1)[1]: LoDTensor(value, meta["lod"].get(key))
            for key, value in feeds.items()
            if key.startswith(f"{step}/")
        }
        (loss,) = exe.run(program, feed, [meta["loss"]], scope)
        losses.append(float(np.asarray(loss).reshape(-1)[0]))
    want = np.load(folder / "losses.npy").reshape(-1)
    np.testing.assert_allclose(losses, want, rtol=1e-4)
    differing = [
        var for var, value in _load(folder / "final.npz").items() if not _close(_final(scope, var), value, 1e-3)
    ]
    assert differing == []


def _final(scope: Scope, name: str) -> Any:
    return scope.get_var(name).get().array

"""Views between the ops of a stretch: they are read where they lie, what NumPy would copy is copied by a primitive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import inference
from oprack.io import save_inference_model
from oprack_onednn.c.runner import RUNNER, _Stretch
from oprack_onednn.dnnl.library import LIBRARY

LIBRARY.usable()
pytestmark = pytest.mark.skipif(RUNNER.run is None, reason=f"the runner is not there: {RUNNER.problem}")
CLOSE: dict[str, Any] = dict(rtol=2e-5, atol=2e-5)
Net = Callable[..., Any]
layers = oprack.layers


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def shuffled(x: Any) -> list[Any]:
    """Channels of two groups in turns, then halves of them: what ShuffleNet is made of."""
    x = layers.conv2d(x, 32, 3, padding=1, act="relu")
    x = layers.transpose(layers.reshape(x, [0, 2, 16, 6, 8]), [0, 2, 1, 3, 4])
    left, right = layers.split(layers.reshape(x, [0, 32, 6, 8]), 2, dim=1)
    right = layers.conv2d(layers.conv2d(right, 16, 1, act="relu"), 16, 3, padding=1, groups=16)
    return [layers.conv2d(layers.concat([left, right], axis=1), 8, 1)]


def flattened(x: Any) -> list[Any]:
    """Images that become rows, which memory in another order has to be copied for, and rows that become others."""
    x = layers.pool2d(layers.conv2d(x, 16, 3, padding=1, act="relu"), 2, "max", 2)
    y = layers.fc(layers.flatten(x, axis=1), 24, act="relu")
    y = layers.fc(layers.reshape(y, [-1, 12]), 12)
    return [layers.fc(layers.reshape(y, [-1, 24]), 5)]


def leaving(x: Any) -> list[Any]:
    """Views that are results: of what else stays inside, of a part, and of a view."""
    x = layers.conv2d(x, 16, 3, padding=1, act="relu")
    low, high = layers.split(x, [4, 12], dim=1)
    turned = layers.transpose(high, [0, 2, 3, 1])
    y = layers.conv2d(low, 8, 3, padding=1)
    rows = layers.reshape(turned, [-1, 48, 12])
    return [layers.conv2d(y, 3, 1), turned, low, rows]


def text(x: Any) -> list[Any]:
    """Windows over steps of time, and the greatest of each channel."""
    x, found = layers.transpose(layers.reshape(x, [-1, 48, 3]), [0, 2, 1]), []
    for size in (2, 3):
        y = layers.conv2d(layers.unsqueeze(x, [2]), 16, [1, size], act="relu")
        found.append(layers.reduce_max(layers.squeeze(y, [2]), dim=[2]))
    return [layers.fc(layers.concat(found, axis=1), 4)]


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of chains of each run of the runner."""
    counts, run = list[int](), RUNNER.run

    def counted(pointer: int) -> int:
        counts.append(_Stretch.from_address(pointer).chain_count)
        assert run is not None
        return run(pointer)

    monkeypatch.setattr(RUNNER, "run", counted)
    return counts


class Served:
    """A net as a predictor, and on the reference path without this library."""

    def __init__(self, net: Net, folder: Path) -> None:
        main, startup = oprack.Program(), oprack.Program()
        with oprack.program_guard(main, startup):
            self.names = [y.name for y in net(layers.data("x", [None, 3, 6, 8]))]
        self.scope, self.program = oprack.Scope(), main
        executor = oprack.Executor(seed=3)
        executor.run(startup, scope=self.scope)
        save_inference_model(str(folder / "net"), main, ["x"], self.names, self.scope)
        self.predictor = inference.create_predictor(
            inference.Config(f"{folder}/net.pdmodel", f"{folder}/net.pdiparams")
        )
        self.plain = oprack.Executor(prepared=False, excluded_libraries=["onednn"])

    def check(self, x: Any) -> None:
        found = self.predictor.run([x])
        with np.errstate(invalid="ignore"):
            wanted = self.plain.run(self.program, {"x": x}, self.names, self.scope)
        for y, want in zip(found, wanted, strict=True):
            assert y.shape == want.shape
            np.testing.assert_allclose(y, want, **CLOSE)


NETS = pytest.mark.parametrize("net, calls", [(shuffled, 1), (flattened, 1), (leaving, 1), (text, 1)])


@NETS
def test_views_do_not_end_a_stretch(net: Net, calls: int, tmp_path: Path, native: list[int], any_size: None) -> None:
    served = Served(net, tmp_path)
    for seed, n in enumerate((2, 2, 2, 1, 1, 1, 2)):
        native.clear()
        served.check(normal(n, 3, 6, 8, seed=seed))
    assert len(native) == calls, native


@NETS
def test_results_are_not_written_to_by_later_runs(net: Net, calls: int, tmp_path: Path, any_size: None) -> None:
    served, kept = Served(net, tmp_path), []
    for seed in range(5):
        x = normal(2, 3, 6, 8, seed=seed)
        served.predictor.get_input_handle("x").copy_from_cpu(x)
        served.predictor.run()
        kept.append(
            (x, [served.predictor.get_output_handle(n).copy_to_cpu() for n in served.predictor.get_output_names()])
        )
    for x, found in kept:
        wanted = served.plain.run(served.program, {"x": x}, served.names, served.scope)
        for y, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(y, want, **CLOSE)


def test_nan_comes_out_of_a_maximum(tmp_path: Path, any_size: None) -> None:
    served = Served(text, tmp_path)
    odd = normal(2, 3, 6, 8)
    odd[1, 1, 2, 3] = np.nan
    for x in (normal(2, 3, 6, 8), odd, odd, normal(2, 3, 6, 8, seed=1), odd):
        served.check(x)


@pytest.mark.parametrize("dims", [[2], [3], [2, 3], [-2, -1], [1], [0, 2]])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("op_type", ["reduce_max", "reduce_mean"])
def test_reductions_of_images(op_type: str, dims: list[int], keep: bool, any_size: None) -> None:
    x = normal(3, 5, 7, 32).transpose(0, 3, 1, 2)
    main = oprack.Program()
    with oprack.program_guard(main, oprack.Program()):
        y = getattr(layers, op_type)(layers.data("x", [None, 32, 5, 7]), dim=dims, keep_dim=keep)
    executor = oprack.Executor()
    for _ in range(3):
        (found,) = executor.run(main, {"x": x}, [y.name], oprack.Scope())
        reduce = np.max if op_type == "reduce_max" else np.mean
        want = reduce(x.astype(np.float64), axis=tuple(dims), keepdims=keep)
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, rtol=2e-6, atol=2e-6)

"""Streams of inputs: every run another size, then back; results are the reference path's, and memory stays bounded."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.cache import BUDGET
from oprack.inference import Config, Predictor, create_predictor
from oprack.io import save_inference_model
from oprack.program import Program
from oprack.tensor import LoDTensor, Scope
from oprack_onednn.chain.primitive_chain import BoundChain
from oprack_onednn.chain.thread import PerThread
from oprack_onednn.dnnl.objects import Primitive, PrimitiveDesc
from oprack_onednn.stretch import callsite, stretch

# [n, h, w], both multiples of 4: some come once, some again and again, the last ones in another order.
SIZES = [(1, 12, 20), (2, 16, 8), (1, 40, 4), (1, 12, 20), (3, 8, 8), (1, 64, 72), (1, 8, 36), (2, 28, 12), (1, 4, 4)]
SIZES += [(1, 64, 72), (2, 16, 8), (1, 12, 20), (1, 20, 12), (1, 40, 4), (5, 4, 8), (1, 12, 20), (2, 16, 8), (1, 8, 36)]
CLOSE = dict(rtol=2e-4, atol=2e-4)


class Net:
    """Ops that are written one after the other, with parameters at random."""

    def __init__(self) -> None:
        self.program, self.scope, self.rng, self._count = Program(), Scope(), np.random.default_rng(7), 0
        self.block = self.program.global_block()

    def parameter(self, *shape: int) -> str:
        name, scale = f"p{len(self.scope.local_var_names())}", 1 / np.sqrt(max(1, np.prod(shape[1:])))
        self.block.create_var(name, dtype="float32", shape=list(shape), persistable=True)
        self.scope.var(name).set(LoDTensor((self.rng.standard_normal(shape) * scale).astype(np.float32)))
        return name

    def op(self, op_type: str, out: str, inputs: dict[str, Any], **attrs: Any) -> str:
        self._count += 1
        name = f"v{self._count}"
        self.block.create_var(name)
        self.block.append_op(op_type, inputs, {out: name}, attrs)
        return name

    def act(self, op_type: str, x: str) -> str:
        return self.op(op_type, "Out", {"X": x})

    def add(self, x: str, y: str, axis: int = -1) -> str:
        return self.op("elementwise_add", "Out", {"X": x, "Y": y}, axis=axis)

    def conv(self, x: str, c: int, k: int, window: int, stride: int = 1, depthwise: bool = False) -> str:
        inputs = {"Input": x, "Filter": self.parameter(k, 1 if depthwise else c, window, window)}
        attrs = dict(strides=[stride] * 2, paddings=[window // 2] * 2, groups=c if depthwise else 1)
        y = self.op("depthwise_conv2d" if depthwise else "conv2d", "Output", inputs, **attrs)
        return self.add(y, self.parameter(k), 1)

    def squeeze_excite(self, x: str, c: int) -> str:
        y = self.op("pool2d", "Out", {"X": x}, pooling_type="avg", ksize=[1, 1], adaptive=True)
        y = self.act("hard_sigmoid", self.conv(self.act("relu", self.conv(y, c, c // 4, 1)), c // 4, c, 1))
        return self.op("elementwise_mul", "Out", {"X": x, "Y": y})


def pictures() -> tuple[Net, str, str]:
    """As nets that find text: a backbone, maps of two resolutions, transposed convolutions."""
    net = Net()
    net.block.create_var("x", dtype="float32", shape=[-1, 3, -1, -1])
    high = net.act("hard_swish", net.conv("x", 3, 16, 3))
    high = net.act("hard_swish", net.conv(net.conv(high, 16, 16, 3, depthwise=True), 16, 32, 1))
    high = net.act("hard_swish", net.conv(net.conv(high, 32, 32, 3, 2, depthwise=True), 32, 48, 1))
    low = net.act("relu", net.conv(high, 48, 64, 3, 2))
    low = net.conv(net.squeeze_excite(low, 64), 64, 48, 1)
    attrs = dict(interp_method="nearest", align_corners=False, scale=[2.0, 2.0], out_h=-1, out_w=-1)
    up = net.op("nearest_interp_v2", "Out", {"X": low}, **attrs)
    both = net.op("concat", "Out", {"X": [net.conv(up, 48, 24, 3), net.conv(high, 48, 24, 3)]}, axis=1)
    for c, k, act in ((48, 12, "relu"), (12, 1, "sigmoid")):
        inputs = {"Input": both, "Filter": net.parameter(c, k, 2, 2)}
        both = net.act(act, net.op("conv2d_transpose", "Output", inputs, strides=[2, 2]))
    return net, "x", both


def rows() -> tuple[Net, str, str]:
    """As nets that read text: one row of cells, products, normalized and softmax."""
    net = Net()
    net.block.create_var("x", dtype="float32", shape=[-1, 3, -1, -1])
    y = net.op("pool2d", "Out", {"X": net.conv("x", 3, 64, 3, 2)}, pooling_type="max", ksize=[2, 2], strides=[2, 2])
    y = net.op("flatten2", "Out", {"X": net.op("transpose2", "Out", {"X": y}, axis=[0, 2, 3, 1])}, axis=3)
    for n in (128, 64):
        y = net.op("matmul_v2", "Out", {"X": y, "Y": net.parameter(128 if n == 64 else 64, n)})
        y = net.act("swish", net.add(y, net.parameter(n)))
    y = net.op("layer_norm", "Y", {"X": y, "Scale": net.parameter(64), "Bias": net.parameter(64)}, begin_norm_axis=1)
    return net, "x", net.op("softmax", "Out", {"X": y}, axis=-1)


def made(build: Any, folder: Path) -> tuple[Predictor, Any]:
    """A predictor of a net, and a function that computes the same on the reference path without libraries."""
    net, x, y = build()
    save_inference_model(folder / "model", net.program, [x], [y], net.scope)
    config = Config(str(folder / "model.pdmodel"), str(folder / "model.pdiparams"))
    reference = oprack.Executor(prepared=False, excluded_libraries=("onednn",))
    return create_predictor(config), lambda a: reference.run(net.program, {x: a}, [y], net.scope)[0]


def pictures_of(sizes: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.standard_normal((n, 3, h, w)).astype(np.float32) for n, h, w in sizes]


@pytest.mark.parametrize("few", [1, 8])
@pytest.mark.parametrize("build", [pictures, rows])
def test_every_size_gives_what_the_reference_path_gives(build: Any, few: int, tmp_path: Path, monkeypatch: Any) -> None:
    for module in (callsite, stretch):
        monkeypatch.setattr(module, "PerThread", lambda *most: PerThread(few))
    predictor, reference = made(build, tmp_path)
    inputs = pictures_of(SIZES)
    wanted = [reference(x) for x in inputs]
    for round_ in range(3):
        for size, x, want in zip(SIZES, inputs, wanted, strict=True):
            (got,) = predictor.run([x])
            np.testing.assert_allclose(got, want, **CLOSE, err_msg=f"size {size}, round {round_}")


def test_the_same_input_gives_the_same_numbers_in_every_round(tmp_path: Path, monkeypatch: Any) -> None:
    """However often it came, and what came between."""
    monkeypatch.setattr(callsite, "PerThread", lambda *most: PerThread(1))
    predictor, _ = made(pictures, tmp_path)
    inputs = pictures_of(dict.fromkeys(SIZES))
    first = [predictor.run([x])[0] for x in inputs]
    for order in (inputs, inputs[::-1], inputs):
        for x in order:
            (again,) = predictor.run([x])
            np.testing.assert_array_equal(again, first[next(i for i, a in enumerate(inputs) if a is x)])


def test_two_clones_meet_the_sizes_at_the_same_time(tmp_path: Path) -> None:
    predictor, reference = made(pictures, tmp_path)
    inputs = pictures_of(SIZES)
    wanted, failures = [reference(x) for x in inputs], list[str]()

    def work(clone: Predictor, order: list[int]) -> None:
        for i in order:
            (got,) = clone.run([inputs[i]])
            if not np.allclose(got, wanted[i], **CLOSE):
                failures.append(f"size {SIZES[i]}")

    order = list(range(len(inputs)))
    jobs = [(predictor, order + order[::-1]), (predictor.clone(), order[::-1] + order)]
    threads = [threading.Thread(target=work, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_what_sizes_leave_behind_is_bounded(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(BUDGET, "_limit", 4 << 20)
    predictor, _ = made(pictures, tmp_path)

    def chains_after(sizes: Any) -> int:
        for x in pictures_of(sizes):
            predictor.run([x])
        gc.collect()
        return sum(type(o) is BoundChain for o in gc.get_objects())

    some = chains_after([(1, 4 * h, 16) for h in range(1, 25)])
    assert chains_after([(1, 4 * h, 24) for h in range(1, 49)]) <= 1.2 * some


def _counted(function: Any, calls: list[Any]) -> Any:
    def counted(*args: Any, **named: Any) -> None:
        calls.append(type(args[0]))
        function(*args, **named)

    return counted


def test_sizes_that_come_again_compile_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    """All of forty sizes fit into the budget: from the second round on no primitive and no descriptor is made."""
    predictor, _ = made(pictures, tmp_path)
    inputs, new = pictures_of([(1, 4 * h, 16) for h in range(1, 41)]), []
    for kind in (Primitive, PrimitiveDesc):
        monkeypatch.setattr(kind, "__init__", _counted(kind.__init__, new))
    counts = []
    for _ in range(3):
        for x in inputs:
            predictor.run([x])
        counts.append(len(new))
    assert counts[0] > 40 and counts[1:] == [counts[0]] * 2


_WORK = """
import sys
import numpy as np
import oprack
from oprack.inference import Config, create_predictor

def rss():
    text = open("/proc/self/status").read()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024

oprack.set_cache_limit(12 << 20)
config = Config(sys.argv[1] + ".pdmodel", sys.argv[1] + ".pdiparams")
config.set_cpu_math_library_num_threads(1)
predictor, used = create_predictor(config), []
for i in range(1, 121):
    predictor.run([np.ones((1, 3, 4 * i, 16), np.float32)])
    if i % 30 == 0:
        used.append(rss())
print(*used, oprack.cache_info()["dropped"])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux alone says how much memory a process has")
def test_the_memory_of_a_process_is_level_when_the_budget_is_met(tmp_path: Path) -> None:
    made(pictures, tmp_path)
    command = [sys.executable, "-W", "ignore", "-c", _WORK, str(tmp_path / "model")]
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    first, *_, last, dropped = map(float, run.stdout.split())
    assert dropped > 500, "the budget was met"
    # without a budget it is more than 100 MiB
    assert last - first < 30

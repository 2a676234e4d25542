"""Ops of new shapes that run while those behind them are prepared: numbers are those of later runs, bit by bit."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from oprack_onednn.c.runner import RUNNER, NativeStretch, _Stretch
from oprack_onednn.chain.memory import channels_last_desc
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernels._convolution import ConvolutionStep, Filter, Window, conv_layer
from oprack_onednn.stretch import callsite, overlap
from oprack_onednn.threads.background import Background
from oprack_onednn.threads.pool import POOL
from served_nets import Served, branches, images, normal, rows

LIBRARY.usable()
pytestmark = [
    pytest.mark.skipif(RUNNER.run is None, reason=f"the runner is not there: {RUNNER.problem}"),
    pytest.mark.skipif(bool(POOL.problem), reason=f"no threads but the pool's can rest: {POOL.problem}"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core alone prepares and runs in turns"),
]


@pytest.fixture
def pieces(monkeypatch):
    """All that is prepared runs at once, whatever it takes; the number of chains of each piece that ran ahead."""
    counts, start = [], Background.start

    def counted(self, stretch, *held):
        counts.append(_Stretch.from_address(stretch.pointer).chain_count)
        return start(self, stretch, *held)

    monkeypatch.setattr(overlap, "_LEAST", 0.0)
    monkeypatch.setattr(PrimitiveChain, "is_ready", True)  # what is not compiled yet is by who asks for it
    monkeypatch.setattr(Background, "start", counted)
    return counts


@pytest.fixture
def served(tmp_path, any_size):
    def make(net, *shape):
        return Served(net, shape, tmp_path, threads=2)

    return make


def forms(net):
    """Inputs of sizes that are all different ones."""
    rng = np.random.default_rng(5)
    sizes = [(3, 4 * int(h), 4 * int(w)) for h, w in rng.integers(3, 16, (12, 2))] if net is not rows else [(128,)] * 12
    return [normal(i % 3 + 1 if net is not rows else i + 1, *size, seed=i) for i, size in enumerate(sizes)]


@pytest.mark.parametrize("net, shape", [(images, (3, None, None)), (branches, (3, None, None)), (rows, (128,))])
def test_the_first_run_of_a_form_gives_what_later_ones_do(served, pieces, net, shape):
    model = served(net, *shape)
    for i, x in enumerate(forms(net)):
        first = model.check(x)
        for _ in range(2):
            np.testing.assert_array_equal(model(x), first)
        assert i < 1 or pieces, "nothing ran ahead"
    assert not THREAD.background.busy


def test_an_op_that_declines_ends_it(served, pieces):
    """Functions that look for NaN decline, and NumPy computes in their place."""

    def net(x):
        import oprack

        x = oprack.layers.conv2d(x, 8, 3, padding=1, act="relu")
        return oprack.layers.conv2d(oprack.layers.exp(oprack.layers.conv2d(x, 8, 1)), 8, 1)

    model = served(net, 3, None, None)
    for i, x in enumerate(forms(net)):
        if i % 2:
            x[0, 0, 1, 2] = np.nan
        model.check(x)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError], ids=["interrupted", "failed"])
def test_nothing_runs_behind_a_preparation_that_ends(served, pieces, monkeypatch, error):
    model, (x, y, z, *_) = served(images, 3, None, None), forms(images)
    model(x)
    model(y)
    bind, asked = callsite.CallSite._bind, []

    def failing(self, arrays):
        asked.append(self)
        if len(asked) == 4:
            raise error("as the test wants it")
        return bind(self, arrays)

    pieces.clear()
    monkeypatch.setattr(callsite.CallSite, "_bind", failing)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            model(z)
    else:
        model.check(z)
    assert pieces and len(asked) >= 4
    assert not THREAD.background.busy and THREAD.state.capacity
    monkeypatch.undo()
    model.check(z)


def slow_chain():
    """(a stretch for the thread in the background that takes some tenths of a second, the arrays that it needs)."""
    rows_, inner, columns = 1 << 16, 512, 512
    layer = conv_layer(Filter(inner, 1, columns, columns, 1, 1), Window(), False, (), rows_, halves=False)
    if layer is None:
        pytest.skip("products in C need AVX-512")
    chain = PrimitiveChain()
    ConvolutionStep(chain, [layer], channels_last_desc((1, inner, rows_, 1)))
    x, w = normal(rows_, inner), np.zeros(inner * columns, np.float32)
    y = np.empty((rows_, columns), np.float32)
    bound = chain.bound()
    stretch = NativeStretch(THREAD.background.state, [bound.native], range(3), 3)
    stretch.values[:] = [x.ctypes.data, w.ctypes.data, y.ctypes.data]
    return stretch, bound.size, (bound, x, w, y)


def test_who_wants_scratch_memory_waits_for_the_run_that_has_it():
    assert THREAD.ready()
    stretch, size, held = slow_chain()
    start = THREAD.arena(size)
    assert THREAD.background.start(stretch, *held) and THREAD.background.busy
    assert THREAD.state.capacity == 0, "another run would write to the same memory"
    assert THREAD.arena(16) == start and not THREAD.background.busy
    assert THREAD.state.capacity >= size and not held[-1].any()


def test_a_python_thread_that_ends_takes_its_thread_along(served, pieces):
    model = served(images, 3, None, None)
    for x in forms(images)[:3]:
        model(x)
    done = []

    def use():
        predictor = model.predictor.clone()
        for x in forms(images)[3:8]:
            done.append(np.array_equal(model(x, predictor), model(x, predictor)))

    before = names()
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert done == [True] * 5
    deadline = time.monotonic() + 10
    while names().count("oprack-ahead") > before.count("oprack-ahead") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert names().count("oprack-ahead") == before.count("oprack-ahead")


def names():
    """The names of the process's threads, as the system has them."""
    found = []
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/comm") as file:
                found.append(file.read().strip())
        except OSError:
            pass  # it has ended
    return found


_FORKED = """
import os, sys
import numpy as np
from oprack import inference
from oprack_onednn.stretch import overlap
from oprack_onednn.chain.thread import THREAD
overlap._LEAST = 0.0
config = inference.Config(sys.argv[1] + "/net.pdmodel", sys.argv[1] + "/net.pdiparams")
config.set_cpu_math_library_num_threads(2)
predictor = inference.create_predictor(config)
run = lambda n: predictor.run([np.full((n, 3, 64, 64), 0.5, np.float32)])[0]
for n in (1, 2, 3):
    want = run(n)
child = os.fork()
results = [np.array_equal(run(n)[0], want[0]) for n in (4, 5, 6, 2)]
if not child:
    os._exit(not all(results))
assert all(results) and os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_child_has_a_thread_of_its_own(served, tmp_path):
    served(images, 3, None, None)
    command = [sys.executable, "-c", _FORKED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_denormal_numbers_are_those_of_the_python_thread(served, pieces):
    """Predictors take them for 0, whichever thread computes."""
    model = served(images, 3, None, None)
    for i, x in enumerate(forms(images)):
        x *= np.float32(1e-38)
        np.testing.assert_array_equal(model(x), model(x)) if i else model(x)

"""The library itself: where it is missing, after a fork, threads, memory that is used again, weights that change."""

from __future__ import annotations

import contextlib
import ctypes.util
import gc
import os
import subprocess
import sys
import tempfile
import threading
import warnings
import weakref

import numpy as np
import oprack
import oprack_onednn
import pytest
from oprack import inference
from oprack.cache import Cache
from oprack.errors import InvalidArgumentError
from oprack.io import save_inference_model
from oprack.kernel import KernelQuery, OpKernelType
from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import Buffers, memory_order
from oprack_onednn.chain.parameters import PACKED, is_constant
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import library as library_module
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY, Library, usable
from oprack_onednn.dnnl.objects import PrimitiveDesc
from oprack_onednn.kernel_library import KERNEL_LIBRARY
from oprack_onednn.kernels.conv2d import conv2d
from oprack_onednn.threads.pool import POOL
from plain_library import plain_library

ATTRS = dict(
    strides=[1, 1], paddings=[1, 1], dilations=[1, 1], groups=1, padding_algorithm="EXPLICIT", data_format="NCHW"
)

LIBRARY.usable()
own_threads = pytest.mark.skipif(bool(POOL.problem), reason=f"the pool does not serve: {POOL.problem}")


def convolve(x, w):
    return conv2d(x, w, **ATTRS)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def program_of_conv():
    """A program with one convolution of x by w, and a scope that holds w."""
    program, startup = oprack.Program(), oprack.Program()
    with oprack.program_guard(program, startup):
        x = oprack.layers.data("x", [None, 4, 12, 12])
        oprack.layers.conv2d(x, 8, 3, padding=1, bias_attr=False, param_attr=oprack.ParamAttr(name="w"))
    scope = oprack.Scope()
    scope.var("w").set(oprack.LoDTensor(normal(8, 4, 3, 3)))
    return program, program.global_block().ops[-1].outputs["Output"][0], scope


# Not there ------------------------------------------------------------------------------------------------------------
def test_without_its_file_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(library_module, "FILE", tmp_path / "liboprack_dnnl.so.3")
    absent = Library()
    assert not absent.usable()
    assert "is missing" in absent.status() and "pip install --force-reinstall oprack-onednn" in absent.status()


def test_a_file_that_is_no_library(monkeypatch, tmp_path):
    monkeypatch.setattr(library_module, "FILE", tmp_path / "liboprack_dnnl.so.3")
    library_module.FILE.write_bytes(b"no library")
    assert f"{library_module.FILE} can't be loaded" in Library().status()


def test_without_libgomp_where_the_library_needs_it(monkeypatch):
    def cdll(name):
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(library_module, "CDLL", cdll)
    assert "install your system's libgomp" in Library().status()


@own_threads
def test_openmp_is_neither_loaded_nor_asked():
    """Not even the one that the whole process sees."""
    preload = ctypes.util.find_library("gomp")
    code = """if True:
        import os
        import numpy as np
        from oprack import functional as F, to_tensor
        from oprack_onednn.dnnl.library import LIBRARY, set_num_threads
        from oprack_onednn.kernel_library import KERNEL_LIBRARY
        set_num_threads(3)
        with KERNEL_LIBRARY.without_size_limits():
            x = to_tensor(np.ones((400, 400), np.float32))
            assert F.matmul_v2(x, x).numpy()[0, 0] == 400
        names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
        print("libgomp" in open("/proc/self/maps").read(), names.count("oprack-pool"))
    """
    for preloaded in (None, preload) if preload else (None,):
        env = os.environ | ({"LD_PRELOAD": preloaded} if preloaded else {})
        command = [sys.executable, "-W", "ignore", "-c", code]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert (done.stdout.split(), done.stderr) == ([str(bool(preloaded)), "2"], "")


def test_another_machine(monkeypatch):
    monkeypatch.setattr(library_module.platform, "machine", lambda: "aarch64")
    assert "no wheel" in Library().status()


def test_where_it_does_not_serve_numpy_runs(monkeypatch):
    program, out, scope = program_of_conv()
    feed = {"x": normal(2, 4, 12, 12)}
    (want,) = oprack.Executor(excluded_libraries=("onednn",)).run(program, feed, [out], scope)
    monkeypatch.setattr(PrimitiveChain, "run", lambda *a: pytest.fail("oneDNN ran"))
    executor = oprack.Executor()
    monkeypatch.setattr(LIBRARY, "ready", False)
    monkeypatch.setattr(LIBRARY, "problem", "as a test wants it")
    assert not usable(KernelQuery("conv2d"))
    for _ in range(2):
        np.testing.assert_array_equal(executor.run(program, feed, [out], scope)[0], want)


def test_kernels_are_chosen_and_can_be_switched_off():
    kernels = oprack.default_manager().kernel_map("conv2d", "cpu")
    query = KernelQuery("conv2d", {}, {"Input": "float32"}, {"Input": "LoDTensor"})
    expected = OpKernelType("cpu", "float32")
    assert kernels.choose(expected, query).spec.library == "onednn"
    assert kernels.choose(expected, query, ("onednn",)).spec.library == "plain"
    assert kernels.choose(OpKernelType("cpu", "float64"), query).spec.library == "plain"
    asked = OpKernelType("cpu", "float32", library="onednn")
    assert kernels.choose(asked, query).spec.library == "onednn"
    assert kernels.choose(asked, query, ("onednn",)).spec.library == "plain"  # Fluid's fall-back, which the log tells


# Fork -----------------------------------------------------------------------------------------------------------------
FORKED = """
import io, logging, os, sys, threading
import numpy as np
import oprack_onednn
from oprack_onednn.dnnl import library
from oprack_onednn.threads.process import EXIT
from oprack_onednn.kernels.activation import relu
how, library.FILE = sys.argv[1], sys.argv[2]
x = np.linspace(-1, 1, 100_000, dtype=np.float32)
before = relu(x)
begun, over = threading.Event(), threading.Event()
def compute():
    with EXIT:  # as a call of oneDNN does
        begun.set()
        over.wait()
other = threading.Thread(target=compute)
if how == "busy":
    other.start()
    begun.wait()
child = os.fork()
if not child:
    log = io.StringIO()
    logging.basicConfig(stream=log)
    if how == "served":
        y = np.linspace(-1, 1, 200_001, dtype=np.float32)
        fine = np.array_equal(relu(x), before) and np.array_equal(relu(y), np.maximum(y, 0))
        os._exit(0 if fine and "forked" not in oprack_onednn.status() and not log.getvalue() else 1)
    declined = [relu(x) is NotImplemented, relu(x) is NotImplemented, "forked" in oprack_onednn.status()]
    said = log.getvalue().count("WARNING:oprack_onednn.dnnl.library:process")
    os._exit(0 if all(declined) and said == 1 and "this process was forked" in log.getvalue() else 1)
_, status = os.waitpid(child, 0)
over.set()
assert np.array_equal(relu(x), before) and "forked" not in oprack_onednn.status()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("how", ["served", "busy", "libgomp"])
def test_a_forked_process(how):
    """It computes on threads of its own; when another thread computed, or on libgomp, it would wait for ever."""
    if how == "libgomp":
        file = plain_library()
    elif POOL.problem or RUNNER.problem:
        pytest.skip(POOL.problem or RUNNER.problem)
    else:
        file = library_module.FILE
    command = [sys.executable, "-W", "ignore", "-c", FORKED, how, str(file)]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


# Threads --------------------------------------------------------------------------------------------------------------
def test_threads():
    x, w = normal(1, 4, 12, 12), normal(8, 4, 3, 3)
    want = convolve(x, w)
    try:
        oprack_onednn.set_num_threads(1)
        assert oprack_onednn.num_threads() == 1 and "threads: 1" in oprack_onednn.status()
        np.testing.assert_allclose(convolve(x, w), want, rtol=1e-5, atol=1e-5)
    finally:
        oprack_onednn.set_num_threads(0)
    assert oprack_onednn.num_threads() >= 1
    with pytest.raises(InvalidArgumentError, match="number of threads"):
        oprack_onednn.set_num_threads(-1)


def test_a_limit_holds_for_one_python_thread():
    x, w = normal(1, 32, 64, 64), normal(64, 32, 3, 3)  # enough work to be shared
    want = convolve(x, w)
    chains = THREAD.primitives
    with KERNEL_LIBRARY.limit_threads(1):
        np.testing.assert_allclose(convolve(x, w), want, rtol=1e-5, atol=1e-5)
        assert THREAD.primitives is not chains or oprack_onednn.num_threads() == 1
        assert POOL.max_threads() == 1
    np.testing.assert_array_equal(convolve(x, w), want)
    assert THREAD.primitives is chains and POOL.max_threads() == oprack_onednn.num_threads()


@pytest.mark.parametrize(("text", "most"), [("1", 1), ("1,4", 1), ("", 1 << 20), ("nonsense", 1 << 20)])
def test_omp_num_threads_limits_the_threads(text, most):
    """Ranks that share a machine are started with it."""
    code = "import os, oprack_onednn as o; print(o.num_threads(), len(os.sched_getaffinity(0)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": text},
    )
    threads, cpus = map(int, done.stdout.split())
    assert threads == min(most, cpus)


def test_config_limits_the_threads(monkeypatch):
    """Config.set_cpu_math_library_num_threads reaches the library through its hook."""
    assert oprack.default_manager().extensions.libraries()["onednn"] is KERNEL_LIBRARY
    asked = []
    monkeypatch.setattr(KERNEL_LIBRARY, "limit_threads", lambda n: asked.append(n) or contextlib.nullcontext())
    program, out, scope = program_of_conv()
    with tempfile.TemporaryDirectory() as folder:
        save_inference_model(f"{folder}/m", program, ["x"], [out], scope)
        config = inference.Config(f"{folder}/m.pdmodel", f"{folder}/m.pdiparams")
        config.set_cpu_math_library_num_threads(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inference.create_predictor(config).run([normal(2, 4, 12, 12)])
    assert asked == [3]


def test_doctor_says_what_serves(capsys):
    from oprack.cli.main import main

    main(["doctor"])
    assert "library onednn: oneDNN 3.2.0" in capsys.readouterr().out


@pytest.mark.primitives("conv2d")
def test_many_python_threads_at_once():
    """Each has chains and scratch memory of its own; packed weights are shared."""
    weights = [normal(8, 4, 3, 3, seed=i) for i in range(3)]
    for w in weights:
        w.flags.writeable = False
    inputs = [normal(1, 4, 12 + i, 12, seed=i) for i in range(4)]
    wants = {(i, j): convolve(x, w).copy() for i, x in enumerate(inputs) for j, w in enumerate(weights)}
    failures = []

    def work(start):
        for k in range(60):
            i, j = (start + k) % 4, (start * 7 + k) % 3
            if not np.allclose(convolve(inputs[i], weights[j]), wants[i, j], rtol=1e-5, atol=1e-5):
                failures.append((i, j))

    threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


# Weights --------------------------------------------------------------------------------------------------------------
@pytest.mark.primitives("conv2d")
def test_weights_that_are_trained_are_read_anew():
    x, w = normal(1, 4, 12, 12), normal(8, 4, 3, 3)
    first = convolve(x, w).copy()
    w *= 2
    np.testing.assert_allclose(convolve(x, w), 2 * first, rtol=1e-5, atol=1e-5)


def test_only_read_only_memory_of_its_own_is_constant():
    array = normal(4, 4)
    assert not is_constant(array)
    view = array[:2]
    view.flags.writeable = False
    assert not is_constant(view)
    array.flags.writeable = False
    assert is_constant(array)
    turned = np.asfortranarray(array).copy(order="F")
    turned.flags.writeable = False
    assert not is_constant(turned), "chains go by the shapes of constants alone"


def test_packed_weights_live_as_long_as_the_array():
    x, gaps = normal(1, 4, 12, 12), ATTRS | {"dilations": [2, 2]}
    gc.collect()  # what earlier tests packed
    before = len(PACKED._entries)
    for seed in range(5):
        w = normal(8, 4, 3, 3, seed=seed)
        fresh = conv2d(x, w, **gaps).copy()
        w.flags.writeable = False
        np.testing.assert_allclose(conv2d(x, w, **gaps), fresh, rtol=1e-6, atol=1e-6)
        assert len(PACKED._entries) == before + 1
        packed = weakref.ref(PACKED._entries[id(w)][1][0][1])
        del w
        gc.collect()
        assert packed() is None, "neither a chain nor anybody else keeps them"
    assert len(PACKED._entries) == before


# Memory ---------------------------------------------------------------------------------------------------------------
def test_a_buffer_is_used_again_only_when_no_array_is_left():
    buffers = Buffers(smallest=1)
    first = buffers.take((10, 10))
    address, view = first.ctypes.data, first.transpose()[3:]
    first[...] = 7
    assert buffers.take((10, 10)).ctypes.data != address
    del first
    buffers.take((10, 10))[...] = 0
    assert view.ctypes.data == address + 12 and (view == 7).all()
    del view
    taken = {buffers.take((10, 10)).ctypes.data, *(a.ctypes.data for a in [buffers.take((10, 10))])}
    assert address in taken


def test_a_larger_buffer_is_taken_before_a_new_one():
    """The next larger sort, while nobody has it."""
    buffers = Buffers(smallest=1)
    address = buffers.take((1000,)).ctypes.data
    held = [buffers.take((n,)) for n in (500, 500)]
    assert held[0].ctypes.data == address and held[1].ctypes.data != address
    del held
    total = buffers._total
    assert buffers.take((900,)).ctypes.data == address and buffers._total == total
    buffers.take((100,))
    assert buffers._total > total


def test_buffers_are_bounded():
    buffers = Buffers(smallest=1, most=10_000)
    held = [buffers.take((1000,)) for _ in range(8)]
    assert buffers._total <= 10_000
    del held
    for n in range(100, 2000, 100):
        buffers.take((n,))
    assert buffers._total <= 10_000


def test_large_buffers_are_aligned():
    buffers = Buffers()
    assert [buffers.take((n,)).ctypes.data % 64 for n in (1 << 14, 100_001, 1 << 20)] == [0, 0, 0]


def test_buffers_that_nobody_takes_any_more_are_given_back():
    buffers = Buffers(smallest=1, patience=10)
    large = buffers.take((5000,))
    held = buffers.take((3000,))
    del large
    for _ in range(25):
        buffers.take((10,))
    assert buffers._total < 5000 * 4
    assert sum(map(len, buffers._by_size.values())) == 2 and held.size == 3000


@pytest.mark.primitives("conv2d")
def test_results_do_not_share_memory():
    x, w = normal(4, 4, 60, 60), normal(8, 4, 3, 3)
    results = [convolve(x * i, w) for i in range(4)]
    for i, r in enumerate(results):
        np.testing.assert_allclose(r, i * results[1], rtol=1e-4, atol=1e-4)


def test_memory_order():
    assert memory_order((2, 3, 4), (48, 16, 4)) == (0, 1, 2)
    assert memory_order((2, 3, 4), (48, 4, 12)) == (0, 2, 1)
    assert memory_order((2, 1, 4), (16, 999, 4)) == (0, 2)
    assert memory_order((2, 3, 4), (96, 16, 4)) is None
    assert memory_order((2, 3), (0, 4)) is None


def test_chains_are_bounded(monkeypatch):
    """At least five, and never more than twice as many."""
    THREAD.ready()
    monkeypatch.setattr(THREAD, "primitives", Cache(5))
    kept = []
    for _ in range(2):
        for n in range(101, 121):
            convolve(normal(1, 4, n, 3), normal(8, 4, 3, 3))
            kept.append(len(THREAD.primitives))
    assert max(kept) == 10 and min(kept[5:]) >= 5


# Refusals -------------------------------------------------------------------------------------------------------------
def test_a_slow_implementation_is_refused(monkeypatch):
    monkeypatch.setattr(PrimitiveDesc, "slow", property(lambda self: True))
    assert convolve(normal(1, 4, 13, 17), normal(8, 4, 3, 3)) is NotImplemented


def test_what_onednn_refuses_goes_to_numpy():
    with pytest.raises(NotServedError, match="invalid arguments"):
        PrimitiveDesc("matmul", LIBRARY.engine, None, None, None, None, None)
    assert convolve(np.zeros((0, 4, 12, 12), np.float32), normal(8, 4, 3, 3)) is NotImplemented


def test_a_chain_within_a_chain_leaves_the_outer_one_its_threads():
    seen = []

    def outer():
        THREAD.work += 1.0  # much to do
        seen.append(THREAD.threads)
        THREAD.primitive(object(), list)
        seen.append(THREAD.threads)
        return seen

    with THREAD.limited(2):
        THREAD.primitive(object(), outer)
        assert seen == [2, 2]


def test_a_thread_that_ended_leaves_nothing_behind():
    chains, streams = [], []

    def run():
        convolve(normal(1, 4, 12, 12), normal(8, 4, 3, 3))
        chains.extend(map(weakref.ref, THREAD.primitives.values()))
        streams.append(THREAD.stream)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    gc.collect()
    assert chains and not any(r() for r in chains)
    assert sys.getrefcount(streams[0]) == sys.getrefcount(object()) + 1, "only this list has it"


EXITING = """
import sys
from oprack_onednn.chain import thread
entries = thread.PerThread()
entries.keep((1, "shape"), "bound")
sys.outliving = thread, entries  # as what a cycle or another module holds
"""


def test_nothing_is_printed_when_entries_outlive_the_globals_of_their_module():
    done = subprocess.run([sys.executable, "-c", EXITING], timeout=60, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_chain_with_little_to_do_runs_on_one_thread():
    oprack_onednn.set_num_threads(2)
    try:
        small, large = normal(1, 4, 12, 12), normal(1, 32, 64, 64)
        for _ in range(2):
            for x, w, threads in ((small, normal(8, 4, 3, 3), 1), (large, normal(64, 32, 3, 3), 2)):
                convolve(x, w)
                assert POOL.max_threads() == threads == THREAD.threads
    finally:
        oprack_onednn.set_num_threads(0)

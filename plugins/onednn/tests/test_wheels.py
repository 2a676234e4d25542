"""Where the library is another wheel's: on Windows, and on macOS with x86-64. What other machines can know of that."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from oprack_onednn.c.runner import Runner
from oprack_onednn.dnnl import _c, wheels
from oprack_onednn.dnnl.library import Library
from plain_library import plain_library

ROOT = Path(__file__).parents[1]


def test_their_libraries_have_every_function_that_is_called():
    lines = (ROOT / "tests" / "data" / "exports.txt").read_text().splitlines()
    exported = set(" ".join(line for line in lines if not line.startswith("#")).split())
    called = set(_c._ARGUMENTS)
    for source in (ROOT / "src").rglob("*.py"):
        called |= set(re.findall(r"\.dnnl_(\w+)", source.read_text(encoding="utf-8")))
    assert called > set(_c._ARGUMENTS) and called <= exported


def test_pip_brings_the_one_for_windows():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wheel = wheels.WHEELS["win32", "AMD64"]
    assert f"\"{wheel.name} ; sys_platform == 'win32' and platform_machine == 'AMD64'\"" in text
    assert not any(w.name in text for key, w in wheels.WHEELS.items() if key[0] != "win32")


# As on Windows: another wheel's library and its OpenMP, no runner, no affinity, no fork.
ELSEWHERE = """
import os
import numpy as np
import numpy.random
del os.sched_getaffinity, os.register_at_fork
import oprack
from oprack.inference import Config, create_predictor
from oprack_onednn.c import runner
from oprack_onednn.dnnl import library, wheels
from oprack_onednn.kernel_library import KERNEL_LIBRARY
wheels.here = lambda: wheels.Wheel("onednn-cpu-gomp==2023.2.0", "libdnnl.so.3", ("libgomp.so.1",), "", "")
runner.RUNNER.load = lambda: setattr(runner.RUNNER, "problem", "as a test wants it")
program, startup, scope = oprack.Program(), oprack.Program(), oprack.Scope()
with oprack.program_guard(program, startup):
    x = oprack.layers.data("x", [None, 16, 20, 20])
    y = oprack.layers.conv2d(oprack.layers.conv2d(x, 24, 3, padding=1, act="relu"), 8, 1)
    y = oprack.layers.fc(oprack.layers.softmax(oprack.layers.pool2d(y, 2, pool_stride=2)), 5)
oprack.Executor().run(startup, scope=scope)
feeds = [{"x": np.random.default_rng(n).standard_normal((n, 16, 20, 20), np.float32)} for n in (1, 3, 1, 3)]
plain = oprack.Executor(excluded_libraries=("onednn", "numba"))
with KERNEL_LIBRARY.without_size_limits():
    executor = oprack.Executor()
    for feed in feeds:
        want = plain.run(program, feed, [y.name], scope)[0]
        np.testing.assert_allclose(executor.run(program, feed, [y.name], scope)[0], want, rtol=1e-4, atol=1e-5)
print(library.LIBRARY.ran, library.LIBRARY.num_threads() == (os.cpu_count() or 1), library.LIBRARY.status(), sep="|")
"""


def test_a_net_on_such_a_library_has_numpys_numbers(monkeypatch):
    plain_library()  # or skipped
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    command = [sys.executable, "-W", "ignore", "-c", ELSEWHERE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    ran, threads, status = done.stdout.strip().split("|") if not done.returncode else pytest.fail(done.stderr)
    assert (ran, threads) == ("True", "True")
    assert status.startswith("oneDNN 3.2.0, ") and status.endswith("runner not used: as a test wants it")


def test_what_it_says_where_something_is_missing(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(wheels.platform, "machine", lambda: "AMD64")
    assert "not installed (pip install onednn-cpu-vcomp==2023.2.0)" in Library().status()
    monkeypatch.setattr(wheels, "installed", lambda name, end: None if name == "msvc-runtime" else Path("dnnl.dll"))
    status = Library().status()
    assert "msvcp140.dll: cannot open" in status and status.endswith("or pip install msvc-runtime")
    monkeypatch.setattr(wheels.platform, "machine", lambda: "ARM64")
    assert "no wheel of it for win32 on ARM64" in Library().status()
    runner = Runner()
    runner.load()
    assert runner.problem == "it is for Linux alone" and runner.run is None


def test_what_the_system_lacks_comes_from_the_other_wheel(monkeypatch):
    loaded = list[str]()

    def cdll(name: str) -> str:
        loaded.append(name)
        if name == "vcomp140.dll":
            raise OSError(name)
        return name

    monkeypatch.setattr(wheels, "CDLL", cdll)
    monkeypatch.setattr(wheels, "installed", lambda name, end: Path(name, end))
    library, openmp = wheels.opened(wheels.WHEELS["win32", "AMD64"])
    assert (library, openmp) == ("onednn-cpu-vcomp/dnnl.dll", "msvc-runtime/vcomp140.dll")
    assert loaded == ["msvcp140.dll", "vcomp140.dll", openmp, library]
    macos = wheels.opened(wheels.WHEELS["darwin", "x86_64"])
    assert macos == ("onednn-cpu-iomp/libdnnl.3.dylib",) * 2

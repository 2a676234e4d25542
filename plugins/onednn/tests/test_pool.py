"""The pool's threads: each share of a region is done once, by whoever comes first, and numbers are libgomp's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack.python.implementation import floating_point_state, without_denormals
from oprack_onednn.c import build as build_runner
from oprack_onednn.c.build import BuildError
from oprack_onednn.c.runner import RUNNER
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernel_library import KERNEL_LIBRARY
from oprack_onednn.threads.pool import POOL, Pool
from plain_library import plain_library

STRESS = Path(__file__).with_name("pool_stress.c")


def has_compiler() -> bool:
    try:
        build_runner.compiler()
    except BuildError:
        return False
    return True


LIBRARY.usable()
serves = pytest.mark.skipif(bool(POOL.problem), reason=f"the pool does not serve: {POOL.problem}")


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_each_share_is_done_once(tmp_path):
    """Regions of three threads at once, inside each other, with barriers, after rests and while a team rests."""
    program = tmp_path / "stress"
    folder = build_runner.SOURCES[0].parent
    command = [*build_runner.compiler(), "-std=gnu99", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{folder}"]
    subprocess.run([*command, str(STRESS), str(folder / "exit.c"), "-o", str(program)], check=True, timeout=60)
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


# In a process of its own, which prints digests of forward and backward results: convolutions that share weights'
# gradients among threads, products, recurrent layers and a batch norm, which has barriers inside its regions.
NUMBERS = """
import hashlib, sys
import numpy as np
import oprack
import oprack_onednn
from oprack import functional as F
from oprack_onednn.dnnl import library
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernel_library import KERNEL_LIBRARY
from oprack_onednn.threads.pool import POOL

oprack_onednn.set_num_threads(int(sys.argv[1]))
library.FILE = sys.argv[2]
random = np.random.default_rng(0)
digest = hashlib.sha256()

def normal(*shape):
    return oprack.to_tensor(random.standard_normal(shape, dtype=np.float32), requires_grad=True)

with KERNEL_LIBRARY.without_size_limits():
    for size in (9, 24, 57):
        x, w, v = normal(4, 16, size, size), normal(32, 16, 3, 3), normal(32, 48)
        scale, bias, mean, variance = (oprack.to_tensor(np.full(32, v, np.float32)) for v in (1, 0, 0, 1))
        y = F.conv2d(x, w, paddings=[1, 1])
        z = F.batch_norm(y, scale, bias, mean, variance).y
        out = F.matmul_v2(F.reduce_mean(F.relu(z), dim=[2, 3]), v)
        F.reduce_sum(F.softmax(out) * out, reduce_all=True).backward()
        for array in (out.numpy(), x.grad.numpy(), w.grad.numpy(), v.grad.numpy()):
            digest.update(np.ascontiguousarray(array).tobytes())
print("libgomp" if POOL.problem else "pool", digest.hexdigest(), LIBRARY.ran)
"""


def numbers(threads: int, file: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", NUMBERS, str(threads), str(file)],
        **dict(capture_output=True, text=True, timeout=120, check=False),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@serves
def test_numbers_are_those_of_libgomp_bit_by_bit():
    pool, libgomp = numbers(3, build_runner.LIBRARY), numbers(3, plain_library())
    assert pool[0] == "pool" and libgomp[0] == "libgomp"
    assert pool[1:] == libgomp[1:] and pool[2] == "True"


# Python threads come and go, each with a team of four. Threads that compile primitives go later, and none of them has
# anything to do while a team works.
THREADS = """
import os, threading, time
import numpy as np
import oprack, oprack_onednn
from oprack import functional as F

oprack_onednn.set_num_threads(4)
x = oprack.to_tensor(np.ones((8, 16, 64, 64), np.float32))
w = oprack.to_tensor(np.ones((16, 16, 3, 3), np.float32))
most = []
def team():
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as name:
                names.append(name.read().strip())
        except OSError:
            pass  # it has ended
    return names.count("oprack-pool")
def work():
    assert F.conv2d(x, w, paddings=[1, 1]).numpy()[0, 0, 1, 1] == 144
    most.append(team())
for _ in range(6):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    end = time.monotonic() + 10
    while team() and time.monotonic() < end:
        time.sleep(0.001)  # Python does not wait for the end of a thread to the last
print(min(most), max(most), team())
"""


@serves
def test_a_team_goes_with_its_thread():
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3", "3", "0"]  # the Python thread has three workers


def test_a_library_on_libgomp(monkeypatch):
    class OnLibgomp:
        omp_set_num_threads = staticmethod(lambda count: None)
        omp_get_max_threads = staticmethod(lambda: 5)

    pool = Pool()
    monkeypatch.setattr(OnLibgomp.omp_set_num_threads, "argtypes", (), raising=False)
    pool.find(OnLibgomp())
    assert "no C compiler, or no patchelf" in pool.problem and pool.max_threads() == 5
    monkeypatch.setattr(POOL, "problem", pool.problem)
    monkeypatch.setattr(RUNNER, "problem", "")
    assert LIBRARY.status().endswith(f"libgomp's threads: {pool.problem}")


@serves
@pytest.mark.skipif(floating_point_state() is None, reason="denormal numbers are kept there")
def test_threads_flush_denormals_when_the_one_that_starts_them_does():
    """Predictors flush, executors do not; the pool is the same."""
    x, w = np.full((4096, 64), 1e-30, np.float32), np.full((64, 64), 1e-12, np.float32)
    with KERNEL_LIBRARY.limit_threads(4):
        for _ in range(3):
            product = without_denormals(F.matmul_v2, oprack.to_tensor(x), oprack.to_tensor(w))
            assert not product.numpy().any()
            assert F.matmul_v2(oprack.to_tensor(x), oprack.to_tensor(w)).numpy().all()

"""Signals that arrive while primitives run leave memory and results as they are."""

from __future__ import annotations

import subprocess
import sys

import pytest
from oprack_onednn.c import build as build_runner
from plain_library import plain_library

# Some hundred signals while products of ever other numbers of rows run; the primitives are asked for the same numbers
# with and without signals. In a process of its own: pytest's faulthandler has a stack for signals already.
SIGNALS = """
import signal
import sys
import threading
import numpy as np
from oprack_onednn.kernels.matmul import product
from oprack_onednn.dnnl.library import LIBRARY, set_num_threads
assert LIBRARY.usable()
set_num_threads(int(sys.argv[1]))
count = [0]
def handle(number, frame):
    count[0] += 1
signal.signal(signal.SIGPROF, handle)
def timer(seconds):
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
def work():
    rng = np.random.default_rng(0)
    size = 256
    draw = lambda *shape: (rng.standard_normal(shape) * 0.05).astype(np.float32)
    weight = draw(size, 3 * size)
    for rows in rng.integers(5, 900, 24):
        x = draw(rows, size)
        timer(0.001)
        disturbed = [product(x, weight) for _ in range(8)]
        timer(0)
        assert all(np.array_equal(y, product(x, weight)) for y in disturbed), rows
if sys.argv[2] == "main":
    work()
else:
    failures = []
    def guarded():
        try:
            work()
        except BaseException as error:
            failures.append(error)
    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    assert not failures, failures
print(count[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no wheel of the library for other systems")
@pytest.mark.parametrize("where", ["main", "another thread"])
@pytest.mark.parametrize("threads", [1, 2])
def test_signals_while_products_run(threads: int, where: str) -> None:
    command = [sys.executable, "-c", SIGNALS, str(threads), where]
    done = subprocess.run(command, timeout=120, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 0


TEAM = """
import os
import sys
import numpy as np
from oprack import functional as F, to_tensor
from oprack_onednn.dnnl import library
from oprack_onednn.dnnl.library import LIBRARY, set_num_threads
def blocked():
    masks = {}
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/status") as status:
            masks[int(task)] = next(int(line.split()[1], 16) for line in status if line.startswith("SigBlk"))
    return masks
library.FILE = sys.argv[1]
assert LIBRARY.usable()
x, y = (to_tensor(np.ones((512, 512), np.float32)) for _ in range(2))
float((x.numpy() @ y.numpy()).sum())  # starts NumPy's threads
before = set(blocked())
for count in (3, 2, 3):
    set_num_threads(count)
    F.matmul_v2(x, y)
    after = blocked()
    workers = [mask for task, mask in after.items() if task not in before]
    # all but SIGKILL, SIGSTOP and the two that glibc keeps for itself
    assert len(workers) >= count - 1 and all(bin(mask).count("1") >= 60 for mask in workers), (count, after)
    assert after[os.getpid()] == 0
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("on", ["the pool", "libgomp"])
def test_workers_take_no_signals(on: str) -> None:
    """Also those that a team gets when it grows again."""
    file = build_runner.LIBRARY if on == "the pool" else plain_library()
    command = [sys.executable, "-c", TEAM, str(file)]
    done = subprocess.run(command, timeout=60, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")

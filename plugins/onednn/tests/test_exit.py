"""A process ends as it should while threads compute."""

from __future__ import annotations

import subprocess
import sys

import pytest
from oprack_onednn.c.runner import RUNNER
from oprack_onednn.dnnl.library import LIBRARY

LIBRARY.usable()
pytestmark = pytest.mark.skipif(bool(RUNNER.problem), reason=f"the runner does not serve: {RUNNER.problem}")

# Children that end one after the other, each while daemon threads are in native calls: runs of a chain, loops beside
# oneDNN, and first runs of shapes that are new.
DAEMONS = """
import itertools, os, sys, threading
import numpy as np
import oprack
from oprack import functional as F

def convolve(begun):
    x, w = np.ones((2, 16, 64, 64), np.float32), np.ones((16, 16, 3, 3), np.float32)
    x, w = oprack.to_tensor(x), oprack.to_tensor(w)
    while True:
        F.conv2d(x, w, paddings=[1, 1])
        begun.set()

def normalise(begun):
    x = oprack.to_tensor(np.ones((8, 16, 64, 64), np.float32), requires_grad=True)
    scale, bias, mean, variance = (oprack.to_tensor(np.full(16, v, np.float32)) for v in (1, 0, 0, 1))
    while True:
        F.reduce_sum(F.batch_norm(x, scale, bias, mean, variance).y, reduce_all=True).backward()
        begun.set()

def compile(begun):
    for size in itertools.count(16):
        x = oprack.to_tensor(np.ones((1, 16, size, size), np.float32))
        F.conv2d(x, oprack.to_tensor(np.ones((16, 16, 3, 3), np.float32)))
        begun.set()

for _ in range(10):
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
for work in (convolve, convolve, normalise, compile):
    begun = threading.Event()
    threading.Thread(target=work, args=(begun,), daemon=True).start()
    assert begun.wait(30)
sys.exit(7)
"""


def ended(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_daemon_threads_that_compute_leave_the_exit_status():
    done = ended(DAEMONS)
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", ["7"] * 10)


# Handlers that were registered before oneDNN was opened run after the one that lets no run begin: they may run
# something, and wait for a thread that does.
HANDLER = """
import atexit, threading
import numpy as np
import oprack
from oprack import functional as F

x = oprack.to_tensor(np.ones((2, 16, 64, 64), np.float32))
w = oprack.to_tensor(np.ones((16, 16, 3, 3), np.float32))
stop, begun = threading.Event(), threading.Event()

def work():
    while not stop.is_set():
        F.conv2d(x, w, paddings=[1, 1])
        begun.set()

def end():
    stop.set()
    thread.join()
    print(F.conv2d(x, w, paddings=[1, 1]).numpy()[0, 0, 1, 1])

atexit.register(end)
thread = threading.Thread(target=work, daemon=True)
thread.start()
assert begun.wait(30)
"""


def test_an_exit_handler_may_compute_and_wait_for_threads():
    done = ended(HANDLER)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "144.0\n")

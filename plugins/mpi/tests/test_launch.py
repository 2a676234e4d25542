"""Programs on two ranks, started by `oprack launch`: collectives, and ranks that fail in every way."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")
LIMIT = 2

COLLECTIVES = """
import numpy as np
from oprack import parallel
w = parallel.init()
n, r = w.size, w.rank
x = np.arange(6, dtype=np.float32).reshape(2, 3) + 10 * r
whole = sum(np.arange(6, dtype=np.float32).reshape(2, 3) + 10 * k for k in range(n))
np.testing.assert_array_equal(w.all_reduce(x), whole)
np.testing.assert_array_equal(w.all_reduce(x, "max"), np.arange(6, dtype=np.float32).reshape(2, 3) + 10 * (n - 1))
for dtype in ("float16", "bool", "int64", "float64", "complex64", "uint8"):
    y = np.ones((2, 2), dtype)
    total = w.all_reduce(y)
    assert total.dtype == y.dtype, (total.dtype, y.dtype)
    np.testing.assert_array_equal(w.all_gather(y), np.ones((2 * n, 2), dtype))
rows = [k + 1 for k in range(n)]
own = np.full((rows[r], 2), r, np.int32)
np.testing.assert_array_equal(w.all_gather(own, rows), np.repeat(np.arange(n), rows)[:, None].repeat(2, 1))
whole = np.arange(sum(rows) * 2, dtype=np.float64).reshape(-1, 2)
start = sum(rows[:r])
np.testing.assert_array_equal(w.reduce_scatter(whole, rows), n * whole[start:start + rows[r]])
parts = [np.full((r + 1, k + 1), 10 * r + k, np.float32) for k in range(n)]
for k, got in enumerate(w.all_to_all(parts, [(k + 1, r + 1) for k in range(n)])):
    np.testing.assert_array_equal(got, np.full((k + 1, r + 1), 10 * k + r))
np.testing.assert_array_equal(w.broadcast(np.full(3, r), 1), np.full(3, 1))
if r == 0:
    w.send(x, 1)
elif r == 1:
    np.testing.assert_array_equal(w.receive((2, 3), np.float32, 0), np.arange(6).reshape(2, 3))
assert w.gather_facts({"rank": r, "text": "a" * r}) == [{"rank": k, "text": "a" * k} for k in range(n)]
grid = parallel.placement("cpu", (n, 1), ("data", "tensor"))
z = np.arange(20.0).reshape(4, 5)
part = parallel.box(z, z.shape, grid.layout(["B", "B"]), grid.layout(["S(1)", "B"]))
np.testing.assert_array_equal(parallel.box(part, z.shape, grid.layout(["S(1)", "B"]), grid.layout(["B", "B"])), z)
print(f"rank {r} of {n} is done")
"""

FAILURES = {
    "raises": (
        "raise ZeroDivisionError('one too many')",
        r"rank 1 of 2 .*failed: ZeroDivisionError: one too many; at File .*line",
    ),
    "is killed": (
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        r"rank 1 on .*killed by signal 9 \(SIGKILL\); out of memory",
    ),
    "ends": ("import os; os._exit(7)", r"rank 1 on .*exit status 7"),
    "hangs": (
        "import time; time.sleep(60)",
        r"rank 0 of 2 .*waits for more than 2 s in collective number \d+ of world: all_reduce_sum",
    ),
}
STEP = """
import sys, numpy as np
from oprack import parallel
w = parallel.init()
w.all_reduce(np.ones(2, np.float32))
if w.rank == 1:
    {trouble}
w.all_reduce(np.ones(2, np.float32))
"""


def launch(path: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    path.write_text(text)
    command = [sys.executable, "-m", "oprack", "launch", *options, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_collectives_of_two_ranks(tmp_path):
    done = launch(tmp_path / "collectives.py", COLLECTIVES, "-n", "2", "--timeout", "20")
    assert done.returncode == 0, done.stderr
    assert "rank 0 of 2 is done" in done.stdout  # lines of two ranks may get into each other
    assert "rank 1 of 2 is done" in done.stdout


@pytest.mark.parametrize("way", FAILURES)
def test_all_ranks_end_when_one(way, tmp_path):
    trouble, message = FAILURES[way]
    start = time.monotonic()
    done = launch(tmp_path / "step.py", STEP.format(trouble=trouble), "-n", "2", "--timeout", str(LIMIT))
    assert done.returncode != 0
    assert re.search(message, done.stderr, re.DOTALL), done.stderr
    assert "failed first" in done.stderr
    assert (
        time.monotonic() - start < 30
    )  # the limit, the start of Python on a busy machine, and no end that never comes


def test_restarts_run_the_program_again(tmp_path):
    text = f"""
import pathlib, sys
mark = pathlib.Path({str(tmp_path)!r}) / "tried"
if not mark.exists():
    mark.touch()
    sys.exit(3)
"""
    done = launch(tmp_path / "again.py", text, "-n", "1", "--restarts", "1")
    assert done.returncode == 0, done.stderr
    assert "starts again (1 of 1)" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [(("-n", "0"), "expected at least one rank"), (("-n", "1", "--restarts", "-1"), "no negative number")],
)
def test_options_that_make_no_sense_are_refused(options, message, tmp_path):
    done = launch(tmp_path / "x.py", "", *options)
    assert done.returncode != 0
    assert message in done.stderr


def test_importing_oprack_parallel_imports_no_engine():
    text = "import sys, oprack.parallel as p; assert p.world().size == 1; print('mpi4py' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

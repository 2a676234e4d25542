"""Programs on two ranks, started by `oprack launch`: collectives, and ranks that fail in every way."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from oprack.errors import InvalidArgumentError, NotFoundError
from oprack_parallel.launch.engines import SORTS, TCP, Engine, find_engine
from oprack_parallel.launch.launcher import _asked, environment

LIMIT = 2

COLLECTIVES = """
import contextlib, zlib
import numpy as np, oprack
from oprack import nn, optimizer, parallel
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
    assert w.record[-1].endswith("receive from rank 0: float32[2, 3]"), w.record
assert w.gather_facts({"rank": r, "text": "a" * r}) == [{"rank": k, "text": "a" * k} for k in range(n)]
grid = parallel.placement("cpu", (n, 1), ("data", "tensor"))
z = np.arange(20.0).reshape(4, 5)
part = parallel.box(z, z.shape, grid.layout(["B", "B"]), grid.layout(["S(1)", "B"]))
np.testing.assert_array_equal(parallel.box(part, z.shape, grid.layout(["S(1)", "B"]), grid.layout(["B", "B"])), z)
beside = w.beside()
for ring in (getattr(beside, "_ring", None), None):  # by memory that the ranks share, and by MPI
    beside._ring = ring
    for dtype, size in (("float32", 7), ("float32", 700_001), ("float16", 20_000), ("int32", 300_000), ("bool", 9)):
        arrays = [np.random.default_rng(k).integers(0, 2, size).astype(dtype) for k in range(n)]
        total = np.sum(arrays, 0).astype(dtype)
        counts = [size // n + (k == n - 1) * (size % n) for k in range(n)]
        mine = slice(sum(counts[:r]), sum(counts[:r + 1]))
        whole, largest = np.zeros(size, dtype), beside.memory(size, total)
        whole[mine] = total[mine]
        transfers = [
            beside.start_all_reduce(arrays[r]),
            beside.start_all_reduce(arrays[r], "max"),
            beside.start_reduce_scatter(arrays[r], counts),
            beside.start_all_gather(whole, counts),
            beside.start_all_reduce(arrays[r], factor=2.0),
            beside.start_all_reduce(arrays[r], "max", out=largest),
        ]
        wanted = [total, np.max(arrays, 0), total[mine], total, total + total, np.max(arrays, 0)]
        for k, (transfer, want) in enumerate(zip(transfers, wanted)):
            found = transfer.wait()
            assert found.dtype == want.dtype
            np.testing.assert_array_equal(found, want, err_msg=f"{k} {dtype} {size}")
        assert (largest is not None) == (ring is not None and total.nbytes >= 1 << 14)
    # Parameters may lie in one memory of all ranks, and what a rank writes to its own is nobody else's.
    net = nn.Linear(64, 128)
    zero = parallel.Zero(optimizer.Momentum(0.5, 0.9, parameters=net.parameters()), stage=2)
    first, mean, pace = net.weight.numpy().copy(), (n + 1) / 2, 0.0
    for step in range(4):
        net(oprack.to_tensor(np.full((1, 64), r + 1.0, "float32"))).sum().backward()
        zero.step()
        zero.clear_grad()
        pace = 0.9 * pace + mean
        first = first - 0.5 * pace
        if r == 0:
            net.weight.set_value(np.zeros((64, 128), "float32"))
        w.barrier()
        if r:
            np.testing.assert_allclose(net.weight.numpy(), first, rtol=1e-5)
        first = 2 * first if step == 1 else first
        if r == 0 or step == 1:
            net.weight.set_value(first.astype("float32"))
    # Means of large gradients lie in one memory of all ranks as well, and what somebody has of them stays as it is.
    net = nn.Linear(512, 512)
    both, ones = parallel.DataParallel(net), oprack.to_tensor(np.ones((1, 512), "float32"))
    def mean(factor):
        (both(ones * (factor * (r + 1.0))).sum() + 0.0 * net.bias.sum()).backward()
    mean(1.0)
    net.clear_grad()
    mean(2.0)
    assert net.weight._grad._lent == (beside._ring is not None)
    mean(3.0)  # adds up
    kept = net.weight.grad.numpy()
    net.clear_grad()
    mean(4.0)
    net.bias.sum().backward()  # sends the mean that is there once more
    again = net.weight.grad
    net.clear_grad()
    for part in (1.0, 6.0):
        with both.no_sync() if part < 2.0 else contextlib.nullcontext():
            mean(part) if r else net.bias.sum().backward()
    found = [kept, again.numpy(), net.weight.grad.numpy()]
    wanted = 5.0 * (n + 1) / 2, 4.0 * (n + 1) / 2, 7.0 * ((n + 1) / 2 - 1 / n)
    for got, want in zip(found, wanted):
        np.testing.assert_allclose(got, np.full((512, 512), want, "float32"), rtol=1e-6)
        assert all(a == zlib.crc32(got.tobytes()) for a in w.gather_facts(zlib.crc32(got.tobytes())))
    np.testing.assert_array_equal(net.bias.grad.numpy(), np.full(512, 2, "float32"))
print(f"rank {r} of {n} is done")
"""

# What rank 1 does, what is said at once, and what the launcher says last
FAILURES = {
    "raises": (
        "raise ZeroDivisionError('one too many')",
        r"rank 1 of 2 .*failed: ZeroDivisionError: one too many; at File .*line 7",
        r"rank 1 of 2 on \S+ failed first: ZeroDivisionError: one too many; at File .*line 7",
    ),
    "is killed": (
        "import os, signal, time; time.sleep(0.8); os.kill(os.getpid(), signal.SIGKILL)",
        r"rank 1 on .*killed by signal 9 \(SIGKILL\); out of memory",
        r"rank 1 of 2 on \S+ failed first: killed by signal 9 .*it was last seen at File .*line 7",
    ),
    "exits": (
        "sys.exit(0)",
        r"rank 0 of 2 .*waits for more than 2 s in collective number \d+ of world: all_reduce_sum",
        r"rank 0 of 2 on \S+ failed first: it waited .*all_reduce_sum.*rank 1 had come to the end of its program",
    ),
    "ends": (
        "import os; os._exit(7)",
        r"rank 1 on .*exit status 7",
        r"rank 1 of 2 on \S+ failed first: exit status 7",
    ),
    "exits with a text": (
        "sys.exit('no data')",
        r"no data.*rank 1 of 2 .*failed: SystemExit: no data; at File .*line 7",
        r"rank 1 of 2 on \S+ failed first: SystemExit: no data; at File .*line 7",
    ),
    "hangs": (
        "import time; time.sleep(60)",
        r"rank 0 of 2 .*waits for more than 2 s in collective number \d+ of world: all_reduce_sum",
        r"rank 0 of 2 on \S+ failed first: it waited .*all_reduce_sum.*rank 1 was last seen at File .*line 7",
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


@pytest.fixture(params=[*SORTS, TCP])
def engine(request: pytest.FixtureRequest) -> Engine:
    """TCP, and each MPI that this environment has."""
    try:
        return find_engine(request.param)
    except NotFoundError as e:
        pytest.skip(str(e))


def launch(path: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    path.write_text(text)
    command = [sys.executable, "-m", "oprack", "launch", *options, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_collectives_of_two_ranks(tmp_path, engine):
    options = ("-n", "2", "--timeout", "20", "--engine", engine.mpiexec or engine.sort)
    done = launch(tmp_path / "collectives.py", COLLECTIVES, *options)
    assert done.returncode == 0, done.stderr
    assert "rank 0 of 2 is done" in done.stdout  # lines of two ranks may get into each other
    assert "rank 1 of 2 is done" in done.stdout


@pytest.mark.parametrize("way", FAILURES)
def test_all_ranks_end_when_one(way, tmp_path, engine):
    if engine.sort == TCP and way != "is killed":
        pytest.skip("nothing of the engine's own is in it, or tests/test_tcp.py has it")
    trouble, at_once, last = FAILURES[way]
    start = time.monotonic()
    options = ("-n", "2", "--timeout", str(LIMIT), "--engine", engine.mpiexec or engine.sort)
    done = launch(tmp_path / "step.py", STEP.format(trouble=trouble), *options)
    took = time.monotonic() - start
    assert done.returncode != 0
    assert re.search(at_once, done.stderr, re.DOTALL), done.stderr
    assert re.search("oprack launch: " + last, done.stderr, re.DOTALL), done.stderr
    assert "The last checkpoint that it saved: none" in done.stderr
    assert took < 30  # the limit, the start of Python on a busy machine, and no end that never comes


def test_a_rank_that_waits_for_gradients_says_what_helps(tmp_path):
    text = """
import numpy as np, oprack
from oprack import nn, parallel
w = parallel.init()
net = parallel.DataParallel(nn.Linear(4, 2))
for batch in range(2 - w.rank):
    net(oprack.to_tensor(np.ones((3, 4), "f4"))).sum().backward()
"""
    done = launch(tmp_path / "fewer.py", text, "-n", "2", "--timeout", str(LIMIT))
    assert done.returncode == 75
    assert "loop over parallel.even_batches(batches)" in done.stderr
    assert (
        launch(
            tmp_path / "even.py",
            text.replace("range(2 - w.rank)", "parallel.even_batches(range(2 - w.rank))"),
            "-n",
            "2",
        ).returncode
        == 0
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ranks_end_with_their_launcher(number, tmp_path):
    """As when a scheduler ends a job, or a machine runs out of memory."""
    program = tmp_path / "healthy.py"
    program.write_text(
        "import os, pathlib, time, numpy as np\nfrom oprack import parallel\nw = parallel.init()\n"
        f"pathlib.Path({str(tmp_path)!r}, f'{{os.getpid()}}.pid').touch()\n"
        "for k in range(600):\n    w.all_reduce(np.ones(4))\n    time.sleep(0.1)\n"
    )
    command = [sys.executable, "-m", "oprack", "launch", "-n", "2", str(program)]
    launcher = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
        ranks = [int(path.stem) for path in tmp_path.glob("*.pid")]
        launcher.send_signal(number)
        assert launcher.wait(15) == (128 + number if number == signal.SIGTERM else -number)
        wait_until(lambda: not any(runs(pid) for pid in ranks))
    finally:
        launcher.kill()
        launcher.communicate()


def test_a_signal_that_ends_mpiexec_at_once_ends_the_launcher(tmp_path):
    """It is not taken for a rank that failed, after which the program would start again."""
    engine = tmp_path / "mpiexec"
    engine.write_text("#!/bin/sh\n[ $1 = -n ] || exit 0\nsleep 0.9\nkill -TERM $PPID\nexit 15\n")
    engine.chmod(0o755)
    done = launch(tmp_path / "any.py", "", "-n", "2", "--engine", str(engine), "--restarts", "1")
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stderr.endswith("oprack launch: ended by SIGTERM\n")


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def mpiexec(folder: Path, said: str, *libraries: str) -> str:
    """A program that says so when it is asked for its version, with libraries where an installation has them."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "lib").mkdir(exist_ok=True)
    path = folder / "bin" / "mpiexec"
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(0o755)
    for name in libraries:
        (folder / "lib" / name).touch()
    return str(path)


@pytest.mark.parametrize(
    ("said", "sort", "library", "hosts"),
    [
        ("HYDRA build details:", "mpich", "libmpi.so.12", ["-hosts", "a,b"]),
        ("mpiexec (Open MPI) 5.0.11", "openmpi", "libmpi.so.40", ["--map-by", ":OVERSUBSCRIBE", "--host", "a,b"]),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.18", "impi", "libmpi.so.12", ["-hosts", "a,b"]),
    ],
)
def test_an_mpiexec_says_of_which_sort_it_is(said, sort, library, hosts, tmp_path, monkeypatch):
    path = mpiexec(tmp_path, said, "libmpi.so.12", "libmpi.so.40")
    monkeypatch.setenv("OPRACK_MPI", path)
    engine = find_engine()
    assert (engine.sort, engine.mpiexec) == (sort, path)
    assert engine.options(3, "a,b") == ["-n", "3", *hosts]
    variables = environment({"I_MPI_FABRICS": "ofi"}, engine, 10_000, "", 7)
    assert variables["MPI4PY_LIBMPI"] == str(tmp_path / "lib" / library)
    assert variables["I_MPI_FABRICS"] == "ofi"  # what the user has set counts
    assert variables["MPIR_CVAR_ENABLE_HEAVY_YIELD"] == "1"  # there are fewer cores than ranks
    assert (variables["OMP_NUM_THREADS"], variables["OPRACK_COLLECTIVE_TIMEOUT"]) == ("1", "7")


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


def test_links_are_measured_and_read_again(tmp_path, monkeypatch):
    out = tmp_path / "links.json"
    command = [sys.executable, "-m", "oprack", "parallel", "bench", "-n", "2", "--axis", "tensor", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "all_reduce of float32 on 2 ranks, engine mpi" in done.stdout
    link = json.loads(out.read_text())["links"]["tensor"]
    assert 0 <= link["latency"] < 0.1
    assert link["bandwidth"] > 1e6
    monkeypatch.setenv("OPRACK_LINKS", str(out))
    text = "from oprack import parallel; print(parallel.world().links.of('tensor').bandwidth)"
    done = launch(tmp_path / "links.py", text, "-n", "2")
    assert done.stdout.count(str(link["bandwidth"])) == 2, done.stderr  # lines of two ranks may get into each other


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-n", "0"), "expected at least one rank"),
        (("-n", "1", "--restarts", "-1"), "no negative number"),
        (
            ("--engine", "openmp"),
            "engine 'openmp' (did you mean openmpi?); expected mpich, openmpi, impi, tcp, or",
        ),
        (("--engine", "/no/mpiexec"), "'/no/mpiexec' is no program"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message, tmp_path):
    done = launch(tmp_path / "x.py", "", *options)
    assert done.returncode != 0
    assert message in done.stderr


def test_importing_oprack_parallel_imports_no_engine():
    text = "import sys, oprack.parallel as p; assert p.world().size == 1; print('mpi4py' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


SHRINKS = """
import os, signal, sys, numpy as np
from oprack import parallel
w = parallel.init()
if w.size > 1 and w.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
w.all_reduce(np.ones(2))
sys.stdout.write(f"rank {w.rank} of {w.size} is done\\n")
"""


def test_a_job_starts_again_without_a_rank_that_was_killed(tmp_path):
    record = tmp_path / "record.json"
    options = ("--engine", "tcp", "-n", "2", "--min-ranks", "1", "--restarts", "2", "--record", str(record))
    done = launch(tmp_path / "shrinks.py", SHRINKS, *options)
    assert done.returncode == 0, done.stderr
    assert "starts again (1 of 2), with 1 rank\n" in done.stderr
    assert done.stdout == "rank 0 of 1 is done\n"
    noted = json.loads(record.read_text())
    assert (noted["first"], noted["size"], noted["attempt"]) == ("1", 2, 0)
    assert "killed by signal 9" in noted["ranks"]["1"]["failed"]
    last = noted["ranks"]["0"]["collectives"][-1]
    assert re.match(r"number \d of world: all_reduce_sum float64\[2\]", last)


def test_a_command_says_how_many_ranks_may_run(tmp_path, monkeypatch):
    """First too few, then more than there may be, and after a failure fewer."""
    monkeypatch.setattr("oprack_parallel.launch.launcher._ASK_AGAIN", 0.01)
    asked = tmp_path / "asked"
    asked.write_text("1\n5\n2 a,b\n")
    command = f"head -1 {asked}; sed -i 1d {asked}"
    assert [_asked(command, 2, 3, "") for _ in range(2)] == [(3, ""), (2, "a,b")]
    with pytest.raises(InvalidArgumentError, match="printed '' and ended with 0; expected a number of ranks"):
        _asked(command, 2, 3, "")


def test_signals_reach_a_rank_once_and_leave_time_to_save(tmp_path):
    program = tmp_path / "saves.py"
    program.write_text(f"""
import pathlib, signal, time
from oprack import parallel
got = []
for number in (signal.SIGUSR1, signal.SIGTERM):
    signal.signal(number, lambda number, _: got.append(number))
w = parallel.init()
w.barrier()
mark = pathlib.Path({str(tmp_path)!r}, f"rank{{w.rank}}")
mark.touch()
end = time.monotonic() + 20
while len(got) < 2 and time.monotonic() < end:
    time.sleep(0.02)
time.sleep(0.3)
mark.write_text(" ".join(str(int(number)) for number in got))
""")
    command = [sys.executable, "-m", "oprack", "launch", "--engine", "tcp", "-n", "1", "--grace", "15", str(program)]
    launcher = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        wait_until((tmp_path / "rank0").exists)
        launcher.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(15) == 128 + signal.SIGTERM
    finally:
        launcher.kill()
        launcher.communicate()
    assert (tmp_path / "rank0").read_text() == f"{int(signal.SIGUSR1)} {int(signal.SIGTERM)}"

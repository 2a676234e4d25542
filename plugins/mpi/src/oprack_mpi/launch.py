"""The command `oprack launch`: starts a program on several ranks by mpiexec, and says which rank failed first."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from oprack.errors import InvalidArgumentError, NotFoundError
from oprack.parallel.watchdog import TIMEOUT

from oprack_mpi.engines import ENGINE, SORTS, Engine, find_engine
from oprack_mpi.reports import first_failure, first_report

_GRACE = 3.0
"""Seconds that mpiexec has to end the other ranks once one of them has reported that it failed."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("-n", "--ranks", type=int, default=os.cpu_count() or 1, help="how many (default: one a core)")
    parser.add_argument("--hosts", default="", metavar="A,B", help="machines, which ssh reaches (default: this one)")
    parser.add_argument(
        "--engine",
        default="",
        metavar="MPI",
        help=f"{', '.join(SORTS)}, or the path of an mpiexec (default: what {ENGINE} says, else the first found)",
    )
    parser.add_argument("--restarts", type=int, default=0, help="start again so many times when a rank fails")
    parser.add_argument("--timeout", type=float, help="seconds that a collective waits for other ranks (default: 300)")
    parser.add_argument("program", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the program; returns its exit status, 0 when every rank ended with 0."""
    if args.ranks < 1 or args.restarts < 0 or (args.timeout is not None and args.timeout < 0):
        raise InvalidArgumentError(
            f"oprack launch: -n {args.ranks} --restarts {args.restarts} --timeout {args.timeout}; expected at least "
            "one rank, and no negative number"
        )
    if not Path(args.program).is_file():
        raise NotFoundError(f"oprack launch: there is no file {args.program!r}; expected a Python program")
    engine = find_engine(args.engine)
    variables = environment(os.environ, engine, args.ranks, args.hosts, args.timeout)
    for attempt in range(args.restarts + 1):
        with tempfile.TemporaryDirectory(prefix="oprack-launch-") as folder:
            rank = [sys.executable, "-m", "oprack_mpi.rank", folder, args.program, *args.arguments]
            command = [engine.mpiexec, *engine.options(args.ranks, args.hosts), *rank]
            status = _waited(subprocess.Popen(command, env=variables), Path(folder))
            if status == 0:
                return 0
            print(f"oprack launch: {first_failure(Path(folder), args.ranks, status)}", file=sys.stderr, flush=True)
        if attempt < args.restarts:
            print(f"oprack launch: starts again ({attempt + 1} of {args.restarts})", file=sys.stderr, flush=True)
    return status if 0 < status < 256 else 1


def environment(
    variables: Mapping[str, str], engine: Engine, ranks: int, hosts: str, timeout: float | None
) -> dict[str, str]:
    """Variables of the ranks; what the user has set counts."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    defaults = engine.variables(ranks, cores, hosts) | {"OMP_NUM_THREADS": str(max(1, cores // ranks))}
    found = defaults | dict(variables)
    if timeout is not None:
        found[TIMEOUT] = f"{timeout:g}"
    return found


def _waited(process: subprocess.Popen[bytes], reports: Path) -> int:
    """The exit status of mpiexec, which is ended when it outlives a failed rank; Ctrl-C is passed on."""
    failed = 0.0
    while True:
        try:
            return process.wait(0.2)
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
        except subprocess.TimeoutExpired:
            if not failed:
                failed = time.monotonic() if first_report(reports) else 0.0
            elif time.monotonic() - failed > _GRACE:
                process.kill() if time.monotonic() - failed > 2 * _GRACE else process.terminate()

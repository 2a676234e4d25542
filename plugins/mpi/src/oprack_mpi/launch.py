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
from typing import Any

from oprack.errors import InvalidArgumentError, NotFoundError
from oprack.parallel.watchdog import TIMEOUT

from oprack_mpi.engines import ENGINE, SORTS, Engine, find_engine
from oprack_mpi.reports import end_with_parent, ended_early, first_failure, first_report

_GRACE = 3.0
"""Seconds that mpiexec has to end the other ranks once one of them has reported that it failed, or it got a signal."""
_EARLY = 5.0
"""Seconds after which it is said that a rank has come to its end while others run."""
_SIGNALS = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
"""By which a user, a scheduler or a closed terminal ends the launcher."""


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
            number, status = _Job(command, variables, Path(folder), args.ranks).waited()
            if number:
                print(f"oprack launch: ended by {signal.Signals(number).name}", file=sys.stderr, flush=True)
                return 128 + number
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


class _Job:
    """mpiexec and what it started, which end when the launcher is told to end, or ends itself."""

    def __init__(self, command: list[str], variables: Mapping[str, str], reports: Path, ranks: int) -> None:
        self._reports, self._ranks = reports, ranks
        self._signal, self._since = 0, 0.0
        self._told = False
        # A launcher that is killed can tell nobody; mpiexec ends its ranks when it gets SIGTERM.
        self._process = subprocess.Popen(command, env=variables, preexec_fn=lambda: end_with_parent(signal.SIGTERM))

    def waited(self) -> tuple[int, int]:
        """(the signal that ended the launcher, or 0; the exit status of mpiexec)."""
        before = {number: signal.signal(number, self._ended_by) for number in _SIGNALS}
        try:
            while True:
                try:
                    status = self._process.wait(0.2)
                    return self._signal, status  # looked at after the wait, in which a signal may have come
                except subprocess.TimeoutExpired:
                    self._look()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _ended_by(self, number: int, _: Any) -> None:
        self._signal = number
        self._since = self._since or time.monotonic()
        self._process.send_signal(number if number == signal.SIGINT else signal.SIGTERM)

    def _look(self) -> None:
        """End mpiexec when it outlives a rank that failed, or a signal; say when a rank has ended before the others."""
        if not self._since:
            self._since = time.monotonic() if first_report(self._reports) else 0.0
        elif time.monotonic() - self._since > _GRACE:
            self._process.kill() if time.monotonic() - self._since > 2 * _GRACE else self._process.terminate()
        early = [] if self._told or self._since else ended_early(self._reports, self._ranks, _EARLY)
        if early:
            self._told = True
            who = f"rank {early[0]} has" if len(early) == 1 else f"ranks {', '.join(early)} have"
            print(
                f"oprack launch: {who} come to the end of the program, others still run; those that wait for it in a "
                "collective will fail when their limit is over",
                file=sys.stderr,
                flush=True,
            )

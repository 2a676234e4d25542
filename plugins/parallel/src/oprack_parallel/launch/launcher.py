"""The command `oprack launch`: starts a program on several ranks, says which failed first, and starts it again."""

from __future__ import annotations

import argparse
import json
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
from oprack.python.threads import cpus

from oprack_parallel.launch.engines import ENGINE, SORTS, TCP, Engine, find_engine
from oprack_parallel.launch.reports import (
    dead,
    end_with_parent,
    ended_early,
    first_failure,
    first_report,
    flight_record,
)
from oprack_parallel.launch.starter import PASSED

_GRACE = 3.0
"""Seconds that mpiexec has to end the other ranks once one of them has reported that it failed, or it got a signal."""
_ASK_AGAIN = 5.0
"""Seconds after which it is asked again how many ranks may run, while they are too few."""
_EARLY = 5.0
"""Seconds after which it is said that a rank has come to its end while others run."""
_ENDS = {signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])}
"""By which a user, a scheduler or a closed terminal ends the launcher; the program sees to the others of PASSED."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("-n", "--ranks", type=int, default=cpus(), help="how many (default: one a core)")
    parser.add_argument("--hosts", default="", metavar="A,B", help="machines, which ssh reaches (default: this one)")
    parser.add_argument(
        "--engine",
        default="",
        metavar="ENGINE",
        help=f"{', '.join(SORTS)}, or the path of an mpiexec (default: what {ENGINE} says, else the first found), or "
        f"{TCP}, which needs no MPI",
    )
    parser.add_argument("--restarts", type=int, default=0, help="start again so many times when a rank fails")
    parser.add_argument(
        "--min-ranks", type=int, metavar="N", help="start again without ranks that were killed, if so many remain"
    )
    parser.add_argument(
        "--ranks-from",
        default="",
        metavar="COMMAND",
        help="a command that prints how many ranks may run now, and on which --hosts; asked before each start, and "
        "again until there are --min-ranks; -n is the most",
    )
    parser.add_argument(
        "--grace", type=float, default=_GRACE, metavar="SECONDS", help="for ranks to end after SIGTERM (default: 3)"
    )
    parser.add_argument("--timeout", type=float, help="seconds that a collective waits for other ranks (default: 300)")
    parser.add_argument(
        "--record", default="", metavar="FILE", help="written with the last collectives of each rank when one fails"
    )
    parser.add_argument("program", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the program; returns its exit status, 0 when every rank ended with 0."""
    least = (1 if args.ranks_from else args.ranks) if args.min_ranks is None else args.min_ranks
    if min(args.restarts, args.timeout or 0, args.grace) < 0 or not 1 <= least <= args.ranks:
        raise InvalidArgumentError(
            f"oprack launch: -n {args.ranks} --restarts {args.restarts} --min-ranks {least} --timeout {args.timeout} "
            f"--grace {args.grace}; expected at least one rank, no more as the least than as the most, and no negative "
            "number"
        )
    if not Path(args.program).is_file():
        raise NotFoundError(f"oprack launch: there is no file {args.program!r}; expected a Python program")
    engine = find_engine(args.engine)
    ranks, hosts = args.ranks, args.hosts
    for attempt in range(args.restarts + 1):
        if args.ranks_from:
            ranks, hosts = _asked(args.ranks_from, least, args.ranks, hosts)
        with tempfile.TemporaryDirectory(prefix="oprack-launch-") as folder:
            rank = [sys.executable, "-m", "oprack_parallel.launch.rank", folder, args.program, *args.arguments]
            variables = environment(os.environ, engine, ranks, hosts, args.timeout)
            job = _Job([*engine.command(ranks, hosts), *rank], variables, Path(folder), ranks, args.grace)
            number, status = job.waited()
            if number:
                print(f"oprack launch: ended by {signal.Signals(number).name}", file=sys.stderr, flush=True)
                return 128 + number
            if status == 0:
                return 0
            print(f"oprack launch: {first_failure(Path(folder), ranks, status)}", file=sys.stderr, flush=True)
            if args.record:
                record = flight_record(Path(folder), ranks) | {"attempt": attempt, "program": args.program}
                Path(args.record).write_text(json.dumps(record, indent=1) + "\n")
            ranks = max(least, ranks - dead(Path(folder)))
        if attempt < args.restarts:
            said = "" if args.ranks_from or ranks == args.ranks else f", with {ranks} rank{'s' if ranks > 1 else ''}"
            print(f"oprack launch: starts again ({attempt + 1} of {args.restarts}){said}", file=sys.stderr, flush=True)
    return status if 0 < status < 256 else 1


def _asked(command: str, least: int, most: int, hosts: str) -> tuple[int, str]:
    """How many ranks may run now, and on which hosts, as a command says; waits until it says enough."""
    told = False
    while True:
        done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True, check=False)
        words = done.stdout.split()
        if done.returncode or not 1 <= len(words) <= 2 or not words[0].isdecimal():
            raise InvalidArgumentError(
                f"oprack launch --ranks-from {command!r}: it printed {done.stdout!r} and ended with {done.returncode}; "
                "expected a number of ranks, and it may be hosts as for --hosts behind it"
            )
        if int(words[0]) >= least:
            return min(int(words[0]), most), words[1] if len(words) > 1 else hosts
        if not told:
            told = True
            print(
                f"oprack launch: {words[0]} ranks may run, and {least} are the least (--min-ranks); waits for more",
                file=sys.stderr,
                flush=True,
            )
        time.sleep(_ASK_AGAIN)


def environment(
    variables: Mapping[str, str], engine: Engine, ranks: int, hosts: str, timeout: float | None
) -> dict[str, str]:
    """Variables of the ranks; what the user has set counts."""
    cores = cpus()
    defaults = engine.variables(ranks, cores, hosts) | {"OMP_NUM_THREADS": str(max(1, cores // ranks))}
    found = defaults | dict(variables)
    if timeout is not None:
        found[TIMEOUT] = f"{timeout:g}"
    return found


class _Job:
    """mpiexec and what it started, which end when the launcher is told to end, or ends itself."""

    def __init__(
        self, command: list[str], variables: Mapping[str, str], reports: Path, ranks: int, grace: float
    ) -> None:
        self._reports, self._ranks, self._grace = reports, ranks, grace
        self._signal, self._since = 0, 0.0
        self._told = False
        # A launcher that is killed can tell nobody; mpiexec ends its ranks when it gets SIGTERM.
        self._process = subprocess.Popen(command, env=variables, preexec_fn=lambda: end_with_parent(signal.SIGTERM))

    def waited(self) -> tuple[int, int]:
        """(the signal that ended the launcher, or 0; the exit status of mpiexec)."""
        before = {number: signal.signal(number, self._passed) for number in PASSED}
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

    def _passed(self, number: int, _: Any) -> None:
        if number not in _ENDS:
            self._process.send_signal(number)
            return
        self._signal = number
        self._since = self._since or time.monotonic()
        self._process.send_signal(number if number == signal.SIGINT else signal.SIGTERM)

    def _look(self) -> None:
        """End mpiexec when it outlives a rank that failed, or a signal; say when a rank has ended before the others."""
        if self._since:
            grace, waited = self._grace if self._signal else _GRACE, time.monotonic() - self._since
            if waited > grace:
                self._process.kill() if waited > grace + _GRACE else self._process.terminate()
            return
        self._since = time.monotonic() if first_report(self._reports) else 0.0
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

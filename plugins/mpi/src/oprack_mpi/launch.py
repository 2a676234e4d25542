"""The command `oprack launch`: starts a program on several ranks by mpiexec, and says which rank failed first."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from oprack.errors import InvalidArgumentError, NotFoundError
from oprack.parallel.watchdog import TIMEOUT

from oprack_mpi.reports import first_failure


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("-n", "--ranks", type=int, default=os.cpu_count() or 1, help="how many (default: one a core)")
    parser.add_argument("--hosts", default="", metavar="A,B", help="machines, which ssh reaches (default: this one)")
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
    mpiexec = find_mpiexec()
    for attempt in range(args.restarts + 1):
        with tempfile.TemporaryDirectory(prefix="oprack-launch-") as reports:
            rank = [sys.executable, "-m", "oprack_mpi.rank", reports, args.program, *args.arguments]
            command = [mpiexec, *options(mpiexec, args.ranks, args.hosts), *rank]
            status = _waited(subprocess.Popen(command, env=environment(os.environ, args.ranks, args.timeout)))
            if status == 0:
                return 0
            print(f"oprack launch: {first_failure(Path(reports), args.ranks, status)}", file=sys.stderr, flush=True)
        if attempt < args.restarts:
            print(f"oprack launch: starts again ({attempt + 1} of {args.restarts})", file=sys.stderr, flush=True)
    return status if 0 < status < 256 else 1


def find_mpiexec() -> str:
    """The mpiexec of this environment, else the one on PATH. Raises NotFoundError."""
    own = Path(sys.executable).with_name("mpiexec")
    found = str(own) if own.is_file() else shutil.which("mpiexec")
    if found is None:
        raise NotFoundError("oprack launch: no mpiexec; pip install mpich, or put the site's MPI on PATH")
    return found


def options(mpiexec: str, ranks: int, hosts: str) -> list[str]:
    """Options of this mpiexec: its sorts spell them differently."""
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    found = ["-n", str(ranks)]
    if "Open MPI" in version or "OpenRTE" in version or "prte" in version.lower():
        found += ["--map-by", ":OVERSUBSCRIBE"]
        return [*found, "--host", hosts] if hosts else found
    return [*found, "-hosts", hosts] if hosts else found


def environment(variables: Mapping[str, str], ranks: int, timeout: float | None) -> dict[str, str]:
    """Variables of the ranks; what the user has set counts."""
    found = dict(variables)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if ranks > cores:
        # More ranks than cores: those that wait give their core away instead of spinning on it.
        found.setdefault("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")
        found.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    found.setdefault("OMP_NUM_THREADS", str(max(1, cores // ranks)))
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # as in containers, which Open MPI refuses unless told twice
        found.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
        found.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        found.setdefault("PRTE_ALLOW_RUN_AS_ROOT", "1")
        found.setdefault("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    if timeout is not None:
        found[TIMEOUT] = f"{timeout:g}"
    return found


def _waited(process: subprocess.Popen[bytes]) -> int:
    """The exit status; Ctrl-C is passed on, and waited for once more."""
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        return process.wait()

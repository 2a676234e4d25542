"""`python -m oprack_mpi.rank REPORTS PROGRAM ...`: runs the program of one rank, and reports how it ended if it failed.

The program is a process of its own, since one that is killed can't report that.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

from oprack_mpi.reports import REPORTS, ended, rank, write_report

_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def main(argv: list[str]) -> int:
    """Run the program; returns its exit status, 128 and more for a signal."""
    os.environ[REPORTS], *program = argv
    # The launcher's file descriptors are inherited: by them the ranks find each other.
    child = subprocess.Popen([sys.executable, *program], close_fds=False, preexec_fn=_die_with_parent)
    signal.signal(signal.SIGTERM, lambda number, _: child.send_signal(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the program, too
    code = child.wait()
    if code:
        write_report(ended(code))
        print(
            f"oprack: rank {rank()} on {os.uname().nodename} (process {child.pid}) ended: {ended(code)}",
            file=sys.stderr,
            flush=True,
        )
    return code if code >= 0 else 128 - code


def _die_with_parent() -> None:
    """Let the program end with this process, which mpiexec kills when another rank failed (Linux alone)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

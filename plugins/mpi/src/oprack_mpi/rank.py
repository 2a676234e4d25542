"""`python -m oprack_mpi.rank REPORTS PROGRAM ...`: runs the program of one rank, and reports how it ended if it failed.

The program is a process of its own, since one that is killed can't report that.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from oprack_mpi.reports import REPORTS, end_with_parent, ended, rank, write_report


def main(argv: list[str]) -> int:
    """Run the program; returns its exit status, 128 and more for a signal."""
    os.environ[REPORTS], *program = argv
    # What mpiexec runs on this machine may be killed itself.
    end_with_parent(signal.SIGKILL)
    # The launcher's file descriptors are inherited: by them the ranks find each other.
    command = [sys.executable, "-m", "oprack_mpi.program", *program]
    child = subprocess.Popen(command, close_fds=False, preexec_fn=lambda: end_with_parent(signal.SIGKILL))
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

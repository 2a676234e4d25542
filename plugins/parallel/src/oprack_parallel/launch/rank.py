"""`python -m oprack_parallel.launch.rank REPORTS PROGRAM ...`: runs the program of one rank, and reports how it failed.

The program is a process of its own, since one that is killed can't report that.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

from oprack_parallel.launch.reports import REPORTS, end_with_parent, ended, rank, write_report
from oprack_parallel.launch.starter import PASSED

_ONE = 0.3
"""Seconds in which a signal that comes again is the same one, from the terminal and from launchers."""


def main(argv: list[str]) -> int:
    """Run the program; returns its exit status, 128 and more for a signal."""
    os.environ[REPORTS], *program = argv
    # What mpiexec runs on this machine may be killed itself.
    end_with_parent(signal.SIGKILL)
    # The launcher's file descriptors are inherited: by them the ranks find each other.
    command = [sys.executable, "-m", "oprack_parallel.launch.program", *program]
    # A group of its own, since some signal the whole group of this process, and a signal is to come once.
    child = subprocess.Popen(
        command, close_fds=False, process_group=0, preexec_fn=lambda: end_with_parent(signal.SIGKILL)
    )
    told: dict[int, float] = {}

    def pass_on(number: int, _: Any) -> None:
        now = time.monotonic()
        if now - told.get(number, -_ONE) > _ONE:
            child.send_signal(number)
        told[number] = now

    for number in PASSED:
        signal.signal(number, pass_on)
    code = child.wait()
    if code:
        write_report(ended(code), died=code < 0 and -code not in told)
        print(
            f"oprack: rank {rank()} on {os.uname().nodename} (process {child.pid}) ended: {ended(code)}",
            file=sys.stderr,
            flush=True,
        )
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

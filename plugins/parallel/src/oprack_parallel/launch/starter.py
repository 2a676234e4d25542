"""`python -m oprack_parallel.launch.starter RANKS COMMAND ...`: what mpiexec is to MPI, for ranks of the engine tcp.

It starts so many processes on this machine, tells each which rank it is and where ranks meet, passes signals on, and
ends all of them when one fails.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

# Those of launchers of MPI, which may have started this process, and are not true of its ranks
_OF_OTHERS = (
    "PMI_",
    "PMIX_",
    "OMPI_COMM_WORLD_",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_STEP_NUM_TASKS",
    "TORCHELASTIC_",
)
PASSED = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)
]
"""Signals that a launcher passes on."""
_BY_ITSELF = 2.0
"""Seconds in which ranks end by themselves once one has failed, and say why."""
_GRACE = 3.0
"""Seconds after SIGTERM until SIGKILL."""


def main(argv: list[str]) -> int:
    """Run the ranks; returns the exit status of the first one that failed, else 0."""
    size, command = int(argv[0]), argv[1:]
    variables = {k: v for k, v in os.environ.items() if not k.startswith(_OF_OTHERS)}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]  # should another program take it now, ranks try the ports behind it
    variables |= {"WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1"}
    variables |= {"MASTER_PORT": str(port), "OPRACK_JOB_TOKEN": secrets.token_hex(16)}
    variables.setdefault("OPRACK_ENGINE", "tcp")
    return _Ranks(command, variables, size).waited()


class _Ranks:
    def __init__(self, command: list[str], variables: Mapping[str, str], size: int) -> None:
        for number in PASSED:
            signal.signal(number, self._pass)
        self._passed: list[int] = []
        self._parent = os.getppid()
        self._running: list[subprocess.Popen[bytes]] = []
        for rank in range(size):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            self._running.append(subprocess.Popen(command, env={**variables, **own}))
        for number in self._passed:  # while some were not there yet
            self._all(number)

    def _pass(self, number: int, _: Any) -> None:
        self._passed.append(number)
        self._all(number)

    def _all(self, number: int) -> None:
        for process in list(self._running):
            process.send_signal(number)

    def waited(self) -> int:
        """The exit status of the first rank that failed, 0 when none did."""
        failed, since = 0, 0.0
        steps = [(_BY_ITSELF, signal.SIGTERM), (_BY_ITSELF + _GRACE, signal.SIGKILL)]
        while self._running:
            time.sleep(0.05)
            for process in list(self._running):
                code = process.poll()
                if code is not None:
                    self._running.remove(process)
                    failed = failed or (code if code >= 0 else 128 - code)
            if not since and (failed or os.getppid() != self._parent):
                since = time.monotonic()
            if since and steps and time.monotonic() - since > steps[0][0]:
                self._all(steps.pop(0)[1])
        return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What ranks report of their end to `oprack launch`: a file for each rank that failed, in a folder of this machine."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from oprack.parallel.watchdog import EXIT_STATUS

REPORTS = "OPRACK_LAUNCH_REPORTS"
"""Environment variable: the folder for reports, which `oprack launch` sets."""
_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")


def rank() -> str:
    """This process's rank, as its launcher's variables say."""
    return next((os.environ[name] for name in _RANKS if name in os.environ), "0")


def write_report(reason: str) -> None:
    """Report that this rank failed, unless it has said so before or nobody launched it."""
    folder = os.environ.get(REPORTS, "")
    path = os.path.join(folder, f"{rank()}.json")
    if not folder or os.path.exists(path):
        return
    facts = {"rank": rank(), "host": os.uname().nodename, "time": time.time(), "reason": reason}
    temporary = os.path.join(folder, f".{rank()}")
    try:
        with open(temporary, "w") as file:
            json.dump(facts, file)
        os.replace(temporary, path)
    except OSError:  # another machine, which does not have the launcher's folder; its message is on stderr
        return


def first_failure(reports: Path, ranks: int, status: int) -> str:
    """Which rank failed first, from the reports that ranks of this machine wrote, in words."""
    found = []
    for path in sorted(reports.glob("*.json")):
        try:
            found.append(json.loads(path.read_text()))
        except ValueError:  # a rank that was killed while it wrote
            continue
    if not found:
        return f"mpiexec ended with exit status {status} before any rank of this machine said why"
    first = min(found, key=lambda r: float(r["time"]))
    return f"rank {first['rank']} of {ranks} on {first['host']} failed first: {first['reason']}"


def ended(code: int) -> str:
    """How a process ended, in words, by the code that subprocess gives."""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = "unknown"
        return f"killed by signal {-code} ({name})" + ("; out of memory?" if -code == signal.SIGKILL else "")
    if code == EXIT_STATUS:
        return f"a collective waited too long (exit status {code}); see the message above"
    return f"exit status {code}"

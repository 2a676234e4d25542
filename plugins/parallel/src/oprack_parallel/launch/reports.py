"""What ranks tell `oprack launch` by files in a folder of its machine: why they failed, and where they were last."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from oprack.layers.user_line import user_line
from oprack.parallel.watchdog import EXIT_STATUS, WATCHDOG, failure, last_checkpoint, line_of

if TYPE_CHECKING:
    from oprack.parallel import Communicator

REPORTS = "OPRACK_LAUNCH_REPORTS"
"""Environment variable: the folder for reports, which `oprack launch` sets."""
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID", "RANK", "PADDLE_TRAINER_ID")
"""Variables in which launchers say which rank a process is."""
_EVERY = 0.5
"""Seconds between two looks at where this rank is."""
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib")})
_SHOWN = 8
"""Of so many ranks it is said where they were when another one failed."""


def end_with_parent(number: int) -> None:
    """Let this process get a signal when the one that started it ends, in whatever way (Linux alone)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, number)


def rank() -> str:
    """This process's rank, as its launcher's variables say."""
    return next((os.environ[name] for name in RANKS if name in os.environ), "0")


def write_report(reason: str, told: bool = False, died: bool = False) -> None:
    """Report that this rank failed, unless it has said so before or nobody launched it.

    Args:
        reason: Why, in words.
        told: Whether it failed because another rank did.
        died: Whether it was killed, and with it, it may be, the machine.
    """
    path = os.path.join(os.environ.get(REPORTS, ""), f"{rank()}.json")
    for noted in _NOTED:
        noted.note()  # what ran since it was noted last
    if not os.path.exists(path):
        facts = {"rank": rank(), "host": os.uname().nodename, "time": time.time(), "reason": reason}
        _write("json", facts | {"told": told, "died": died})


def _write(suffix: str, facts: dict[str, Any]) -> None:
    folder = os.environ.get(REPORTS, "")
    if not folder:
        return
    temporary = os.path.join(folder, f".{rank()}.{suffix}")
    try:
        with open(temporary, "w") as file:
            json.dump(facts, file)
        os.replace(temporary, os.path.join(folder, f"{rank()}.{suffix}"))
    except OSError:  # another machine, which does not have the launcher's folder; its message is on stderr
        return


class Whereabouts:
    """Notes twice a second at which line this rank is, and its last collectives, for when it is killed or hangs."""

    def __init__(self) -> None:
        self._last: dict[str, Any] = {}
        if os.environ.get(REPORTS, ""):
            _NOTED.append(self)
            self.note()
            threading.Thread(target=self._run, name="oprack whereabouts", daemon=True).start()
            # Before MPI is closed, which waits for ranks that are still at work.
            atexit.register(_write, "ended", {"time": time.time()})

    def _run(self) -> None:
        while True:
            time.sleep(_EVERY)
            self.note()

    def note(self) -> None:
        """Write where the main thread is, if that has changed."""
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        line = _program_line(frame) if frame is not None else ""
        facts: dict[str, Any] = {"line": line or self._last.get("line", ""), "checkpoint": last_checkpoint()}
        facts["collectives"] = WATCHDOG.recent()
        if facts != self._last:
            self._last = facts
            _write("where", facts)


_NOTED: list[Whereabouts] = []
"""That of this process, where a launcher asks for it."""


def _program_line(frame: FrameType) -> str:
    """The line of the program where a thread is, or of a library when it runs nothing of the program."""
    found: FrameType | None = frame
    while found is not None and found.f_code.co_filename.startswith((*_LIBRARIES, "<frozen ")):
        found = found.f_back
    return (user_line(found) if found is not None else "") or user_line(frame)


def ends_all_ranks(world: Communicator) -> None:
    """Let an exception that ends this rank end the others, and note from now on where this one is."""
    sys.excepthook = _ending(world, sys.excepthook)
    Whereabouts()


def _ending(world: Communicator, others: Callable[..., Any]) -> Callable[..., Any]:
    """An excepthook that ends all ranks, after the one that was there before has printed the exception."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        others(kind, error, trace)
        if world.size > 1:
            print(failure(world, f"{kind.__name__}: {error}", trace), file=sys.stderr, flush=True)
            line = line_of(trace)
            world.abort(1, f"{kind.__name__}: {error}" + (f"; at {line}" if line else ""))

    return hook


def ended_early(reports: Path, ranks: int, seconds: float) -> list[str]:
    """Ranks of this machine that came to the end of their programs so long ago, while others have not."""
    found = {path.stem: float(_read(path).get("time", 0)) for path in reports.glob("*.ended")}
    long_ago = [number for number, when in found.items() if when and time.time() - when > seconds]
    return sorted(long_ago, key=int) if len(found) < ranks else []


def first_report(reports: Path) -> dict[str, Any] | None:
    """The report of the rank of this machine that failed first, by itself if one did; None when none has."""
    return min(_reports(reports), key=lambda r: (bool(r["told"]), float(r["time"])), default=None)


def flight_record(reports: Path, ranks: int) -> dict[str, Any]:
    """What each rank of this machine noted last: why it failed, its line, its checkpoint and its last collectives."""
    found = {}
    for number in range(ranks):
        facts = _read(reports / f"{number}.where")
        if facts:
            failed = _read(reports / f"{number}.json").get("reason", "")
            found[str(number)] = {"failed": failed, "ended": (reports / f"{number}.ended").exists(), **facts}
    return {"time": time.time(), "size": ranks, "first": (first_report(reports) or {}).get("rank"), "ranks": found}


def dead(reports: Path) -> int:
    """How many ranks of this machine were killed, and not by the launcher."""
    return sum(bool(r["died"]) for r in _reports(reports))


def _reports(reports: Path) -> list[dict[str, Any]]:
    return [facts for path in sorted(reports.glob("*.json")) if (facts := _read(path))]


def first_failure(reports: Path, ranks: int, status: int) -> str:
    """Which rank failed first, from the reports that ranks of this machine wrote, in words; and where all were."""
    first = first_report(reports)
    if first is None:
        return f"mpiexec ended with exit status {status} before any rank of this machine said why"
    own = _read(reports / f"{first['rank']}.where")
    text = f"rank {first['rank']} of {ranks} on {first['host']} failed first: {first['reason']}"
    if own.get("line") and "; at File" not in first["reason"]:
        text += f"; it was last seen at {own['line']}"
    text += f". The last checkpoint that it saved: {own.get('checkpoint', 'none')}"
    for number in [str(r) for r in range(ranks) if str(r) != first["rank"]][:_SHOWN]:
        there = _read(reports / f"{number}.where").get("line", "")
        if (reports / f"{number}.ended").exists():
            text += f"\n    rank {number} had come to the end of its program"
        elif there:
            text += f"\n    rank {number} was last seen at {there}"
    return text


def _read(path: Path) -> dict[str, Any]:
    """The facts in a file; none when it is not there, or a rank was killed while it wrote."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


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

"""Runs steps of the zoo in forks of one process that has imported Paddle, which takes longer than many a step.

`python served.py` reads lines of JSON with `module`, `arguments`, `imports` and `limit`, and answers each with a line
of JSON: `error`, which is empty where `module.main(arguments)` ended well within `limit` seconds. What `imports` names
is imported before the fork, so that the steps behind it find it there.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any


def _step(module: str, arguments: list[str], said: int) -> None:
    """One step, in a process of its own; never returns."""
    status = 1
    try:
        os.setsid()
        for stream in (1, 2):
            os.dup2(said, stream)
        importlib.import_module(module).main(arguments)
        sys.stdout.flush()
        status = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)  # no clean-up of what the process above owns


def _wait(pid: int, limit: float) -> int | None:
    """The exit status; None when it took too long and was ended."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def run(module: str, arguments: list[str], imports: list[str], limit: float) -> str:
    """What went wrong in a step, if anything did."""
    for name in imports:
        with contextlib.suppress(Exception):  # the step says what is missing
            importlib.import_module(name)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        pid = os.fork()
        if not pid:
            _step(module, arguments, said.fileno())
        status = _wait(pid, limit)
        if status is None:
            return f"took more than {limit:.0f} s"
        said.seek(0)
        tail = [line.strip() for line in said if line.strip()]
        return "" if status == 0 else " ".join(tail[-3:])[-400:] or f"ended with {status}"


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    answers, sys.stdout = os.fdopen(os.dup(1), "w", encoding="utf-8"), sys.stderr  # packages print what they like
    importlib.import_module("build")  # and Paddle
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        print(json.dumps({"error": run(**asked)}), file=answers, flush=True)


if __name__ == "__main__":
    main()

"""Saves checkpoints in processes that are killed, and loads what they leave; run by test_checkpoint.py.

Arguments: a directory. Prints one line of JSON: how many processes were killed at which kind of moment.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
from oprack import Program, Scope
from oprack.io import load_checkpoint, save_checkpoint

NAMES = [f"w{i}" for i in range(6)]


def program() -> Program:
    made = Program()
    for name in NAMES:
        made.global_block().create_var(name, dtype="float32", shape=[5000], persistable=True)
    return made


def save(root: Path, step: int) -> None:
    """All variables hold the step, so that a mixture of two saves shows."""
    scope = Scope()
    for name in NAMES:
        scope.var(name).set(np.full(5000, step, np.float32))
    save_checkpoint(root, program(), scope, step=step, keep=2)


def verified(root: Path) -> int:
    """The step of the newest checkpoint, which is complete and of one save."""
    scope = Scope()
    found = load_checkpoint(root, program(), scope)
    for name in NAMES:
        value = scope.get_var(name).get().array
        if not (value == found.step).all():
            raise SystemExit(f"{root}: {name} holds {np.unique(value)} in the checkpoint of step {found.step}")
    return found.step


def killed(work) -> bool:
    """Run `work(pid)` in a forked process; whether it died by SIGKILL."""
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def at_every_file_operation(root: Path) -> int:
    """Kill a save just before its first file operation, its second, and so on until one save is not killed."""
    save(root, 1)
    number = 0
    while True:
        number += 1
        before = verified(root)

        def work(number: int = number, step: int = before + 1) -> None:
            seen = 0

            def audit(event: str, args: tuple) -> None:
                nonlocal seen
                if event == "open" or event.startswith(("os.", "shutil.")):
                    seen += 1
                    if seen == number:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(audit)
            save(root, step)

        died = killed(work)
        if verified(root) not in (before, before + 1):
            raise SystemExit(f"{root}: step {verified(root)} after a killed save of step {before + 1}")
        if not died:
            return number - 1


def at_random_times(root: Path, times: int) -> int:
    """Kill processes that save over and over."""
    save(root, 1)
    moments = random.Random(7)
    for _ in range(times):
        before = verified(root)
        pid = os.fork()
        if pid == 0:
            for step in range(before + 1, before + 1000):
                save(root, step)
            os._exit(0)
        time.sleep(moments.uniform(0.005, 0.1))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if verified(root) < before:
            raise SystemExit(f"{root}: went back from step {before} to {verified(root)}")
    return times


if __name__ == "__main__":
    base = Path(sys.argv[1])
    counts = {
        "operations": at_every_file_operation(base / "a"),
        "times": at_random_times(base / "b", 15),
        "left": sorted(p.name.split("-")[0] for p in (base / "a").iterdir()),
    }
    save(base / "a", 10_000)
    counts["kept"] = sorted(p.name.split("-")[0] for p in (base / "a").iterdir())
    print(json.dumps(counts))

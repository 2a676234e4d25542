"""Runs each example in a child of its own, to shrink one that ends the process."""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from oprack.testing.fuzz.examples.example import Example
from oprack.testing.fuzz.runs.check import Checker
from oprack.testing.fuzz.runs.outcome import Difference


def isolated(checker: Checker, hang: float) -> Callable[..., list[Difference]]:
    """In place of checker.check: the same in a forked child; one that dies or hangs is a difference of its own.

    The parent must not have run a kernel library, since some do not outlive a fork.
    """

    def check(example: Example, **options: Any) -> list[Difference]:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            _child(checker, example, options, writer)
        os.close(writer)
        try:
            return _parent(pid, reader, hang)
        finally:
            os.close(reader)

    return check


def _child(checker: Checker, example: Example, options: dict[str, Any], writer: int) -> None:
    code = 1
    faulthandler.disable()  # a crash is told by the parent
    try:
        checker._watch = lambda name: void(os.write(writer, f"@{name}\n".encode()))
        found = checker.check(example, **options)
        os.write(writer, (json.dumps([asdict(d) for d in found]) + "\n").encode())
        code = 0
    finally:
        os._exit(code)


def void(_: object) -> None:
    """Forget a result."""


def _parent(pid: int, reader: int, hang: float) -> list[Difference]:
    end = time.monotonic() + hang
    data = b""
    killed = False
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            os.kill(pid, signal.SIGKILL)
            killed = True
            break
        chunk = os.read(reader, 1 << 16)
        if not chunk:
            break
        data += chunk
    _, status = os.waitpid(pid, 0)
    lines = data.decode(errors="replace").splitlines()
    path = next((line[1:] for line in reversed(lines) if line.startswith("@") and line != "@"), "")
    if killed:
        return [Difference(path, "hang", 0, "", f"did not end in {hang:g} s")]
    if os.WIFSIGNALED(status):
        return [Difference(path, "crash", 0, "", signal.Signals(os.WTERMSIG(status)).name)]
    if status or not lines:
        return []
    return [Difference(**d) for d in json.loads(lines[-1])]

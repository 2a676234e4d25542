"""The process that runs examples: `python -m oprack.testing.fuzz.worker`, with a job as JSON on its standard input.

It writes each example, and the path that it is on, to a file before it runs it: when it dies, its parent knows of what.
One line of JSON on standard output for each thing that happened.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oprack.packs.manager import default_manager
from oprack.testing.case_folder import collect_cases
from oprack.testing.fuzz.examples.calls import seeds
from oprack.testing.fuzz.examples.example import Example, save
from oprack.testing.fuzz.examples.nets import net_examples
from oprack.testing.fuzz.examples.ops import op_examples
from oprack.testing.fuzz.isolated import isolated
from oprack.testing.fuzz.lives.life import FoundLife, Life, search_lives
from oprack.testing.fuzz.runs.check import Checker
from oprack.testing.fuzz.runs.outcome import Difference
from oprack.testing.fuzz.searching import Failure, Known, search

FAILED = 3
"""Exit status when the fuzzer itself failed; a hang has 1, a crash the signal's."""

_MEMORY = 6 << 30
_NAME = 256


class Current:
    """A file that holds the example being run, and the path that it is on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        fd = os.open(path.with_suffix(".path"), os.O_RDWR | os.O_CREAT)
        # Mapped memory needs bytes behind it; a crash leaves it to the file.
        os.ftruncate(fd, _NAME)
        self._memory = mmap.mmap(fd, _NAME)

    def path(self, name: str) -> None:
        """The path that runs now, "" between examples; in memory that outlives the process."""
        data = name.encode()[: _NAME - 1]
        self._memory[: len(data) + 1] = data + b"\0"

    def example(self, example: Example) -> None:
        """The example that runs now."""
        overwrite(self._path, example.to_bytes())

    @staticmethod
    def read(path: Path) -> tuple[str, Example | None]:
        """(path, example) that a process left behind."""
        try:
            name = path.with_suffix(".path").read_bytes().partition(b"\0")[0].decode()
            return name, Example.from_bytes(path.read_bytes())
        except Exception:  # it died while it wrote, before anything ran
            return "", None


def overwrite(path: Path, data: bytes) -> None:
    """Write a file that is written again and again; to make it empty first would wait for the disk each time."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.truncate(fd, os.pwrite(fd, data, 0))
    finally:
        os.close(fd)


def known_of(rows: Sequence[dict[str, Any]]) -> list[Known]:
    """Known differences from JSON."""
    return [Known(r["path"], r["kind"], frozenset(r["ops"]), frozenset(r["parts"]), r["reason"]) for r in rows]


def known_rows(known: Sequence[Known]) -> list[dict[str, Any]]:
    """Known differences as JSON."""
    return [
        {"path": k.path, "kind": k.kind, "ops": sorted(k.ops), "parts": sorted(k.parts), "reason": k.reason}
        for k in known
    ]


class Worker:
    """Works off a job, which `Campaign` writes as JSON.

    Args:
        job: "targets" are pairs such as ["op relu", seed], ["net", seed] and ["life jit", seed]. Of each, "examples"
            in "seconds" run, in as many searches as "rounds" says, with "shrink" seconds to make what fails smaller;
            all ends at the time
            "until". "once": further searches repeat the seed, past what is known by then. "folders" and "records" have
            the cases from which calls are made, "known" the differences to pass over, "only" the paths to take.
            "isolated": each example in a process of its own. "hang": seconds after which one hangs. "current": the
            file of `Current`; "out": where failures go.
    """

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.current = Current(Path(job["current"]))
        self.checker = Checker(only=job["only"], watch=self.current.path)
        self.known = known_of(job["known"])
        parts = {p.name: p.parts for p in self.checker.paths}
        fatal = [k for k in self.known if k.kind in ("crash", "hang")]

        def skip(path: str, example: Example) -> bool:
            return any(k.covers(Difference(path, k.kind, 0), parts[path], example.op_types) for k in fatal)

        self.checker.skip = skip
        self._isolated = isolated(self.checker, job["hang"]) if job["isolated"] else None

    def check(self, example: Example, **options: Any) -> list[Difference]:
        """As Checker.check; a hang ends the process."""
        if self._isolated is not None:
            return self._isolated(example, **options)
        self.current.example(example)
        # From a thread of C's, since a hang in native code never gives Python's lock back.
        faulthandler.dump_traceback_later(self.job["hang"], exit=True)
        try:
            return self.checker.check(example, **options)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def run(self) -> None:
        """One target after the other, again and again, until the time is over."""
        for target, seed in self.job["targets"]:
            if time.time() > self.job["until"]:
                break
            tell(begin=target, seed=seed)
            if target.startswith("life"):
                self._search_lives(target, seed)
                tell(done=target, tally=self._tally())
                continue
            strategy = self._strategy(target, seed)
            if strategy is not None:
                self._search(target, seed, strategy)
            tell(done=target, tally=self._tally())

    def _strategy(self, target: str, seed: int) -> Any:
        if target.startswith("net"):
            return net_examples(default_manager(), target.split()[1:])
        folders = [Path(f) for f in self.job["folders"]]
        records = [case for f in self.job["records"] for case in collect_cases(Path(f))]
        calls = seeds(target.removeprefix("op "), folders, records, seed=seed)
        return op_examples(calls) if calls else None

    def _search(self, target: str, seed: int, strategy: Any) -> None:
        left = max(1.0, min(self.job["seconds"], self.job["until"] - time.time()))
        for attempt in range(self.job["rounds"]):
            found = search(
                strategy,
                self.checker,
                seed=seed if self.job["once"] else seed + attempt,
                examples=self.job["examples"],
                seconds=left,
                shrink_seconds=self.job["shrink"],
                known=self.known,
                check=self.check,
            )
            if found is None:
                return
            self.known.append(found.known)
            self._report(target, found)

    def _search_lives(self, target: str, seed: int) -> None:
        source = Path(self.job["current"]).with_suffix(".py")

        def watch(life: Life) -> None:
            overwrite(source, life.script().encode())
            tally = self.checker.tally
            tally.examples += not life.done
            tally.accepted += 1
            tally.by_path[f"life {life.engine}"] += 1
            faulthandler.dump_traceback_later(self.job["hang"], exit=True)

        left = max(1.0, min(self.job["seconds"], self.job["until"] - time.time()))
        for attempt in range(self.job["rounds"]):
            found = search_lives(
                target.split()[1:],
                seed=seed if self.job["once"] else seed + attempt,
                examples=self.job["examples"],
                seconds=left / self.job["rounds"],
                shrink_seconds=self.job["shrink"],
                known=self.known,
                watch=watch,
            )
            faulthandler.cancel_dump_traceback_later()
            if found is None:
                return
            self.known.append(found.known)
            self._report_life(target, found)

    def _report_life(self, target: str, found: FoundLife) -> None:
        file = self._out("life", found)
        file.write_text(found.life.script(found.difference), "utf-8")
        self._tell(target, found, sorted(found.life.labels), file)

    def _report(self, target: str, found: Failure) -> None:
        file = self._out("+".join(found.example.op_types)[:60], found)
        save(found.example, file)
        at = {"run": found.difference.run, "variable": found.difference.variable}
        self._tell(target, found, list(found.example.op_types), file, **at)

    def _out(self, names: str, found: Failure | FoundLife) -> Path:
        """Where a failure is kept: a script of a life, the arrays of an example."""
        path, kind = (word.replace(" ", "_") for word in (found.difference.path, found.difference.kind))
        suffix = "py" if isinstance(found, FoundLife) else "npz"
        return Path(self.job["out"]) / f"{names}-{path}-{kind}-{found.seed}.{suffix}"

    def _tell(self, target: str, found: Failure | FoundLife, ops: list[str], file: Path, **at: Any) -> None:
        tell(
            failure=str(found.difference),
            path=found.difference.path,
            kind=found.difference.kind,
            ops=ops,
            target=target,
            seed=found.seed,
            after=found.after,
            seconds=round(found.seconds, 2),
            file=str(file),
            known=known_rows([found.known])[0],
            **at,
        )

    def _tally(self) -> dict[str, Any]:
        tally = self.checker.tally
        found = {"examples": tally.examples, "accepted": tally.accepted, "refused": tally.refused}
        counts = {**found, "by_path": dict(tally.by_path)}
        self.checker.tally = type(tally)()
        return counts


def tell(**what: Any) -> None:
    """One line for the parent."""
    print(json.dumps(what), flush=True)


def main() -> None:
    """Work off the job on standard input."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    job = json.load(sys.stdin)
    random.seed(0)  # nothing below draws from it but Hypothesis's own state
    try:
        Worker(job).run()
    except Exception:
        traceback.print_exc()
        sys.exit(FAILED)


if __name__ == "__main__":
    main()

"""Fuzzing for a given time, in a child process that may die: what `make fuzz` runs."""

from __future__ import annotations

import json
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oprack.errors import PreconditionNotMetError
from oprack.packs.manager import default_manager
from oprack.runtime.checks import ROUNDS
from oprack.testing.case_folder import collect_cases
from oprack.testing.fuzz.examples.example import Example, save
from oprack.testing.fuzz.lives.life import ENGINES, part_kinds
from oprack.testing.fuzz.runs.check import Tally
from oprack.testing.fuzz.runs.outcome import Difference
from oprack.testing.fuzz.scripts import script
from oprack.testing.fuzz.searching import Known
from oprack.testing.fuzz.worker import FAILED, Current, known_rows

# A loop whose count is fed may be asked for 2^63 rounds; every path then refuses alike.
_MOST_ROUNDS = 500


@dataclass
class Campaign:
    """targets: "op relu", "net", "net a b" for nets of some blocks, "life", or "life jit" for lives of some engines.

    seconds: 0 = until stopped.

    once: each target once. turn: targets of one child. examples: of one search. rounds: searches of a target for
    further failures, after each that failed. folders: of recorded cases. records: folders that collect_cases reads.
    known: differences that are not reported. out: where failures are kept. only: patterns of paths. hang: seconds
    after which an example hangs. say: prints a line.
    """

    targets: Sequence[str]
    seed: int
    seconds: float
    out: Path
    folders: Sequence[Path] = ()
    records: Sequence[Path] = ()
    known: list[Known] = field(default_factory=list)
    only: Sequence[str] = ()
    examples: int = 40
    rounds: int = 4
    shrink: float = 10.0
    hang: float = 60.0
    once: bool = False
    turn: int = 16
    say: Callable[[str], None] = print
    tally: Tally = field(default_factory=Tally)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> None:
        """Until the time is over; an interrupt ends it early."""
        for folder in self.records:
            collect_cases(folder)  # a file that is wrong is said here, and not as a child that died
        self._start = time.time()
        self._until = self._start + (self.seconds or 10 * 365 * 86400)
        rng = random.Random(self.seed)
        self.out.mkdir(parents=True, exist_ok=True)
        try:
            while time.time() < self._until:
                order = [(t, rng.randrange(1 << 30)) for t in self.targets]
                rng.shuffle(order)
                while order and time.time() < self._until:
                    turn, order = order[: self.turn], order[self.turn :]
                    self._turn(turn)
                if self.once:
                    return
        except KeyboardInterrupt:
            self.say("stopped")

    def _turn(self, targets: list[tuple[str, int]]) -> None:
        """One child for a few targets; a new one for the rest when it dies."""
        with tempfile.TemporaryDirectory() as folder:
            while targets and time.time() < self._until:
                current = Path(folder, "current.npz")
                done, code = self._child(targets, current, isolated=False)
                if code == 0 or time.time() > self._until:
                    return
                culprit = targets[done] if done < len(targets) else targets[-1]
                self._died(culprit, current, code)
                # the same target again, which now leaves out what killed the process; twice at most
                tried = sum(f["target"] == culprit[0] and f["kind"] in ("crash", "hang") for f in self.failures)
                targets = targets[done + (tried > 2) :]

    def _died(self, culprit: tuple[str, int], current: Path, code: int) -> None:
        path, example = Current.read(current)
        kind, text = ("crash", signal.Signals(-code).name) if code < 0 else ("hang", f"exit status {code}")
        if culprit[0].startswith("life") and current.with_suffix(".py").is_file():
            file = self.out / f"life-{kind}-{culprit[1]}.py"
            file.write_text(current.with_suffix(".py").read_text("utf-8"), "utf-8")
            self._keep(Difference("*", kind, 0, "", f"{text}; shown by {file}"), None, culprit, ["life"])
            return
        if example is None or not path:
            self.say(f"FAILED    {culprit[0]}: the process died ({text}) while it ran no example")
            self._keep(Difference(path, kind, 0, "", text), example, culprit, [])
            return
        difference = Difference(path, kind, 0, "", text)
        before = len(self.failures)
        if kind == "crash":  # once more, each example in a process of its own, to make it small
            self._child([culprit], current, isolated=True, only=[path])
        if not any(f["kind"] in ("crash", "hang") for f in self.failures[before:]):
            self._keep(difference, example, culprit, example.op_types)

    def _keep(self, difference: Difference, example: Example | None, culprit: tuple[str, int], ops: Any) -> None:
        """Report the example that was running when a process died."""
        file = self.out / f"{'+'.join(ops)[:60] or 'unknown'}-{difference.kind}-{culprit[1]}.npz"
        if example is not None:
            save(example, file)
        known = Known(difference.path or "*", difference.kind, frozenset(ops))
        target, seed = culprit
        row: dict[str, Any] = {
            "failure": str(difference),
            "path": difference.path,
            "kind": difference.kind,
            "ops": list(ops),
        }
        row |= {"target": target, "seed": seed, "after": 0, "seconds": 0.0, "file": str(file)}
        self._failure(row | {"known": known_rows([known])[0]})

    # The child --------------------------------------------------------------------------------------------------------
    def _child(
        self, targets: list[tuple[str, int]], current: Path, isolated: bool, only: Sequence[str] = ()
    ) -> tuple[int, int]:
        """(targets that it finished, its exit status)."""
        job = {
            "targets": targets,
            "seconds": 120.0,
            "examples": self.examples,
            "rounds": 1 if isolated else self.rounds,
            "shrink": 45.0 if isolated else self.shrink,
            "hang": self.hang,
            "folders": [os.fspath(f) for f in self.folders],
            "records": [os.fspath(f) for f in self.records],
            "known": known_rows(self.known),
            "current": os.fspath(current),
            "out": os.fspath(self.out),
            "only": list(only or self.only),
            "isolated": isolated,
            "once": self.once,
            "until": self._until,
        }
        # memory that was not written to holds large numbers, not zeros by chance
        environ = dict(os.environ, OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="1", MALLOC_PERTURB_="128")
        environ[ROUNDS] = str(_MOST_ROUNDS)
        command = [sys.executable, "-m", "oprack.testing.fuzz.worker"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
        ) as child:
            assert child.stdin is not None
            child.stdin.write(json.dumps(job))
            child.stdin.close()
            try:
                return self._listen(child), child.wait()
            except BaseException:
                child.kill()
                raise

    def _listen(self, child: subprocess.Popen[str]) -> int:
        lines: queue.Queue[str | None] = queue.Queue()
        errors: list[str] = []

        def read() -> None:
            for line in child.stdout or ():
                lines.put(line)
            lines.put(None)

        threads = [threading.Thread(target=read), threading.Thread(target=lambda: errors.extend(child.stderr or ()))]
        for thread in threads:
            thread.start()
        done = 0
        while (line := lines.get()) is not None:
            if not line.startswith("{"):
                continue  # an op that prints
            what = json.loads(line)
            if "failure" in what:
                self._failure(what)
            elif "done" in what:
                done += 1
                t = what["tally"]
                self.tally.add(Tally(t["examples"], t["accepted"], t["refused"]))
                self.tally.by_path.update(t["by_path"])
        for thread in threads:
            thread.join()
        if child.wait() == FAILED:
            raise PreconditionNotMetError("the fuzzer itself failed:\n" + "".join(errors[-30:]))
        return done

    def _failure(self, what: dict[str, Any]) -> None:
        from oprack.testing.fuzz.worker import known_of

        what["at"] = round(time.time() - self._start, 1)
        self.failures.append(what)
        self.known += known_of([what["known"]])
        file = Path(what["file"])
        text = [f"FAILED    {'+'.join(what['ops'])}: {what['failure']}"]
        text.append(f"    seed {what['seed']} of {what['target']}, example {what['after']}; kept in {file}")
        if file.suffix == ".py":  # a life
            text.append(file.read_text("utf-8"))
        elif file.is_file():
            example = Example.from_bytes(file.read_bytes())
            source = script(example, _shown(what))
            file.with_suffix(".py").write_text(source, "utf-8")
            text.append(f"    shown by {file.with_suffix('.py')}")
        self.say("\n".join(text))

    def summary(self) -> str:
        """Counts by path."""
        t = self.tally
        lines = [f"{t.examples} examples; the reference accepted {t.accepted} runs and refused {t.refused}"]
        lines += [f"  {count:8} runs  {name}" for name, count in sorted(t.by_path.items(), key=lambda kv: -kv[1])]
        lines.append(f"{len(self.failures)} failures")
        return "\n".join(lines)


def _shown(what: dict[str, Any]) -> Difference:
    text = what["failure"].partition("): ")[2] or what["failure"]
    return Difference(what["path"], what["kind"], what.get("run", 0), what.get("variable", ""), text)


def all_targets(packs: Sequence[str] = ()) -> list[str]:
    """Ops of packs (default: of all) and, when all packs are meant, nets and lives: a quarter as many turns of each."""
    manager = default_manager()
    infos = [p for p in manager.packs() if p.status == "ok" and (not packs or p.name in packs)]
    ops = [f"op {t}" for p in infos for t in sorted(p.op_types) if "cpu" in manager.place_kinds(t)]
    if packs:
        return ops
    nets = len(ops) // 4 if manager.layer_names("fuzz") else 0
    lives = len(ops) // (4 * len(ENGINES)) if part_kinds() else 0
    return ops + ["net"] * nets + [f"life {engine}" for engine in ENGINES] * lives

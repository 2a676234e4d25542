"""The zoo: each net written by Paddle, run by oprack and compared: `make zoo`, or `python run.py [NET ...]`.

Each step of each net is a process of its own with a limit of time (those of Paddle are forks of served.py), and what it
found is kept in `out/zoo/NET`, so that a run that was stopped goes on. `--again` forgets what was found for the nets
that are named, and `--compare` runs oprack once more on what Paddle wrote. `--write` lets Paddle write the nets, and
leaves the rest. `--times` only takes times, by the turns of tests/benchmarks: of nets that have none yet, or with
`--again` of all, some 6 seconds each on a quiet machine after `--write --keep`, which spares it from remaking the
parameters. Who names nets gets exit code 1 if one of them does not agree.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import report
from registry import ALL

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "out" / "zoo"
PADDLE = {version: ROOT / name / "bin" / "python" for version, name in ((2, ".venv-zoo"), (3, ".venv-zoo3"))}


def environment() -> dict[str, str]:
    """That of a step: on one thread, without Paddle's log."""
    return os.environ | {"GLOG_minloglevel": "2", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def ask(command: list[Any], limit: float) -> tuple[str, str]:
    """The last line that a process printed, and what went wrong, if anything did."""
    try:
        done = subprocess.run(
            list(map(str, command)),
            capture_output=True,
            text=True,
            timeout=limit,
            env=environment(),
            cwd=OUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"took more than {limit:.0f} s"
    lines = done.stdout.strip().splitlines()
    if done.returncode:
        tail = [line.strip() for line in done.stderr.strip().splitlines() if line.strip()]
        return "", " ".join(tail[-3:])[-400:] or f"ended with {done.returncode}"
    return (lines[-1] if lines else ""), ""


def forget_parameters(folder: Path, keep: bool) -> None:
    """Parameter files can be remade, and all of them together need many gigabytes; `keep` those that are timed."""
    for file in folder.rglob("*.pdiparams*"):
        if not (keep and file.parent == folder and file.suffix == ".pdiparams"):
            file.unlink()


class Paddle:
    """A process with one version of Paddle, whose forks run the steps (served.py); the first of them starts it."""

    def __init__(self, version: int) -> None:
        self.python = PADDLE[version]
        self._process: subprocess.Popen[str] | None = None

    def ask(self, module: str, net: str, arguments: list[Any], limit: float) -> str:
        """What went wrong in `module.main(arguments)`, if anything did."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [str(self.python), str(HERE / "served.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment(),
                cwd=OUT,
            )
        assert self._process.stdin and self._process.stdout
        imports = [ALL[net].layer.partition(":")[0]]
        words = {"module": module, "arguments": list(map(str, arguments)), "imports": imports, "limit": limit}
        print(json.dumps(words), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        return str(json.loads(line)["error"]) if line else f"Paddle's process ended with {self._process.wait()}"


class Steps:
    """The steps of one net, and what they found."""

    def __init__(self, name: str, limit: float, paddle: dict[int, Paddle]) -> None:
        self.name, self.limit, self.folder, self.ask_paddle = name, limit, OUT / name, paddle
        self.file = self.folder / "result.json"
        self.found: dict[str, Any] = json.loads(self.file.read_text("utf-8")) if self.file.exists() else {}

    def keep(self, **entries: Any) -> None:
        """Add to what was found."""
        self.found |= entries
        self.file.write_text(json.dumps(self.found, indent=1), "utf-8")

    def write(self) -> bool:
        """Let Paddle write the net; False if it can't."""
        if "write" not in self.found:
            self.folder.mkdir(parents=True, exist_ok=True)
            error = self.ask_paddle[2].ask("write", self.name, [self.name, self.folder], self.limit)
            # Paddle may end with its passes on, when all that is needed is there
            meta = self.folder / "meta.json"
            self.keep(write="" if meta.exists() else error, own_error=error)
            if meta.exists():
                self.keep(**json.loads(meta.read_text("utf-8")))
        return not self.found["write"]

    def compare(self) -> None:
        """Run it here."""
        if "compare" not in self.found:
            line, error = ask([sys.executable, HERE / "compare.py", self.name, self.folder], self.limit)
            self.keep(compare={"error": error} if error else json.loads(line))

    def paddle3(self) -> None:
        """The same net as Paddle 3 saves it."""
        if "pir" in self.found or not PADDLE[3].exists() or ALL[self.name].quantize:
            return
        pir = self.folder / "pir"
        shutil.rmtree(pir, ignore_errors=True)
        words = [self.name, pir, "--like", self.folder]
        error = self.ask_paddle[3].ask("write", self.name, words, self.limit)
        if error and not (pir / "meta.json").exists():
            self.keep(pir={"unsaved": error})
            return
        line, error = ask([sys.executable, HERE / "compare.py", self.name, self.folder, "--pir", pir], self.limit)
        self.keep(pir={"error": error} if error else json.loads(line))

    def train(self) -> None:
        """A step of training."""
        if "train" in self.found or not ALL[self.name].train:
            return
        folder = self.folder / "training"
        error = self.ask_paddle[2].ask("write_training", self.name, [self.name, folder], self.limit)
        line = ""
        if not error:
            line, error = ask([sys.executable, HERE / "compare_training.py", self.name, folder], self.limit)
        self.keep(train={"error": error} if error else json.loads(line))

    def times(self, rounds: int, seconds: float) -> None:
        """Times of Paddle and oprack in turns, one thread, on the largest case; run it on a quiet machine."""
        sys.path.insert(0, str(ROOT / "tests" / "benchmarks"))
        import compare
        import turns
        from workloads import workload

        if report.ratio(self.found):
            return
        turns.PYTHONS["paddle"] = str(PADDLE[2])
        compare.remake(self.folder)
        # on one thread none is left spinning, so no turn waits for those of the other
        what = workload(f"zoo {self.name}")
        results = turns.measure(what, 1, rounds, seconds, ("oprack", "paddle"), at_once=True, rest=0.0)
        self.keep(times={r.engine: {"median_ms": r.median_ms, "error": r.error} for r in results})

    def forget(self, times: bool) -> None:
        """Forget the times, or all that was found."""
        if times:
            self.found.pop("times", None)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.found = {}


def run(steps: Steps, given: argparse.Namespace) -> None:
    """Take the steps of one net that were asked for and are not done yet, and print what is known of it."""
    if given.again:
        steps.forget(given.times)
    if given.compare:
        steps.found = {k: v for k, v in steps.found.items() if k not in ("compare", "pir", "train")}
    written = steps.write()
    if written and given.times:
        steps.times(given.rounds, given.seconds)
    elif written and not given.write:
        steps.compare()
        steps.train()
        if not given.skip_paddle3:
            steps.paddle3()
    forget_parameters(steps.folder, given.keep)
    print(report.line(ALL[steps.name], steps.found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", metavar="NET", help="default: all")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one step of one net")
    parser.add_argument("--again", action="store_true", help="forget what was found")
    parser.add_argument("--compare", action="store_true", help="run oprack again on what Paddle wrote")
    parser.add_argument("--write", action="store_true", help="only let Paddle 2 write the nets")
    parser.add_argument("--times", action="store_true", help="only take times")
    parser.add_argument("--keep", action="store_true", help="keep the files of parameters, some 5 GiB")
    parser.add_argument("--skip-paddle3", action="store_true", help="leave the files of Paddle 3 for another run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="of one turn")
    given = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    paddle = {version: Paddle(version) for version in PADDLE}
    for name in given.nets or ALL:
        run(Steps(name, given.limit, paddle), given)
    if not given.write:  # nothing was compared
        report.write(OUT, ROOT / "docs" / "zoo.md")
    if given.nets and not (given.write or given.times):
        sys.exit(bool(differing(given.nets)))


def differing(names: list[str]) -> list[str]:
    """Nets of some that were not run, fail, or give other numbers than Paddle; "unjudged" ones are none."""
    found = {name: json.loads((OUT / name / "result.json").read_text("utf-8")) for name in names}
    return [name for name in names if report.agrees(ALL[name], found[name]) not in ("yes", "unjudged")]


if __name__ == "__main__":
    main()

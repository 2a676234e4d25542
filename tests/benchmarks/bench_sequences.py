"""An encoder of transformers on sentences without padding, beside padded ones of oprack, PyTorch and ONNX Runtime.

    python tests/benchmarks/bench_sequences.py [--rounds 5] [--padding 0 0.6] [--threads 1] [--clock cpu] [--out FILE]
    python tests/benchmarks/bench_sequences.py --train 1.0 [--threads 1] [--clock cpu] [--out FILE]

4 layers, 512 wide, 8 heads, 2048 between, gelu; 32 sentences, the longest of 128 words, the others drawn so that the
share of padding is as asked. Each engine is a process that waits for its turn; in a round each runs once forward, or
takes one training step (dropout 0.1, Adam), and a figure is the median over the rounds of the CPU's time, which other
work on the machine changes less than the clock's. Ratios are medians of the rounds' ratios.

With --train, the net of examples/train_pronunciation.py is trained on rows, and by PyTorch on padded batches of the
same words in the same order, from the same weights on, until the mean loss of 10 steps is as low as asked; in a turn
each takes 10 steps.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
PEERS = HERE.parents[1] / ".venv-peers" / "bin" / "python"
ENGINES = ("oprack rows", "oprack padded", "torch", "onnxruntime")
WORKER = HERE / "sequences_worker.py"
STEPS = 10  # of training in a turn


class Turns:
    """A process that has made its net, and waits.

    Args:
        engine: One of ENGINES.
        worker: Its script, and what that is given.
        options: Those of the command line.
    """

    def __init__(self, engine: str, worker: list[str], options: argparse.Namespace) -> None:
        threads = str(options.threads)
        environment = os.environ | dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads
        )
        environment["OPRACK_CPU_THREADS"] = threads
        python = sys.executable if engine.startswith("oprack") else str(options.peers)
        self._process = subprocess.Popen(
            [python, *worker], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.about = self._answer()

    def run(self, what: str) -> dict[str, Any]:
        """What the answer to a line of the worker says."""
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("an engine ended; its error stands above")
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """Let the process go."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def measured(padding: float, options: argparse.Namespace) -> list[str]:
    """Lines of a table for one share of padding."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        turns = {}
        for e in ("torch", *(e for e in ENGINES if e != "torch")):
            turns[e] = Turns(e, [str(WORKER), e, str(padding), str(options.threads), folder], options)
        rows = turns["oprack rows"].about["rows"]
        lines.append(f"padding {padding:.0%}: {rows} rows of {32 * 128 if padding else rows}")
        for what in ("forward", "step"):
            able = [e for e in ENGINES if what == "forward" or e != "onnxruntime"]
            found = [{e: turns[e].run(what) for e in able} for _ in range(options.rounds)]
            for engine in able:
                seconds = [r[engine][options.clock] for r in found]
                ratio = statistics.median(r[engine][options.clock] / r["torch"][options.clock] for r in found)
                beside = f"{ratio:6.2f} of torch"
                if what == "forward":
                    of_ort = statistics.median(
                        r[engine][options.clock] / r["onnxruntime"][options.clock] for r in found
                    )
                    beside += f"{of_ort:6.2f} of onnxruntime"
                lines.append(f"  {what:8}{engine:15}{statistics.median(seconds) * 1e3:8.0f} ms{beside}")
        for turn in turns.values():
            turn.end()
    return lines


def trained(options: argparse.Namespace) -> Iterator[str]:
    """Lines of a table: how long the loss takes to be as low as asked, on rows and padded."""
    sys.path.insert(0, str(HERE.parents[1] / "examples"))
    import train_pronunciation as example

    data, _ = example.words(False)
    found: dict[str, dict[str, float]] = {}
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "words.npz"
        columns = {"letters": [x for x, _ in data], "phonemes": [x for _, x in data]}
        flat = {name: np.concatenate(parts) for name, parts in columns.items()}
        lengths = {f"{name} lengths": [len(x) for x in parts] for name, parts in columns.items()}
        weights = {name: value.numpy() for name, value in example.Speaker().state_dict().items()}
        np.savez(file, **flat, **lengths, **weights)
        script = str(HERE / "pronunciation_worker.py")
        turns = {e: Turns(e, [script, e, str(options.threads), str(file)], options) for e in ("oprack rows", "torch")}
        spent, step = dict.fromkeys(turns, 0.0), 0
        while len(found) < len(turns):
            took, step = {}, step + STEPS
            for engine, turn in turns.items():
                answer = turn.run(str(STEPS))
                loss = statistics.mean(answer["losses"])
                took[engine] = answer[options.clock]
                spent[engine] += took[engine]
                if loss <= options.train and engine not in found:
                    found[engine] = {"steps": step, "seconds": spent[engine], "loss": loss}
            ratios.append(took["oprack rows"] / took["torch"])
        for turn in turns.values():
            turn.end()
    yield f"pronunciations, until the mean loss of {STEPS} steps is {options.train}"
    for engine, one in found.items():
        each = one["seconds"] / one["steps"] * 1e3
        steps = f"{one['steps']:6.0f} steps{each:8.0f} ms a step"
        yield f"  {engine:15}{one['seconds']:8.1f} s{steps}, loss {one['loss']:.3f}"
    whole = found["oprack rows"]["seconds"] / found["torch"]["seconds"]
    yield f"  {whole:.2f} of the time of torch; a turn {statistics.median(ratios):.2f} of it"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--padding", type=float, nargs="+", default=[0.0, 0.6])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu", help="wall: where nobody else is at work")
    parser.add_argument("--peers", type=Path, default=PEERS, help="a Python that has torch and onnxruntime")
    parser.add_argument("--train", type=float, metavar="LOSS", help="train an encoder-decoder, to this loss")
    parser.add_argument("--out", type=Path, help="a file to which the table is added")
    options = parser.parse_args()
    lines = [
        f"{platform.machine()}, {options.threads} thread(s), {options.clock} time, medians of {options.rounds} rounds"
    ]
    for padding in options.padding if options.train is None else ():
        lines += measured(padding, options)
    if options.train is not None:
        lines[:] = [lines[0].rpartition(",")[0], *trained(options)]
    print("\n".join(lines), flush=True)
    if options.out is not None:
        with options.out.open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

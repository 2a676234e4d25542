"""An encoder of transformers on sentences without padding, beside padded ones of oprack, PyTorch and ONNX Runtime.

    python tests/benchmarks/bench_sequences.py [--rounds 5] [--padding 0 0.6] [--threads 1] [--clock cpu] [--out FILE]

4 layers, 512 wide, 8 heads, 2048 between, gelu; 32 sentences, the longest of 128 words, the others drawn so that the
share of padding is as asked. Each engine is a process that waits for its turn; in a round each runs once forward, or
takes one training step (dropout 0.1, Adam), and a figure is the median over the rounds of the CPU's time, which other
work on the machine changes less than the clock's. Ratios are medians of the rounds' ratios.
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
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEERS = HERE.parents[1] / ".venv-peers" / "bin" / "python"
ENGINES = ("oprack rows", "oprack padded", "torch", "onnxruntime")
WORKER = HERE / "sequences_worker.py"


class Turns:
    """A process that has made its encoder, and waits.

    Args:
        engine: One of ENGINES.
        padding: The share of padding.
        options: Those of the command line.
        folder: Where PyTorch leaves the model that ONNX Runtime reads.
    """

    def __init__(self, engine: str, padding: float, options: argparse.Namespace, folder: Path) -> None:
        threads = str(options.threads)
        environment = os.environ | dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads
        )
        environment["OPRACK_CPU_THREADS"] = threads
        python = sys.executable if engine.startswith("oprack") else str(options.peers)
        command = [python, str(WORKER), engine, str(padding), threads, str(folder)]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.about = self._answer()

    def run(self, what: str) -> dict[str, Any]:
        """What one "forward" or "step" took."""
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
        turns = {e: Turns(e, padding, options, Path(folder)) for e in ("torch", *(e for e in ENGINES if e != "torch"))}
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--padding", type=float, nargs="+", default=[0.0, 0.6])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu", help="wall: where nobody else is at work")
    parser.add_argument("--peers", type=Path, default=PEERS, help="a Python that has torch and onnxruntime")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [
        f"{platform.machine()}, {options.threads} thread(s), {options.clock} time, medians of {options.rounds} rounds"
    ]
    for padding in options.padding:
        lines += measured(padding, options)
        print("\n".join(lines), flush=True)
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()

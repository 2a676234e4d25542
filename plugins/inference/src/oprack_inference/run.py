"""oprack run MODEL --feed NAME=FILE.npy [--cast] [--out FILE.npz] [--int8] [--threads N] [--repeat N] [--profile]"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.cli.main import OK
from oprack.cli.output import (
    add_block,
    add_json,
    add_model,
    check_file,
    manager_of,
    model_arguments,
    print_json,
    print_table,
    track,
    working,
)
from oprack_ir.feeds import add_feeds
from oprack_ir.precisions import add_precisions, precisions_of

if TYPE_CHECKING:
    from oprack.io.inference_model import InferenceModel
    from oprack.ir import Optimized
    from oprack.runtime import Executor, Profiler
    from oprack.tensor import Place, Scope


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_feeds(parser)
    parser.add_argument("--out", metavar="FILE.npz", help="write the outputs, LoD as <output>.lod.<level>")
    parser.add_argument("--repeat", type=_count, default=1, metavar="N", help="run N times, and print the times")
    parser.add_argument(
        "--place", type=_place, metavar="PLACE", help="where to run: cpu, cuda, or cuda:1 (default: cpu)"
    )
    _add_threads(parser)
    add_precisions(parser)
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="keep the rewritten model in DIR, so that the next run of the same model runs no pass",
    )
    parser.add_argument("--no-passes", action="store_true", help="leave out the passes that predictors apply")
    parser.add_argument(
        "--reference", action="store_true", help="take the reference path instead of the prepared one; no passes"
    )
    parser.add_argument(
        "--check-nan", action="store_true", help="stop at the first op that makes a NaN or an infinity; no passes"
    )
    parser.add_argument("--profile", action="store_true", help="run once more op by op, and print the time by op")
    parser.add_argument("--trace", metavar="FILE.json", help="run once more op by op, and write a trace for Perfetto")
    add_json(parser)
    add_block(parser)
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of runs; expected 1 or more")
    return int(text)


def _place(text: str) -> Place:
    from oprack.tensor import CPUPlace, CUDAPlace

    kind, _, number = text.partition(":")
    if text == "cpu":
        return CPUPlace()
    if kind != "cuda" or (number or "0").strip("0123456789"):
        raise argparse.ArgumentTypeError(f"{text!r} is no place; expected cpu, cuda, or cuda:N")
    return CUDAPlace(int(number or 0))


def _add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", type=_threads, metavar="N", help="threads of NumPy and kernel libraries (default: as they decide)"
    )


def _threads(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of threads; expected 1 to 1024")
    return int(text)


def run(args: argparse.Namespace) -> int:
    check_file("--out", args.out, "outputs.npz")
    check_file("--trace", args.trace, "trace.json")
    measured = _measure(args)
    if args.out:
        _write(Path(args.out), measured.outputs)
    if args.trace:
        measured.profiler.chrome_trace(args.trace)
    summaries = {n: _summary(v) for n, v in measured.outputs.items()}
    if args.json:
        report: dict[str, Any] = {"outputs": summaries, "milliseconds": [round(t, 3) for t in measured.times]}
        print_json(report | ({"profile": measured.profiler.by_op()} if args.profile else {}))
        return OK
    _print(summaries, measured.times)
    if args.profile:
        print(f"\nOne more run, op by op:\n{measured.profiler.table()}")
    if args.out or args.trace:
        print()
    for label, path in (("outputs", args.out), ("trace", args.trace)):
        if path:
            print(f"{label}: {path}")
    return OK


@dataclass
class _Measured:
    """The results of the runs.

    Attributes:
        outputs: Those of the last run.
        times: Milliseconds of each run.
        profiler: Has the events of one more run, if that was requested.
    """

    outputs: dict[str, Any]
    times: list[float]
    profiler: Profiler


def _measure(args: argparse.Namespace) -> _Measured:
    from oprack.inference.predictor import ThreadLimits
    from oprack.runtime import Checks, Executor, Profiler
    from oprack.tensor import Scope
    from oprack_ir.feeds import explained, read_feeds

    scope = Scope()
    checks = Checks(nan_inf=args.check_nan)
    executor = Executor(args.place, prepared=not args.reference, checks=checks, manager=manager_of(args))
    executor.pool.get(executor.place)
    with working("reading and rewriting the model"):
        model = _load(args, scope, executor)
    feed = read_feeds(args.feed, args.lod, model, args.cast)

    def once() -> list[Any]:
        return executor.run(model.program.desc, feed, model.fetch_names, scope, return_numpy=False)

    times: list[float] = []
    outputs: list[Any] = []
    profiler = Profiler()
    few = args.repeat < 3
    threads = ThreadLimits(args.threads, executor.manager)
    with explained(model, feed), threads(), working("running") if few else contextlib.nullcontext():
        for _ in range(args.repeat) if few else track(range(args.repeat), "running"):
            start = time.perf_counter()
            outputs = once()
            times.append((time.perf_counter() - start) * 1e3)
        if args.profile or args.trace:
            with profiler:
                once()
    return _Measured(dict(zip(model.fetch_names, outputs, strict=True)), times, profiler)


def _load(args: argparse.Namespace, scope: Scope, executor: Executor) -> InferenceModel:
    """The model as it is run, with its parameters in `scope`, which are read-only."""
    from oprack.errors import InvalidArgumentError
    from oprack.inference import Config
    from oprack.inference.loading import load_model
    from oprack.inference.optim_cache import load_optimized
    from oprack.io.inference_model import freeze_parameters
    from oprack.runtime.profiler import in_reference
    from oprack_ir.precisions import unused_precisions

    path, model_filename, params = model_arguments(args)
    config = Config(path)
    if model_filename:
        config.set_prog_file(model_filename)
    if params:
        config.set_params_file(params)
    precisions = precisions_of(args)
    if args.int8:
        config.enable_mkldnn_int8()
    if args.bf16:
        config.enable_mkldnn_bfloat16()
    unchanged = args.reference or args.check_nan or args.no_passes or in_reference()

    def rewritten() -> tuple[InferenceModel, Optimized]:
        from oprack.ir.models import optimize_model

        found = optimize_model(load_model(config, scope), scope, executor, precisions=precisions)
        freeze_parameters(scope)
        for note in unused_precisions(precisions, found[1], executor.manager):
            print(f"oprack run: {note}", file=sys.stderr)
        return found

    if unchanged and (args.cache or precisions):
        given = [option for option in ("--cache", "--int8", "--bf16") if getattr(args, option[2:])]
        raise InvalidArgumentError(
            f"{' and '.join(given)}: passes do that, and --no-passes, --reference, --check-nan and OPRACK_REFERENCE "
            "run none; expected one or the other"
        )
    if args.cache:
        config.set_optim_cache_dir(args.cache)
        return load_optimized(config, scope, executor, rewritten, lambda model: None)[0]
    if not unchanged:
        return rewritten()[0]
    model = load_model(config, scope)
    freeze_parameters(scope)
    return model


def _print(summaries: dict[str, dict[str, Any]], times: list[float]) -> None:
    rows = []
    for name, s in summaries.items():
        values = "" if s["min"] is None else f"{s['min']:.6g} .. {s['max']:.6g}"
        if s["not_finite"]:
            values += f"{', ' if values else ''}{s['not_finite']} not finite"
        rows.append((name, s["kind"], s["dtype"], s["shape"], s["lod"] or "", values))
    print_table(("OUTPUT", "KIND", "DTYPE", "SHAPE", "LOD", "VALUES"), rows)
    first, rest = times[0], times[1:]
    line = f"\nfirst run {first:.1f} ms"
    if rest:
        line += f", the next {len(rest)}: median {statistics.median(rest):.1f} ms, fastest {min(rest):.1f} ms"
    print(line)


def _summary(value: Any) -> dict[str, Any]:
    """Kind, dtype, shape, LoD, least and greatest finite value, and the number of values that are not finite."""
    import numpy as np

    summary: dict[str, Any] = {"kind": "array", "dtype": "", "shape": [], "lod": [], "min": None, "max": None}
    summary["not_finite"] = 0
    if isinstance(value, list):
        return summary | {"shape": [len(value)]}
    rows = hasattr(value, "height")
    array = np.asarray(value.value if rows else value)
    summary |= {"kind": "rows" if rows else "tensor", "dtype": value.dtype, "shape": list(value.shape)}
    summary["lod"] = getattr(value, "lod", [])
    if array.dtype.name in ("bfloat16", "bool"):
        array = array.astype(np.float32)
    if array.dtype.kind in "iuf":
        finite = array[np.isfinite(array)]
        summary["not_finite"] = array.size - finite.size
        if finite.size:
            summary |= {"min": finite.min().item(), "max": finite.max().item()}
    return summary


def _write(path: Path, named: dict[str, Any]) -> None:
    import io

    import numpy as np
    from oprack.io.atomic import write_atomic

    arrays: dict[str, Any] = {}
    for name, value in named.items():
        for i, item in enumerate(value if isinstance(value, list) else [value]):
            key = f"{name}.{i}" if isinstance(value, list) else name
            if item is None:
                continue
            if hasattr(item, "height"):
                arrays[key], arrays[key + ".rows"] = item.value, item.rows
                continue
            arrays[key] = np.asarray(item)
            arrays.update({f"{key}.lod.{k}": np.asarray(level) for k, level in enumerate(item.lod)})
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    write_atomic(path, buffer.getvalue())

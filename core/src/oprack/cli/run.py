"""oprack run MODEL --feed NAME=FILE.npy [--out FILE.npz] [--repeat N] [--profile] [--trace FILE.json] [--json]"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.cli.main import OK
from oprack.cli.models import add_model, model_arguments
from oprack.cli.output import add_block, add_json, manager_of, print_json, print_table

if TYPE_CHECKING:
    from oprack.tensor import LoDTensor


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--feed",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="an input as .npy, or several as .npz with one array per input; NAME may be left out for a single input",
    )
    parser.add_argument(
        "--lod",
        action="append",
        default=[],
        metavar="NAME=OFFSETS",
        help="offsets of an input's sequences, levels separated by ';': --lod words=0,3,7",
    )
    parser.add_argument("--out", metavar="FILE.npz", help="write the outputs, LoD as <output>.lod.<level>")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run N times; times are printed")
    parser.add_argument("--reference", action="store_true", help="take the reference path instead of the prepared one")
    parser.add_argument("--check-nan", action="store_true", help="stop at the first op that makes a NaN or an infinity")
    parser.add_argument("--profile", action="store_true", help="print the time by op")
    parser.add_argument("--trace", metavar="FILE.json", help="write a trace that Perfetto opens")
    add_json(parser)
    add_block(parser)


def run(args: argparse.Namespace) -> int:
    from oprack.io import load_inference_model
    from oprack.runtime import Checks, Executor, Profiler
    from oprack.tensor import Scope

    if args.repeat < 1:
        raise SystemExit(f"oprack run: --repeat {args.repeat}: expected 1 or more")
    path, model_filename, params = model_arguments(args)
    scope = Scope()
    model = load_inference_model(path, scope, model_filename=model_filename, params_filename=params)
    feed = _feeds(args, model.feed_names)
    executor = Executor(prepared=not args.reference, checks=Checks(nan_inf=args.check_nan), manager=manager_of(args))
    times: list[float] = []
    profiler = Profiler()
    for i in _progress(args.repeat, quiet=args.json):
        start = time.perf_counter()
        if i == args.repeat - 1 and (args.profile or args.trace):
            with profiler:
                outputs = executor.run(model.program, feed, model.fetch_names, scope, return_numpy=False)
        else:
            outputs = executor.run(model.program, feed, model.fetch_names, scope, return_numpy=False)
        times.append((time.perf_counter() - start) * 1e3)
    named = dict(zip(model.fetch_names, outputs, strict=True))
    if args.out:
        _write(Path(args.out), named)
    if args.trace:
        profiler.chrome_trace(args.trace)
    if args.json:
        print_json(
            {"outputs": {n: _summary(v) for n, v in named.items()}, "milliseconds": times, "profile": profiler.by_op()}
        )
        return OK
    rows = [
        (n, s["kind"], s["dtype"], s["shape"], s["lod"] or "", s["range"])
        for n, s in ((n, _summary(v)) for n, v in named.items())
    ]
    print_table(("OUTPUT", "KIND", "DTYPE", "SHAPE", "LOD", "MIN .. MAX"), rows)
    first, rest = times[0], sorted(times[1:])
    print(
        f"\nfirst run {first:.1f} ms"
        + (f", median of the next {len(rest)}: {rest[len(rest) // 2]:.1f} ms" if rest else "")
    )
    if args.profile:
        print(f"\n{profiler.table()}")
    for what, where in (("outputs", args.out), ("trace", args.trace)):
        if where:
            print(f"{what}: {where}")
    return OK


def _progress(repeat: int, quiet: bool) -> Any:
    if repeat < 3 or quiet:
        return range(repeat)
    from rich.progress import track

    return track(range(repeat), "running", transient=True)


def _feeds(args: argparse.Namespace, names: list[str]) -> dict[str, LoDTensor]:
    import numpy as np

    from oprack.errors import FeedError, FeedNameError
    from oprack.tensor import LoDTensor

    arrays: dict[str, Any] = {}
    for given in args.feed:
        name, _, file = given.rpartition("=")
        try:
            loaded = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise FeedError(
                f"--feed {given}: {file!r} can't be read as .npy or .npz without unpickling ({error}); write it with "
                "numpy.save or numpy.savez from an array of numbers"
            ) from error
        if isinstance(loaded, np.ndarray):
            if not name and len(names) != 1:
                raise FeedNameError(f"--feed {given}: the model has inputs {', '.join(names)}; say NAME={file}")
            arrays[name or names[0]] = loaded
        else:
            arrays.update(loaded)
    lods = dict(_lod(given) for given in args.lod)
    strange = [n for n in lods if n not in arrays]
    if strange:
        raise FeedNameError(
            f"--lod names {', '.join(strange)}, which no --feed gives; expected one of {', '.join(arrays)}"
        )
    return {n: LoDTensor(a, lods.get(n), check=False) for n, a in arrays.items()}


def _lod(given: str) -> tuple[str, list[list[int]]]:
    from oprack.errors import FeedLoDError

    name, _, text = given.partition("=")
    try:
        return name, [[int(x) for x in level.split(",")] for level in text.split(";")]
    except ValueError:
        raise FeedLoDError(f"--lod {given}: expected NAME=0,3,7 with levels separated by ';'") from None


def _summary(value: Any) -> dict[str, Any]:
    import numpy as np

    if isinstance(value, list):
        return {"kind": "array", "dtype": "", "shape": f"{len(value)} tensors", "lod": [], "range": ""}
    array = np.asarray(value.value if hasattr(value, "height") else value)
    extent = f"{array.min():.6g} .. {array.max():.6g}" if array.size and array.dtype.kind in "iufb" else ""
    kind = "rows" if hasattr(value, "height") else "tensor"
    return {
        "kind": kind,
        "dtype": value.dtype,
        "shape": list(value.shape),
        "lod": getattr(value, "lod", []),
        "range": extent,
    }


def _write(path: Path, named: dict[str, Any]) -> None:
    import io

    import numpy as np

    from oprack.io.atomic import write_atomic

    arrays: dict[str, Any] = {}
    for name, value in named.items():
        for i, item in enumerate(value if isinstance(value, list) else [value]):
            key = f"{name}.{i}" if isinstance(value, list) else name
            if hasattr(item, "height"):
                arrays[key], arrays[key + ".rows"] = item.value, item.rows
                continue
            arrays[key] = np.asarray(item)
            arrays.update({f"{key}.lod.{k}": np.asarray(level) for k, level in enumerate(item.lod)})
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    write_atomic(path, buffer.getvalue())

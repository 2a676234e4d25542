"""oprack quantize MODEL --data FILES [--out DIR] [--method mse] [--per-tensor] [--least-db N] [--skip NAME] [--cast]

With --precision auto --error E each layer has the precision that is faster here and rounds little enough.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.cli.output import add_model, model_arguments

if TYPE_CHECKING:
    from oprack_quantization.post_training import LayerReport, Quantized


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `oprack quantize`."""
    from oprack.cli.output import add_json
    from oprack_ir.feeds import add_cast

    from oprack_quantization.post_training.layers import OPS
    from oprack_quantization.post_training.scales import METHODS

    add = parser.add_argument
    add_model(parser)
    add(
        "--data",
        nargs="+",
        required=True,
        metavar="FILE",
        help="inputs like those that the model will see: .npz files with an array for each input, or .npy files where "
        "there is one; each file is one run",
    )
    add(
        "--out",
        metavar="OUT",
        help="where to write: OUT.pdmodel and OUT.pdiparams (default: MODEL with -int8 behind, or -auto)",
    )
    add(
        "--precision",
        choices=["int8", "auto"],
        default="int8",
        help="auto: each layer in int8, bfloat16 or float32, whichever is faster here and rounds little enough",
    )
    add(
        "--error",
        type=float,
        metavar="E",
        help="with --precision auto: the most that the relative error of an output may be, over all inputs together "
        "(sqrt(sum (y - y0)^2 / sum y0^2)), such as 0.01",
    )
    add("--method", choices=list(METHODS), default="mse", help="how scales are chosen (default: %(default)s)")
    channels = parser.add_mutually_exclusive_group()
    channels.add_argument(
        "--per-channel", action="store_true", default=True, help="a scale for each channel of a weight; the default"
    )
    channels.add_argument("--per-tensor", dest="per_channel", action="store_false", help="one scale for each weight")
    add(
        "--least-db",
        type=float,
        default=10.0,
        metavar="DB",
        help="layers whose result is less than this above its error stay in floats (default: %(default)s)",
    )
    add("--ops", nargs="+", choices=OPS, default=list(OPS), metavar="OP", help="op types to quantise (default: all)")
    add("--skip", nargs="+", default=[], metavar="NAME", help="layers to leave, by output or weight")
    add(
        "--enlarged",
        action="store_true",
        help="quantise convolutions of enlarged maps, too, which are faster in floats",
    )
    add_cast(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, write the program, and print what it costs."""
    from oprack.cli.main import FINDING, OK
    from oprack.cli.output import track, working
    from oprack.errors import InvalidArgumentError
    from oprack.io import load_inference_model, save_inference_model
    from oprack.tensor import Scope
    from oprack_ir.feeds import explained, read_feeds

    from oprack_quantization.post_training import choose_precisions, quantize_post_training

    if (args.precision == "auto") != (args.error is not None):
        raise InvalidArgumentError("--precision auto and --error belong together; expected both, or neither")
    path, model_filename, params_filename = model_arguments(args)
    prefix = Path(args.out.removesuffix(".pdmodel")) if args.out else _beside(Path(args.model), args.precision)
    if prefix.is_dir():
        raise InvalidArgumentError(
            f"--out {prefix} is a folder; expected the files' path without ending, such as {prefix / 'inference'}"
        )
    scope = Scope()
    with working("reading the model"):
        model = load_inference_model(path, scope, model_filename=model_filename, params_filename=params_filename)
    feeds = [read_feeds([file], [], model, args.cast) for file in args.data]
    shared = {
        "method": args.method,
        "per_channel": args.per_channel,
        "ops": args.ops,
        "skip": args.skip,
        "enlarged": args.enlarged,
        "track": track,
    }
    given = model.program, scope, feeds, model.fetch_names
    with explained(model, *feeds):
        if args.precision == "auto":
            done = choose_precisions(*given, error=args.error, **shared)
        else:
            done = quantize_post_training(*given, least_decibels=args.least_db, **shared)
    if nothing := done.why_nothing():
        _print(args, done, None)
        print(f"nothing was quantised, and nothing is written: {nothing}", file=sys.stderr)
        return FINDING
    prefix.parent.mkdir(parents=True, exist_ok=True)
    save_inference_model(prefix, done.program, model.feed_names, model.fetch_names, scope)
    _print(args, done, prefix)
    return OK


def _beside(model: Path, precision: str) -> Path:
    """Where the quantised model goes when nothing is said: model/inference.pdmodel -> model/inference-int8."""
    if model.is_dir():
        return model / f"model-{precision}"
    name = model.name if model.suffix not in (".pdmodel", ".json") else model.stem
    return model.with_name(f"{name}-{precision}")


def _print(args: argparse.Namespace, done: Quantized, prefix: Path | None) -> None:
    from oprack.cli.output import print_json, print_table
    from oprack.python.text import printable

    if args.json:
        layers = [{k: _number(v) for k, v in asdict(layer).items()} for layer in done.layers]
        outputs = {name: _number(decibels) for name, decibels in done.outputs.items()}
        model = None if prefix is None else f"{prefix}.pdmodel"
        chosen = {"errors": done.errors, "seconds": done.seconds} if done.seconds else {}
        print_json({"model": model, "outputs": outputs, "layers": layers, "others": done.others, **chosen})
        return
    if not done.layers:
        return
    print_table(["op", "writes", "dB", "scale", "runs in"], [_row(layer) for layer in done.layers])
    if prefix is None:
        return
    for name, decibels in done.outputs.items():
        print(f"output {printable(name)}: {decibels:.1f} dB above the error of all layers together")
    for name, seconds in done.seconds.items():
        print(f"{name}: {1e3 * seconds:.1f} ms")
    how = " ".join({"int8": "--int8", "bfloat16": "--bf16"}[name] for name in done.precisions)
    print(
        f"written: {printable(str(prefix))}.pdmodel and .pdiparams; "
        f"`oprack run {how}` computes in {' and '.join(done.precisions)}"
    )


def _number(value: Any) -> Any:
    """A value as JSON has it, in which NaN and infinities are no numbers."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _row(layer: LayerReport) -> tuple[str, ...]:
    decibels = "" if math.isnan(layer.decibels) else f"{layer.decibels:.1f}"
    where = f"float32: {layer.left}" if layer.left else layer.precision
    return layer.op_type, layer.output, decibels, f"{layer.scale:.4g}" if layer.scale else "", where

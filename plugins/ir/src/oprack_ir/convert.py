"""oprack convert MODEL --to pdmodel OUT"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oprack.cli.main import OK
from oprack.cli.output import add_model, model_arguments, working
from oprack.errors import InvalidArgumentError, MissingPackError
from oprack.python.text import printable

if TYPE_CHECKING:
    from oprack.io.inference_model import InferenceModel
    from oprack.tensor import Scope


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--to",
        default="pdmodel",
        metavar="FORMAT",
        help="the format to write: pdmodel, or one that a plugin writes, such as onnx (default: %(default)s)",
    )
    parser.add_argument("out", metavar="OUT", help="where to write: OUT.pdmodel and OUT.pdiparams, or OUT.onnx")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from oprack.io import load_inference_model
    from oprack.io.inference_model import formats
    from oprack.tensor import Scope

    path, model_filename, params_filename = model_arguments(args)
    writers = {f.suffix: f for f in formats() if f.writer}
    suffix = f".{args.to.removeprefix('.')}"
    if suffix != ".pdmodel" and suffix not in writers:
        raise MissingPackError(
            f"--to {args.to}: no installed plugin writes this format; expected one of "
            f"{', '.join(s[1:] for s in ('.pdmodel', *writers))} (pip install oprack-onnx writes onnx)"
        )
    prefix = Path(args.out.removesuffix(suffix))
    if prefix.is_dir():
        raise InvalidArgumentError(
            f"OUT is the folder {str(prefix)!r}; expected the files' path without ending, for example "
            f"{str(prefix / 'inference')!r}"
        )
    scope = Scope()
    files: Sequence[Path]
    remarks: Sequence[str] = ()
    with working("converting"):
        model = load_inference_model(path, scope, model_filename=model_filename, params_filename=params_filename)
        prefix.parent.mkdir(parents=True, exist_ok=True)
        if suffix == ".pdmodel":
            files = _write_fluid(prefix, model, scope)
        else:
            files, remarks = writers[suffix].write(model, scope, Path(f"{prefix}{suffix}"))
    print(f"written: {', '.join(f'{printable(str(file))} ({file.stat().st_size:,} bytes)' for file in files)}")
    for remark in remarks:
        print(f"note: {printable(remark)}", file=sys.stderr)
    return OK


def _write_fluid(prefix: Path, model: InferenceModel, scope: Scope) -> Sequence[Path]:
    from oprack.io import save_inference_model

    save_inference_model(prefix, model.program, model.feed_names, model.fetch_names, scope)
    return [file for ending in (".pdmodel", ".pdiparams") if (file := Path(f"{prefix}{ending}")).is_file()]

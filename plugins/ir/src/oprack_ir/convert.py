"""oprack convert MODEL --to pdmodel OUT"""

from __future__ import annotations

import argparse
from pathlib import Path

from oprack.cli.main import OK
from oprack.cli.output import add_model, model_arguments, working
from oprack.errors import InvalidArgumentError
from oprack.python.text import printable


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--to", choices=["pdmodel"], default="pdmodel", help="the format to write (default: %(default)s)"
    )
    parser.add_argument("out", metavar="OUT", help="where to write: OUT.pdmodel and OUT.pdiparams")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from oprack.io import load_inference_model, save_inference_model
    from oprack.tensor import Scope

    path, model_filename, params_filename = model_arguments(args)
    prefix = Path(args.out.removesuffix(".pdmodel"))
    if prefix.is_dir():
        raise InvalidArgumentError(
            f"OUT is the folder {str(prefix)!r}; expected the files' path without ending, for example "
            f"{str(prefix / 'inference')!r}"
        )
    scope = Scope()
    with working("converting"):
        model = load_inference_model(path, scope, model_filename=model_filename, params_filename=params_filename)
        prefix.parent.mkdir(parents=True, exist_ok=True)
        save_inference_model(prefix, model.program, model.feed_names, model.fetch_names, scope)
    written = [file for ending in (".pdmodel", ".pdiparams") if (file := Path(f"{prefix}{ending}")).is_file()]
    print(f"written: {', '.join(f'{printable(str(file))} ({file.stat().st_size:,} bytes)' for file in written)}")
    return OK

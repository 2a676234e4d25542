"""oprack ui [MODEL] [--params FILE] [--port PORT] [--memory-limit BYTES]; oprack graph MODEL OUT.svg [--fold]"""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `oprack ui`."""
    from oprack.cli.output import add_block
    from oprack_ir.precisions import add_precisions

    parser.add_argument(
        "model", nargs="?", help="folder with __model__ or one .pdmodel; such a file; or its path without ending"
    )
    parser.add_argument("--params", metavar="FILE", help="combined parameter file, where it has another name")
    parser.add_argument(
        "--port", type=_number, default=8010, help="port to listen at; 0: any free one (default: %(default)s)"
    )
    parser.add_argument(
        "--memory-limit",
        type=_number,
        default=2 << 30,
        metavar="BYTES",
        help="most memory for the outputs of one op of the model (default: %(default)s)",
    )
    parser.add_argument(
        "--loop-limit",
        type=_number,
        default=100_000,
        metavar="N",
        help="how often blocks of the model's loops may run in one run (default: %(default)s)",
    )
    add_precisions(parser)
    add_block(parser)
    parser.set_defaults(run=run)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no number; expected 0 or more")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Serve the page until the process is told to stop."""
    from oprack.cli.output import manager_of
    from oprack_ir.precisions import precisions_of

    from oprack_ui.app import make_app
    from oprack_ui.model import ShownModel
    from oprack_ui.server import serve

    manager = manager_of(args)
    model = None
    if args.model:
        limits = args.memory_limit, args.loop_limit
        model = ShownModel(args.model, args.params, manager, *limits, precisions=precisions_of(args))
    token = secrets.token_urlsafe(16)
    return serve(make_app(manager, model, token), args.port, token)


def configure_graph(parser: argparse.ArgumentParser) -> None:
    """The options of `oprack graph`."""
    from oprack.cli.output import add_block, add_model

    add_model(parser)
    parser.add_argument(
        "out", metavar="OUT.svg", help="the picture: the ops of every block, and variables between them"
    )
    parser.add_argument("--fold", action="store_true", help="draw chains of ops as one box each, as the page does")
    add_block(parser)
    parser.set_defaults(run=run_graph)


def run_graph(args: argparse.Namespace) -> int:
    """Draw the graph of a model."""
    from oprack.cli.output import check_file, manager_of, model_arguments
    from oprack.io.atomic import write_atomic
    from oprack.io.inference_model import load_program

    from oprack_ui.model import owners_of
    from oprack_ui.svg import draw_program

    check_file("OUT.svg", args.out, "model.svg")
    path, model_filename, _ = model_arguments(args)
    program, _, _ = load_program(path, model_filename=model_filename)
    owners = owners_of(program.desc, manager_of(args))
    write_atomic(Path(args.out), draw_program(program.desc, owners, args.fold).encode())
    print(f"graph: {args.out}")
    return 0

"""Model files as subcommands take them: a directory, a program file, or its prefix."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        help="directory with __model__ or one .pdmodel (or .json of Paddle 3); such a file; or its path without ending",
    )
    parser.add_argument("--params", metavar="FILE", help="combined parameter file, where it has another name")


def add_feeds(parser: argparse.ArgumentParser) -> None:
    """Options that oprack.cli.feeds.read_feeds takes."""
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
        metavar="[NAME=]OFFSETS",
        help="offsets of an input's sequences, levels separated by ';': --lod words=0,3,7",
    )


def model_arguments(args: argparse.Namespace) -> tuple[Path, str | None, str | None]:
    """path, model_filename and params_filename for oprack.io.load_inference_model."""
    path = Path(args.model)
    params = str(Path(args.params).absolute()) if args.params else None
    if path.is_file():
        return path.absolute().parent, path.name, params
    return path, None, params

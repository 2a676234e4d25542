"""oprack stubs: type stubs of oprack.functional, for editors and type checkers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path",
        nargs="?",
        type=Path,
        help="file or folder to write to, such as typings/oprack (then functional.pyi in it); default: standard output",
    )


def run(args: argparse.Namespace) -> int:
    from oprack.interpreter.stubs import stubs

    text = stubs()
    if args.path is None:
        sys.stdout.write(text)
        return 0
    path = args.path if args.path.suffix == ".pyi" else args.path / "functional.pyi"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(path)
    return 0

"""oprack stubs: type stubs of what packs bring, for editors and type checkers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path",
        nargs="?",
        type=Path,
        help="folder to write the stub package oprack-stubs to, such as typings, where pyright looks by itself; or a "
        "file NAME.pyi for oprack.functional alone; default: that one to standard output",
    )
    parser.add_argument(
        "--install",
        action="store_true",
        help="write the stub package beside the installed oprack, where mypy and pyright look",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    import oprack
    from oprack.functional.stub_package import write_stub_package
    from oprack.functional.stubs import stubs

    if args.install:
        print(write_stub_package(Path(oprack.__file__).parents[1]))
    elif args.path is None:
        sys.stdout.write(stubs())
    elif args.path.suffix == ".pyi":
        args.path.parent.mkdir(parents=True, exist_ok=True)
        args.path.write_text(stubs(), encoding="utf-8")
        print(args.path)
    else:
        # typings/oprack would hide the package itself
        print(write_stub_package(args.path.parent if args.path.name == "oprack" else args.path))
    return 0

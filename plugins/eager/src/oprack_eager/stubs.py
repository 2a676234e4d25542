"""oprack stubs: type stubs of what packs bring, for editors and type checkers."""

from __future__ import annotations

import argparse
from pathlib import Path

from oprack.cli.output import working


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
    with working("writing stubs of all ops and layers"):
        written = _written(args)
    print(written, end="" if args.path is None and not args.install else "\n")
    return 0


def _written(args: argparse.Namespace) -> str:
    """What the command prints: where the stubs were written to, or the stubs."""
    import oprack
    from oprack.functional.stub_package import write_stub_package
    from oprack.functional.stubs import stubs

    if args.install:
        return str(write_stub_package(Path(oprack.__file__).parents[1]))
    if args.path is None:
        return stubs()
    if args.path.suffix == ".pyi":
        args.path.parent.mkdir(parents=True, exist_ok=True)
        args.path.write_text(stubs(), encoding="utf-8")
        return str(args.path)
    # typings/oprack would hide the package itself
    return str(write_stub_package(args.path.parent if args.path.name == "oprack" else args.path))

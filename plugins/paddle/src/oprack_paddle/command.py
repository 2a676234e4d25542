"""oprack exec [--force] COMMAND ...: run a program that imports paddle, served by oprack."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `oprack exec`."""
    parser.add_argument(
        "--force", action="store_true", help="serve import paddle also where Paddle itself is installed"
    )
    parser.add_argument(
        "command_line", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="the command and its arguments"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Become the command."""
    from oprack_paddle.serving import run_command

    if not args.command_line:
        print("oprack exec: no command; write oprack exec python train.py")
        return 2
    return run_command(args.command_line, args.force)

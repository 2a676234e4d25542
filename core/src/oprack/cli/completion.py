"""oprack completion bash|zsh|fish; and the answer to a shell that asks."""

from __future__ import annotations

import argparse
import os
import shlex
from typing import Any

from oprack.cli.main import OK, build_parser, subparser

SHELLS = ("bash", "zsh", "fish")
_HOW = """\
to use it now, and in every new shell:
  bash   eval "$(oprack completion bash)"          in ~/.bashrc
  zsh    eval "$(oprack completion zsh)"           in ~/.zshrc, after compinit
  fish   oprack completion fish | source          in ~/.config/fish/config.fish
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.epilog = _HOW


def run(args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["oprack"], use_defaults=True, shell=args.shell))
    return OK


def complete() -> None:
    """Answer the shell, and end the process: options and subcommands, op types, packs and files."""
    import argcomplete

    parser = build_parser(_command(os.environ.get("COMP_LINE", "")))
    argcomplete.autocomplete(_completed(parser))


def _command(line: str) -> str:
    """The subcommand of an unfinished line; "" while it is being typed."""
    try:
        words = shlex.split(line)
    except ValueError:  # a quote is open
        words = line.split()
    known = words[1:] if line.endswith(" ") else words[1:-1]
    command = next((word for word in known if not word.startswith("-")), "")
    return command if command in subparser_names(build_parser()) else ""


def subparser_names(parser: argparse.ArgumentParser) -> list[str]:
    """The subcommands."""
    return [name for a in parser._actions if isinstance(a, argparse._SubParsersAction) for name in a.choices]


def _completed(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The parser, whose arguments know what they may be where argparse does not."""
    for name in subparser_names(parser):
        for action in subparser(parser, name)._actions:
            completer = _COMPLETERS.get(f"{name} {action.dest}") or _COMPLETERS.get(action.dest)
            if completer is not None:
                action.completer = completer  # type: ignore[attr-defined]
    return parser


def _op_types(prefix: str, **_: Any) -> list[str]:
    from oprack.packs.manager import default_manager

    return [name for name in default_manager().op_types() if name.startswith(prefix)]


def _packs(prefix: str, **_: Any) -> list[str]:
    from oprack.packs.manager import default_manager

    return [pack.name for pack in default_manager().packs() if pack.name.startswith(prefix)]


_COMPLETERS = {"op name": _op_types, "ops pattern": _op_types, "ops pack": _packs, "block": _packs, "prefer": _packs}
"""By subcommand and argument, or argument alone."""

"""Entry point of `oprack`: the table of subcommands, whose modules are imported only when they are called."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast

OK, FINDING, USAGE, BAD_INPUT, BROKEN_PACK = 0, 1, 2, 3, 4
EXIT_CODES = """\
exit codes:
  0  all went well
  1  the command found something: a broken pack, a stale manifest, a breaking change, an unknown op
  2  the command line is wrong
  3  an input is bad: a model, parameter file, feed or directory
  4  a pack can't do what the command needs
"""

# subcommand -> (module below oprack.cli, one line of help); the module has configure(parser) and run(args) -> exit code
COMMANDS = {
    "packs": ("packs", "list the installed packs, also broken and blocked ones"),
    "ops": ("ops", "list ops, with the pack that brings each and the places that it has kernels for"),
    "op": ("op", "describe an op: documentation, slots, attributes, gradient, kernels, and who provides what"),
    "completion": ("completion", "print what makes a shell complete command lines of oprack"),
    "doctor": ("doctor", "say what is installed and what is broken, with the whole reason"),
}


def build_parser(only: str = "") -> argparse.ArgumentParser:
    """Build the parser; only the subcommand `only` gets its options, so that no other module is imported."""
    from oprack import __version__

    parser = argparse.ArgumentParser(
        prog="oprack",
        description="A rack for deep-learning operators: lists, checks and runs what is installed.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"oprack {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, summary: str) -> argparse.ArgumentParser:
        return subparsers.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    for name, (module, summary) in COMMANDS.items():
        sub = add(name, summary)
        if name == only:
            command_module = importlib.import_module(f"oprack.cli.{module}")
            command_module.configure(sub)
            sub.set_defaults(run=command_module.run)
    if only in COMMANDS:
        return parser  # finding the commands of packs would load the packs
    commands = pack_commands()
    for name, command in commands.items():
        sub = add(name, command.summary)
        if name == only:
            command.configure(sub)
    if only and only not in commands:
        from oprack.packs import advice
        from oprack.packs.manager import default_manager

        parser.error(advice.unknown_command(only, (*COMMANDS, *commands), default_manager().discovered()))
    return parser


def parse(parser: argparse.ArgumentParser, command: str, argv: Sequence[str]) -> argparse.Namespace:
    """Read a command line; what the subcommand does not know is told with its own options, and the near ones.

    Args:
        parser: With the options of the subcommand.
        command: Its name.
        argv: The words.
    """
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        sub = subparser(parser, command)
        known = [option for action in sub._actions for option in action.option_strings]
        near = [one for word in unknown for one in get_close_matches(word.partition("=")[0], known, 1)]
        hint = f" (did you mean {' or '.join(dict.fromkeys(near))}?)" if near else ""
        sub.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return args


def subparser(parser: argparse.ArgumentParser, command: str) -> argparse.ArgumentParser:
    """The parser of a subcommand; the whole one where there is none of that name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and command in action.choices:
            return cast("argparse.ArgumentParser", action.choices[command])
    return parser


@dataclass(frozen=True)
class PackCommand:
    """A subcommand that a pack brings."""

    owner: str
    name: str
    summary: str
    target: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add its options and the function that runs it. Raises PackImportError."""
        from oprack.packs.installed.resolve import import_object

        import_object(self.target, f"command {self.name} of {self.owner}")(parser)


def pack_commands() -> dict[str, PackCommand]:
    """Subcommands of packs by name. One whose name is a subcommand of core is left out, with a warning."""
    from oprack.packs.manager import default_manager
    from oprack.packs.pack import PackWarning, warn

    commands: dict[str, PackCommand] = {}
    for owner, key, target in default_manager().targets("command"):
        command = PackCommand(owner, **json.loads(key), target=target)
        if command.name in COMMANDS:
            warn(
                f"command {command.name!r} of {owner} is left out, since oprack itself brings one of that name; "
                f"OPRACK_BLOCK={owner} leaves the pack out",
                PackWarning,
            )
        else:
            commands[command.name] = command
    return commands


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    print(f"oprack: {category.__name__}: {message}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code. Errors of oprack are printed without a traceback."""
    from oprack.errors import OprackError
    from oprack.python.text import printable

    if "_ARGCOMPLETE" in os.environ:  # a shell asks, by what `oprack completion` printed
        importlib.import_module("oprack.cli.completion").complete()
    argv = sys.argv[1:] if argv is None else list(argv)
    command = next((a for a in argv if not a.startswith("-")), "")
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            args = parse(build_parser(command), command, argv)
            code = int(args.run(args) or OK)
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            # The reader, such as `| head`, is gone. Python would report another error when it flushes stdout at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        except OprackError as e:
            print(f"oprack {command}: {type(e).__name__}: {printable(str(e))}", file=sys.stderr)
            return exit_code(e)
        except OSError as e:  # a file that can't be read or written; the text names it
            print(f"oprack {command}: {type(e).__name__}: {printable(str(e))}", file=sys.stderr)
            return BAD_INPUT


def exit_code(error: Exception) -> int:
    """Exit code for an error of oprack."""
    from oprack import errors

    packs = (
        errors.PackError,
        errors.MissingPackError,
        errors.DuplicateOpError,
        errors.DuplicateKernelError,
        errors.DefinitionError,
        errors.KernelNotFoundError,
    )
    if isinstance(error, packs):
        return BROKEN_PACK
    return FINDING if isinstance(error, errors.UnknownOpError) else BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())

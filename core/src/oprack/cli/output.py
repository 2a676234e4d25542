"""What subcommands share: tables, JSON, the options that choose packs, models and values for their inputs."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.python.text import printable

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_block(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--block",
        action="append",
        default=[],
        metavar="NAME",
        help="leave out a pack, by its name or its distribution's; may be repeated (see also OPRACK_BLOCK)",
    )
    parser.add_argument(
        "--prefer",
        action="append",
        default=[],
        metavar="NAME",
        help="use what this pack brings where others bring the same; may be repeated (see also OPRACK_PREFER)",
    )


def manager_of(args: argparse.Namespace) -> PackManager:
    """The packs of this process, as --block and --prefer say."""
    from oprack.packs.manager import PackManager

    return PackManager(blocked=args.block, prefer=args.prefer)


def check_file(option: str, path: str | None, example: str) -> None:
    """Refuse a file to write that can't be one, before any work. Raises InvalidArgumentError.

    example: the name of a file, for the advice.
    """
    from oprack.errors import InvalidArgumentError

    if path and os.path.isdir(path):
        advice = os.path.join(path, example)
        raise InvalidArgumentError(f"{option} {path} is a directory; expected a file, such as {option} {advice}")
    parent = os.path.dirname(path or "")
    if parent and os.path.exists(parent) and not os.path.isdir(parent):
        raise InvalidArgumentError(f"{option} {path}: {parent!r} is no directory; expected a file in a directory")


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, default=str))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], indent: str = "") -> None:
    """Columns, the last one as wide as it likes; those of numbers alone are aligned to the right."""
    texts = [list(map(str, headers)), *([printable(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(headers))]
    numbers = [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(headers))]
    for row in texts:
        cells = [c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numbers, strict=True)]
        print((indent + "  ".join(cells)).rstrip())


# Waiting ------------------------------------------------------------------------------------------------------------
_PATIENCE = 0.7  # seconds without a word, after which a command says what it does


def track(items: Iterable[Any], what: str, total: int | None = None) -> Iterable[Any]:
    """The items, with a bar on the terminal that says how many are done and how long the others take.

    Args:
        items: What is gone through.
        what: A word or two before the bar.
        total: How many there are, where they have no length.
    """
    from rich.console import Console
    from rich.progress import track as bar

    console = Console(stderr=True)
    return bar(items, what, total, transient=True, console=console) if console.is_terminal else items


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Says on the terminal what is going on, where it takes longer than a moment; nothing where there is none."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner

    # What the command prints goes where it would go, a file or a pipe, and not to the console of the status
    status = Live(
        Spinner("dots", f"{what} ..."),
        console=Console(stderr=True),
        refresh_per_second=12.5,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    timer = threading.Timer(_PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


# Models ---------------------------------------------------------------------------------------------------------------
def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        help="directory with __model__ or one .pdmodel (or .json of Paddle 3, or .onnx); such a file; or its path "
        "without ending",
    )
    parser.add_argument("--params", metavar="FILE", help="combined parameter file, where it has another name")


def model_arguments(args: argparse.Namespace) -> tuple[Path, str | None, str | None]:
    """path, model_filename and params_filename for oprack.io.load_inference_model."""
    path = Path(args.model)
    params = str(Path(args.params).absolute()) if args.params else None
    if path.is_file():
        return path.absolute().parent, path.name, params
    return path, None, params

"""What commands that run a model are fed: files of arrays, and offsets of sequences."""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.errors import FeedError, FeedLoDError, FeedNameError

if TYPE_CHECKING:
    import numpy as np
    from oprack.tensor import LoDTensor


def add_feeds(parser: argparse.ArgumentParser) -> None:
    """Options that `read_feeds` takes."""
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


def read_feeds(files: Sequence[str], offsets: Sequence[str], names: Sequence[str]) -> dict[str, LoDTensor]:
    """files: `[NAME=]FILE` each. offsets: `[NAME=]0,3;0,1,4` each. names: the model's inputs.

    Raises FeedError for a file that can't be read, FeedNameError and FeedLoDError.
    """
    from oprack.tensor import LoDTensor

    arrays: dict[str, Any] = {}
    for given in files:
        name, file = _split(given, "--feed", names)
        arrays.update(_arrays(given, name, file, names))
    lods = dict(_offsets(given, names) for given in offsets)
    strange = [n for n in lods if n not in arrays]
    if strange:
        raise FeedNameError(
            f"--lod names {', '.join(map(repr, strange))}, which no --feed gives; expected "
            + (f"one of {', '.join(map(repr, arrays))}" if arrays else "--feed NAME=FILE as well")
        )
    return {n: LoDTensor(a, lods.get(n), check=False) for n, a in arrays.items()}


def with_hint(error: FeedLoDError) -> FeedLoDError:
    """The error with what to write on the command line."""
    return FeedLoDError(f"{error}\nOn the command line: --lod NAME=0,2,5 with levels separated by ';'")


def _split(given: str, option: str, names: Sequence[str]) -> tuple[str, str]:
    """Name and rest of `NAME=REST`; without a name, "". A file may have '=' in its own name."""
    name, equals, rest = given.partition("=")
    if not equals or (name not in names and option == "--feed" and Path(given).exists()):
        return "", given
    return name, rest


def _only(given: str, option: str, names: Sequence[str]) -> str:
    """The only input, for an option without a name."""
    if len(names) != 1:
        inputs = f"has inputs {', '.join(map(repr, names))}" if names else "has no inputs"
        raise FeedNameError(f"{option} {given}: the model {inputs}; expected {option} NAME=... with one of them")
    return names[0]


def _arrays(given: str, name: str, file: str, names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    import numpy as np

    try:
        with open(file, "rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                yield name or _only(given, "--feed", names), loaded
            else:
                if name and name not in loaded.files:
                    raise FeedNameError(
                        f"--feed {given}: the archive has {', '.join(map(repr, loaded.files)) or 'no arrays'}; "
                        f"expected one named {name!r}, or leave {name}= out to feed all of them"
                    )
                for key in [name] if name else loaded.files:
                    yield key, loaded[key]
    except OSError as error:
        raise FeedError(
            f"--feed {given}: {file!r}: {error.strerror or error}; expected an .npy or .npz file"
        ) from error
    except (ValueError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        if isinstance(error, FeedError):
            raise
        # what NumPy says of pickles is no advice for files from elsewhere
        reason = "" if "pickle" in str(error) else f" ({error})"
        raise FeedError(
            f"--feed {given}: {file!r} can't be read as .npy or .npz without unpickling{reason}; write it with "
            "numpy.save or numpy.savez from an array of numbers"
        ) from error


def _offsets(given: str, names: Sequence[str]) -> tuple[str, list[list[int]]]:
    name, text = _split(given, "--lod", names)
    try:
        lod = [[int(x) for x in level.split(",")] for level in text.split(";")]
    except ValueError:
        raise FeedLoDError(f"--lod {given}: expected [NAME=]0,3,7 with levels separated by ';'") from None
    return name or _only(given, "--lod", names), lod

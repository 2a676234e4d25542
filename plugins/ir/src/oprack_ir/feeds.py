"""What commands that run a model are fed: files of arrays, and offsets of sequences."""

from __future__ import annotations

import argparse
import contextlib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.errors import FeedDtypeError, FeedError, FeedLoDError, FeedNameError, OprackError

_UNPACKED, _RATIO = 1 << 30, 20
"""Bytes that arrays of a compressed archive may take, and how many times the archive."""

if TYPE_CHECKING:
    from typing import Protocol

    import numpy as np
    from oprack.desc import VarDesc
    from oprack.io.inference_model import InferenceModel
    from oprack.program import Program
    from oprack.tensor import LoDTensor

    class _WithProgram(Protocol):
        program: Program


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
    add_cast(parser)


def add_cast(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cast",
        action="store_true",
        help="convert inputs to the dtypes that the model declares, such as float64, in which NumPy saves, to float32",
    )


def read_feeds(
    files: Sequence[str], offsets: Sequence[str], model: InferenceModel, cast: bool = False
) -> dict[str, LoDTensor]:
    """The values that a command line gives to a model.

    Args:
        files: `[NAME=]FILE` each.
        offsets: `[NAME=]0,3;0,1,4` each.
        model: Its inputs, all of which have to be given.
        cast: Whether to convert to the declared dtypes.

    Raises:
        FeedError: A file can't be read, or its values can't be converted.
        FeedNameError: A name is no input, or an input is not given.
        FeedDtypeError: A dtype is not the declared one.
        FeedLoDError: Offsets can't be read.
    """
    from oprack.tensor import LoDTensor

    names = model.feed_names
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
    block = model.program.desc.blocks[0]
    declared = {name: block.find_var_recursive(name) for name in names}
    _check_given([n for n in arrays if block.find_var_recursive(n) is None], arrays, declared)
    arrays |= {n: _as_declared(n, arrays[n], var, cast) for n, var in declared.items() if var is not None}
    return {n: LoDTensor(a, lods.get(n), check=False) for n, a in arrays.items()}


@contextlib.contextmanager
def explained(model: _WithProgram, *feeds: Mapping[str, Any]) -> Iterator[None]:
    """Errors of runs in it say what was wrong with the values of a command line.

    Args:
        model: What runs, or anything with its program.
        feeds: What `read_feeds` gave.
    """
    from oprack.runtime.feed_fetch import blamed

    try:
        yield
    except FeedLoDError as error:
        raise FeedLoDError(f"{error}\nOn the command line: --lod NAME=0,2,5 with levels separated by ';'") from error
    except OprackError as error:
        block = model.program.desc.blocks[0]
        for blame in (blamed(error, block, feed) for feed in feeds):
            if blame is not error:
                raise blame from error
        raise


def _check_given(strange: Sequence[str], arrays: Mapping[str, Any], declared: Mapping[str, VarDesc | None]) -> None:
    """Raise FeedNameError unless all inputs are given, and nothing that the program does not know."""
    missing = [n for n in declared if n not in arrays]
    if not strange and not missing:
        return
    text = f"--feed gives {', '.join(map(repr, strange))}, which the model has no input for; " if strange else ""
    if not missing:
        raise FeedNameError(f"{text}its inputs are\n{_listed(declared)}")
    wanted = _listed({n: declared[n] for n in missing})
    inputs = f"input{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}"
    raise FeedNameError(f"{text}no --feed gives {inputs}; save arrays with numpy.save, and pass\n{wanted}")


def _listed(declared: Mapping[str, VarDesc | None]) -> str:
    """A line for each input: the option, dtype and dims, and whether it is a sequence."""
    lines = []
    for name, var in declared.items():
        form = "" if var is None else f"{var.dtype_name() or ''}{'' if var.shape is None else list(var.shape)}"
        lod = " and --lod with its offsets" if var is not None and var.lod_level else ""
        lines.append(f"  --feed {name}=FILE.npy{lod}: {form or 'of a kind that it does not say'}")
    return "\n".join(lines) + ("\n-1 = any size" if any(-1 in (v.shape or ()) for v in declared.values() if v) else "")


def _as_declared(name: str, array: np.ndarray, var: VarDesc, cast: bool) -> np.ndarray:
    """An array in the dtype that a program declares; LoD and dims are left to the run."""
    import numpy as np
    from oprack.tensor import numpy_dtype
    from oprack.types import DTYPE_NAMES

    if var.dtype not in DTYPE_NAMES or array.dtype == numpy_dtype(var.dtype):
        return array
    wanted = DTYPE_NAMES[var.dtype]
    if not cast:
        raise FeedDtypeError(
            f"--feed {name}: the file has {array.dtype}{list(array.shape)}; the model expects {wanted}; add --cast, "
            f"or save array.astype({wanted!r})"
        )
    if array.dtype.kind not in "biuf" and array.dtype.name not in DTYPE_NAMES.values():
        raise FeedDtypeError(
            f"--feed {name}: the file has {array.dtype}; expected numbers that --cast makes {wanted} of"
        )
    with np.errstate(all="ignore"):
        made = array.astype(numpy_dtype(var.dtype))
    if made.dtype.kind in "biu" and not np.array_equal(made, array):
        raise FeedDtypeError(
            f"--feed {name}: --cast would change values of {array.dtype} that {wanted} does not have; save whole "
            f"numbers in its range, as array.round().astype({wanted!r}) gives"
        )
    if made.dtype.kind not in "biu" and np.isfinite(array).sum() != np.isfinite(made).sum():
        raise FeedDtypeError(
            f"--feed {name}: --cast would make infinities of values of {array.dtype} that {wanted} is too small for; "
            "scale them"
        )
    return made


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
                wanted = [name] if name else loaded.files
                _check_unpacked(given, file, loaded.zip, wanted)
                for key in wanted:
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


def _check_unpacked(given: str, file: str, archive: zipfile.ZipFile, wanted: Sequence[str]) -> None:
    """Raise FeedError if arrays of a small archive would fill the memory."""
    unpacked = sum(m.file_size for m in archive.infolist() if m.filename.removesuffix(".npy") in wanted)
    packed = Path(file).stat().st_size
    if unpacked > max(_UNPACKED, _RATIO * packed):
        raise FeedError(
            f"--feed {given}: {file!r} has {packed:,} bytes and would unpack to {unpacked:,}; expected at most "
            f"{_UNPACKED:,} bytes, or {_RATIO} times the file; write it with numpy.savez, which does not compress"
        )


def _offsets(given: str, names: Sequence[str]) -> tuple[str, list[list[int]]]:
    name, text = _split(given, "--lod", names)
    try:
        lod = [[int(x) for x in level.split(",")] for level in text.split(";")]
    except ValueError:
        raise FeedLoDError(f"--lod {given}: expected [NAME=]0,3,7 with levels separated by ';'") from None
    return name or _only(given, "--lod", names), lod

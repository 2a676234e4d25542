"""Compiles the runner, all the C that is here, into one library: `python -m oprack_onednn.build_runner`.

Installing the plugin does the same where there is a C compiler (hatch_build.py), so this module imports nothing of it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PARTS = ("runner", "pool", "gomp", "compile", "exit", "layout", "spread", "winograd")
_TRAINING_PARTS = ("update", "lstm", "batch_norm", "rows")
SOURCES = [Path(__file__).with_name(f"_{part}.c") for part in (*_PARTS, *_TRAINING_PARTS)]
# no name that Python would take for a module of its own
TARGET = Path(__file__).with_name("librunner.so.1")
_OPTIONS = ("-std=c99", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")
# results are those of NumPy: no product and sum become one operation; and nobody reads errno or traps
_NUMBERS = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
_SECONDS = 60


class BuildError(Exception):
    """There is no compiler, or it failed."""


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


def build(target: Path = TARGET) -> None:
    """Compile to `target`, which appears whole or stays as it is.

    Raises:
        BuildError: There is no compiler, it failed, or the folder can't be written to.
    """
    # Imported here: every process that opens the library imports this module, for TARGET alone.
    import shlex
    import subprocess

    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    command = [*compiler(), *_OPTIONS, *_NUMBERS, f"-I{Path(__file__).parent}", *map(str, SOURCES)]
    command += ["-o", str(unfinished), "-ldl", "-lm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
        if done.returncode:
            raise BuildError(f"`{shlex.join(command)}` ended with {done.returncode}: {done.stderr.strip()[-1000:]}")
        os.replace(unfinished, target)
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(f"`{shlex.join(command)}`: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def main() -> int:
    """Command line."""
    try:
        build()
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"built {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""oneDNN's library as the wheels of its makers have it, for systems on which the plugin has no native code of its own.

On Linux the library lies beside the runner (`c/build.py`). Elsewhere it is opened where pip put it, and calls the
OpenMP of the system; Python executes its primitives one by one.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from ctypes import CDLL
from typing import NamedTuple

from oprack.python.interruption import let_interruptions_pass

from oprack_onednn.c.build import installed


class Wheel(NamedTuple):
    """What brings the library to a system.

    Attributes:
        name: The distribution, with its version.
        file: The name of its library.
        needed: Libraries that this one asks for, by names that the system may know; OpenMP's last. None where the
            library itself finds them.
        others: The distribution that has them, where the system does not.
        advice: How they come to be found.
    """

    name: str
    file: str
    needed: Sequence[str]
    others: str
    advice: str


WHEELS = {
    # of three wheels for Windows the one that asks for nothing of Intel's: Microsoft's runtime alone
    ("win32", "AMD64"): Wheel(
        "onednn-cpu-vcomp==2023.2.0",
        "dnnl.dll",
        ("msvcp140.dll", "vcomp140.dll"),
        "msvc-runtime",
        "install Microsoft's Visual C++ Redistributable, or pip install msvc-runtime",
    ),
    ("darwin", "x86_64"): Wheel(
        "onednn-cpu-iomp==2023.2.0",
        "libdnnl.3.dylib",
        (),
        "intel-openmp",
        "it looks for libiomp5.dylib of intel-openmp beside the interpreter's own libraries, as in an environment of "
        f"conda, and where DYLD_FALLBACK_LIBRARY_PATH says ({os.path.join(sys.prefix, 'lib')})",
    ),
}
"""By sys.platform and platform.machine()."""


def here() -> Wheel | None:
    """The wheel for this system, if there is one."""
    return WHEELS.get((sys.platform, platform.machine()))


def opened(wheel: Wheel) -> tuple[CDLL, CDLL]:
    """oneDNN's library, and the one that has OpenMP's functions.

    Raises:
        OSError: The wheel is not installed, or something can't be loaded; the text says how to mend it.
    """
    path = installed(wheel.name.partition("==")[0], wheel.file)
    if path is None:
        raise OSError(f"it is not installed (pip install {wheel.name})")
    try:
        # loaded by name before, they are found by the library wherever they lie
        needed = [_opened(name, wheel.others) for name in wheel.needed]
        library = CDLL(str(path))
    except OSError as error:
        raise OSError(f"{path} can't be loaded: {error}; {wheel.advice}") from error
    return library, [library, *needed][-1]


def _opened(name: str, distribution: str) -> CDLL:
    try:
        return CDLL(name)
    except OSError:
        let_interruptions_pass()
        path = installed(distribution, name)
        if path is None:
            raise
        return CDLL(str(path))

"""Compiles the C of this pack while it is built.

python hatch_build.py         compile it anew beside its source, for a pack that was installed in place
python hatch_build.py dist    make the sdist and the wheels of all platforms, by zig: pip install -r build-requirements.txt

CC is the compiler, with its options. OPRACK_WHEEL_PLATFORM is the platform that a wheel is for, when CC compiles for
another one than this machine, or "any", for a wheel without native code. Where there is no compiler the pack installs
all the same, and NumPy's kernels run.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path(__file__).parent / "src" / "{{ cookiecutter.__import_name }}"
LIBRARY = "libnative.so"  # by this name on every system: only ctypes loads it
PLATFORM = "OPRACK_WHEEL_PLATFORM"


def compile_library(folder: Path) -> Path:
    """Compile native.c into a folder; returns the library."""
    command = [*os.environ.get("CC", "cc").split(), "-O3", "-shared", "-fPIC"]
    subprocess.run([*command, PACKAGE / "native.c", "-o", folder / LIBRARY], check=True)
    return folder / LIBRARY


class NativeHook(BuildHookInterface):
    """Adds the library to a wheel; for an editable install it is put beside its source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is built. version: "editable" or "standard"."""
        platform = os.environ.get(PLATFORM)
        if platform == "any":
            return
        folder = PACKAGE if version == "editable" else Path(tempfile.mkdtemp())
        if version != "editable":
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
        try:
            library = compile_library(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            if platform:
                raise  # a release without what it is for
            self.app.display_warning(f"the pack will be slower, for its C was not compiled: {error}")
            return
        if version != "editable":
            build_data["force_include"][str(library)] = f"{PACKAGE.name}/{LIBRARY}"
            build_data["pure_python"] = False
            tag = (platform or sysconfig.get_platform()).replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{tag}"  # ctypes calls it, so it serves every version of Python


def build(folder: str) -> None:
    """Make the sdist, a wheel for each platform of pyproject.toml, by zig, and one for all others."""
    project = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text("utf-8"))
    command = [sys.executable, "-m", "hatchling", "build", "-d", folder, "-t", "wheel"]
    for platform, target in project["tool"]["oprack"]["wheels"].items():
        compiler = f"{sys.executable} -m ziglang cc -target {target}"
        subprocess.run(command, env=os.environ | {"CC": compiler, PLATFORM: platform}, check=True)
    subprocess.run([*command, "-t", "sdist"], env=os.environ | {PLATFORM: "any"}, check=True)


if __name__ == "__main__":
    build(sys.argv[1]) if len(sys.argv) > 1 else compile_library(PACKAGE)

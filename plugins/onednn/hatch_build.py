"""Compiles the plugin's runner while it is installed, and puts oneDNN's library beside it.

Without a C compiler, or without patchelf, the plugin works all the same, on OpenMP's threads and slower. Such a library
there is for Linux on x86-64 alone, so elsewhere there is nothing to build.

OPRACK_WHEEL_PLATFORM is for releases: the platform that the wheel is for, such as manylinux_2_27_x86_64, when CC
compiles for another one than this machine; or "any", for the wheel without native code that serves all other platforms.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeHook(BuildHookInterface):
    """Adds the native code to a wheel; for an editable install it is put beside its source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is built. version: "editable" or "standard"."""
        platform = os.environ.get("OPRACK_WHEEL_PLATFORM") or sysconfig.get_platform()
        if not platform.endswith("x86_64") or "linux" not in platform:
            return
        source = Path(self.root, "src", "oprack_onednn", "c", "build.py")
        builder = _module(source)
        editable = version == "editable"
        folder = source.parent if editable else Path(tempfile.mkdtemp())
        if not editable:
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
        for problem in builder.build(folder):
            self.app.display_warning(f"oprack-onednn will be slower: {problem}")
        if not editable:
            files = {path: f"c/{path.name}" for path in folder.iterdir()}
            files |= {path: f"licenses/oneDNN/{path.name}" for path in builder.licences()}
            build_data["force_include"] |= {str(path): f"oprack_onednn/{name}" for path, name in files.items()}
            # it is called by ctypes, so it serves every version of Python, on this system alone
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform.replace('-', '_').replace('.', '_')}"


def _module(source: Path) -> ModuleType:
    """A module by its file: its package is not installed yet."""
    spec = importlib.util.spec_from_file_location("build", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

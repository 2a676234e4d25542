"""Compiles the plugin's runner while it is installed; without a C compiler the plugin works all the same, slower.

OPRACK_WHEEL_PLATFORM is for releases: the platform that the wheel is for, such as manylinux_2_17_x86_64, when CC
compiles for another one than this machine; or "any", for the wheel without runner that serves all other platforms.
"""

from __future__ import annotations

import importlib.util
import os
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RunnerHook(BuildHookInterface):
    """Adds the compiled runner to a wheel; for an editable install it is put beside its source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is built. version: "editable" or "standard"."""
        platform = os.environ.get("OPRACK_WHEEL_PLATFORM") or sysconfig.get_platform()
        if platform == "any":
            return
        source = Path(self.root, "src", "oprack_onednn", "build_runner.py")
        spec = importlib.util.spec_from_file_location("build_runner", source)
        assert spec is not None
        assert spec.loader is not None
        build_runner = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(build_runner)
        editable = version == "editable"
        folder = source.parent if editable else Path(tempfile.mkdtemp())
        target = folder / build_runner.TARGET.name
        try:
            build_runner.build(target)
        except build_runner.BuildError as error:
            self.app.display_warning(f"oprack-onednn is built without its runner, and will be slower: {error}")
            return
        if not editable:
            build_data["force_include"][str(target)] = f"oprack_onednn/{target.name}"
            # it is called by ctypes, so it serves every version of Python, on this system alone
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform.replace('-', '_').replace('.', '_')}"

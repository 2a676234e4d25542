"""Virtual environments with wheels built from folders: nothing of this checkout is on their path."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from joined import PARTS, ROOT

# The package oprack, whose rooms several distributions bring, and its tables
PACKAGE = [part.parents[1] for part in PARTS]
_OURS = ("VIRTUAL_ENV", "PYTHONPATH", "OPRACK_PACKS", "OPRACK_BLOCK")


def run(*command: object, cwd: Path | None = None, **variables: str) -> str:
    """Run a command that has to succeed; returns what it prints. variables: added to the environment."""
    kept = {name: value for name, value in os.environ.items() if name not in _OURS} | variables
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build_wheel(folder: Path, target: Path) -> Path:
    """Build the wheel of a project into a folder of its own below `target`, unless another worker did so before."""
    target = target / folder.name
    target.mkdir(parents=True, exist_ok=True)
    with (target / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(target.glob("*.whl")):
            run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", target, cwd=folder)
        (wheel,) = target.glob("*.whl")
    return wheel


class FreshEnvironment:
    """A virtual environment of this interpreter, made by uv."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.python = path / "bin" / "python"
        self._uv = Path(sys.executable).with_name("uv")
        run(self._uv, "venv", "--quiet", "--python", sys.executable, path)

    def install(self, *what: object) -> None:
        """Install with the versions of constraints.txt."""
        settings = ("--quiet", "--no-config", "--python", self.python, "--constraint", ROOT / "constraints.txt")
        run(self._uv, "pip", "install", *settings, *what)

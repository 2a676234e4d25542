"""docs/op_in_five_frameworks.md counts what lies in examples/one_op, and oprack's version there works."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOME = ROOT / "examples" / "one_op"
FOLDERS = ("oprack", "pytorch", "jax", "paddle", "onnxruntime")  # the columns of the table
NOT_WRITTEN = {"ops.toml", "py.typed"}


def _row(name: str) -> list[str]:
    text = (ROOT / "docs" / "op_in_five_frameworks.md").read_text("utf-8")
    (line,) = re.findall(rf"^\| {name} \|(.*)\|$", text, re.MULTILINE)
    return [cell.strip() for cell in line.split("|")]


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_and_lines_are_those_of_the_table(folder: str) -> None:
    kept = [f for f in (HOME / folder).rglob("*") if f.is_file() and f.name not in NOT_WRITTEN and f.suffix != ".pyc"]
    lines = sum(bool(line.strip()) for f in kept for line in f.read_text("utf-8").splitlines())
    column = FOLDERS.index(folder)
    assert (str(len(kept)), str(lines)) == (_row("files")[column], _row("lines")[column])


def test_oprack_s_version_computes_the_formula_and_its_gradient() -> None:
    run = (
        "import math, sys; from types import SimpleNamespace as N\n"
        "from oprack.packs.manager import PackManager, use_manager\n"
        "import importlib_metadata, numpy as np, oprack\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "point = N(name='smooth', value='oprack_smooth.pack', dist=N(name='oprack-smooth', version='0.1.0'))\n"
        "with use_manager(PackManager([*importlib_metadata.entry_points(group='oprack.packs'), point])):\n"
        "    x = oprack.to_tensor(np.array([0.5, 3, -100.0]), requires_grad=True)\n"
        "    y = x.softclip(limit=2.0); y.sum().backward()\n"
        "    assert np.allclose(y.numpy(), [2 * math.tanh(v / 2) for v in (0.5, 3, -100)])\n"
        "    assert np.allclose(x.grad.numpy(), [1 / math.cosh(v / 2) ** 2 for v in (0.5, 3, -100)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", run, str(HOME / "oprack" / "src")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

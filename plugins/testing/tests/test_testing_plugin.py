"""What packs get from the pytest plugin: a fixture, and one failure for one mistake."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from oprack.kernel import kernel
from oprack.op import Input, OpDef, Output
from oprack.packs.manager import PackManager, default_manager
from oprack.testing import OpCase


class Negated(OpDef, type="negated"):
    """Out = -X."""

    X = Input("Any tensor.")
    Out = Output("As X.")

    def infer_shape(ctx) -> None:
        ctx.set_dim("Out", ctx.dim("X"))


@kernel("negated")
def negated(X):
    return -X


def test_pack_manager_finds_no_installed_pack_and_takes_what_is_registered(pack_manager: PackManager) -> None:
    assert default_manager() is pack_manager and pack_manager.op_types() == ["feed", "fetch"]
    pack_manager.register_op(Negated)
    pack_manager.register_kernel(negated)
    x = np.array([1.0, -2.0])
    assert OpCase("negated", {"X": x}, outputs={"Out": -x}).check() == []
    (reason,) = {r.split(": ", 1)[1] for r in OpCase("negated", {"X": x}, outputs={"Out": x}).check()}
    assert reason == "Out_0 differs by up to 4"


def test_it_is_gone_afterwards() -> None:
    assert not default_manager().has_op("negated")


ONE_MISTAKE = """
import pytest
from oprack.errors import PackImportError

@pytest.mark.parametrize("op", ["a", "b", "c"])
def test_op(op):
    try:
        raise PackImportError("ops of pack snake: importing 'snake.ops' failed: shape_of is missing")
    except PackImportError as error:
        raise RuntimeError(f"op {op} can't be had") from error

def test_something_else():
    raise RuntimeError("another mistake")
"""


def test_one_mistake_in_a_pack_is_one_failure(tmp_path: Path) -> None:
    (tmp_path / "test_snake.py").write_text(ONE_MISTAKE)
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "-p", "no:xdist", "test_snake.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "2 failed, 2 skipped" in ran.stdout and ran.returncode == 1, ran.stdout
    assert "what failed test_snake.py::test_op[a]: ops of pack snake: importing" in ran.stdout

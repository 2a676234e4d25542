"""What packs get from the pytest plugin: a fixture, and one failure for one mistake."""

from __future__ import annotations

import os
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


BROKEN = {
    "oprack_snake/__init__.py": "",
    "oprack_snake/pack.py": """
from oprack import hookimpl

@hookimpl
def oprack_ops(register):
    register.manifest(__package__)
""",
    "oprack_snake/ops.toml": """
schema_version = 2
[ops.snake]
define = "oprack_snake.ops:Snake"
version = 0
kernels.cpu = ["oprack_snake.kernels"]
""",
    "oprack_snake/ops.py": """
from oprack.op import GradOpDef, Input, OpDef, Output

class Snake(OpDef, type="snake"):
    'Out = X.'
    X = Input("Any.")
    Score = Input("Any.")
    Out = Output("As X.")
    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))

class SnakeGrad(GradOpDef, of=Snake, reads="X"):
    'The shape of Score is not known.'
""",
    "oprack_snake/kernels.py": """
from oprack.kernel import kernel

@kernel("snake")
def snake(X, Score):
    return X.copy()
""",
    "oprack_snake-0.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: oprack-snake\nVersion: 0.1\n",
    "oprack_snake-0.1.dist-info/entry_points.txt": "[oprack.packs]\nsnake = oprack_snake.pack\n",
    "test_pack.py": """
import os

import numpy as np
from oprack.testing import Conformance, OpCase

OPS = os.environ["OPS"].split()

class TestPack(Conformance):
    pack = "snake"
    cases = [OpCase(op, {"X": np.ones(n), "Score": np.ones(n)}, outputs={"Out": np.ones(n)}, name=str(n))
             for n in range(3) for op in OPS]
""",
}


def _snake(folder: Path, *arguments: str, cases: str = "snake", **changed: str) -> subprocess.CompletedProcess[str]:
    for name, text in (BROKEN | {f"oprack_snake/{n}.py": t for n, t in changed.items()}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    command = [sys.executable, "-m", *arguments]
    env = {**os.environ, "PYTHONPATH": str(folder), "OPS": cases, "OPRACK_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


PYTEST = ("pytest", "-q", "-rs", "-p", "no:cacheprovider", "-p", "no:xdist", "test_pack.py")


def test_a_definition_that_is_wrong_fails_one_test_and_is_told_by_its_line(tmp_path: Path) -> None:
    ran = _snake(tmp_path, *PYTEST)
    assert "1 failed" in ran.stdout and "5 skipped" in ran.stdout, ran.stdout
    line = 1 + BROKEN["oprack_snake/ops.py"].splitlines().index('class SnakeGrad(GradOpDef, of=Snake, reads="X"):')
    assert (
        f"importing 'oprack_snake.ops' failed at {tmp_path}/oprack_snake/ops.py:{line}: DefinitionError" in ran.stdout
    )
    found = _snake(tmp_path, "oprack", "doctor", "--imports").stdout
    assert "shape of Score@GRAD does not follow" in found and "doctor --imports" not in found


def test_an_op_that_the_manifest_lacks_fails_one_test(tmp_path: Path) -> None:
    more = BROKEN["oprack_snake/ops.py"].partition("class SnakeGrad")[0]
    more += more.partition("class ")[1] + more.partition("class ")[2].replace("Snake", "More").replace(
        '"snake"', '"snake_more"'
    )
    ran = _snake(tmp_path, *PYTEST, cases="snake snake_more", ops=more)
    assert "1 failed" in ran.stdout and "3 skipped" in ran.stdout, ran.stdout
    assert "snake: ops.toml lacks snake_more; run `oprack manifest` on the project" in ran.stdout


def test_a_name_that_a_kernel_lacks_fails_one_test(tmp_path: Path) -> None:
    ops, kernels = BROKEN["oprack_snake/ops.py"].partition("class SnakeGrad")[0], BROKEN["oprack_snake/kernels.py"]
    ran = _snake(tmp_path, *PYTEST, ops=ops, kernels=kernels.replace("X.copy()", "Y.copy()"))
    line = 1 + kernels.splitlines().index("    return X.copy()")
    assert "NameError: name 'Y' is not defined" in ran.stdout
    assert f"mend the code at {tmp_path}/oprack_snake/kernels.py:{line}, in snake" in ran.stdout
    assert "1 failed" in ran.stdout and "2 skipped" in ran.stdout, ran.stdout

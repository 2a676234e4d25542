"""Packs of others, and one made a moment ago, serve torch and jax without a line more, as `oprack check` says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed; `make bridges` runs this")
pytest.importorskip("jax", reason="jax is not installed; `make bridges` runs this")

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.filterwarnings("ignore")


def _said(folder: Path) -> list[str]:
    """What the review says of a pack's ops in other frameworks."""
    command = [sys.executable, "-m", "oprack", "check", "--only", "bridges", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.partition("bridges: ")[2] for line in done.stdout.splitlines() if "bridges: " in line]


@pytest.mark.parametrize(("pack", "ops"), [("oprack-audio", 4), ("oprack-hash-embedding", 2)])
def test_packs_of_the_examples(pack: str, ops: int) -> None:
    said = _said(ROOT / "examples" / "packs" / pack)
    assert [line.split(" pass ")[0] for line in said] == [f"{f}: ok, {ops} ops" for f in ("torch", "jax")]


def test_kernels_for_ops_of_another_pack(tmp_path: Path) -> None:
    """oprack-special brings kernels and no op: the ops of the math pack run by them in torch and jax."""
    code = (
        "import sys; from types import SimpleNamespace as N\n"
        "import importlib_metadata, jax, numpy, torch, oprack_jax, oprack_torch\n"
        "from oprack.packs.manager import PackManager, use_manager\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "point = N(name='special', value='oprack_special.pack', dist=N(name='oprack-special', version='2.0'))\n"
        "with use_manager(PackManager([*importlib_metadata.entry_points(group='oprack.packs'), point])):\n"
        "    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)\n"
        "    y = oprack_torch.ops.lgamma(x); y.sum().backward()\n"
        "    torch.testing.assert_close(y, torch.lgamma(x)); torch.testing.assert_close(x.grad, torch.digamma(x))\n"
        "    assert 'oprack_special.kernels.lgamma' in sys.modules\n"
        "    jax.config.update('jax_enable_x64', True)\n"
        "    slope = jax.jit(jax.grad(lambda x: oprack_jax.ops.lgamma(x).sum()))(x.detach().numpy())\n"
        "    numpy.testing.assert_allclose(slope, x.grad)\n"
    )
    source = ROOT / "examples" / "packs" / "oprack-special" / "src"
    done = subprocess.run([sys.executable, "-c", code, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_a_kernel_that_is_a_function_of_the_framework(name: str, tmp_path: Path) -> None:
    """The tests of oprack-by-torch and oprack-by-jax, whose kernels run where the framework is installed alone."""
    folder = ROOT / "examples" / "packs" / f"oprack-by-{name}"
    installed = tmp_path / f"oprack_by_{name}-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: oprack-by-{name}\nVersion: 2.0\n")
    (installed / "entry_points.txt").write_text(f"[oprack.packs]\nby_{name} = oprack_by_{name}.pack\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(folder / "src")])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), "tests"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "skipped" not in done.stdout, done.stdout + done.stderr


def test_a_pack_of_the_template(tmp_path: Path) -> None:
    pytest.importorskip("cookiecutter", reason="cookiecutter is not installed")
    answers = ["--no-input", "--pack-name", "curves", "--first-op", "squareplus", "--places", "cpu"]
    command = [sys.executable, "-m", "oprack", "new-pack", str(tmp_path), *answers]
    subprocess.run(command, check=True, capture_output=True)
    said = _said(tmp_path / "oprack-curves")
    assert [line.split(" pass ")[0] for line in said] == ["torch: ok, 2 ops", "jax: ok, 2 ops"]

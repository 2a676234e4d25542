"""`oprack stubs` tells type checkers what packs bring and hides nothing; wheels are typed and have their licence."""

from __future__ import annotations

import ast
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from oprack.cli.main import main
from oprack.functional.stub_package import stub_package

ROOT = Path(__file__).parents[1]
PROJECTS = [ROOT / "core", *sorted(ROOT.glob("op_packages/*/")), *sorted(ROOT.glob("plugins/*/"))]

USER = """
import oprack
from oprack.layers.helper import LayerHelper
reveal_type(oprack.to_tensor([1]))
reveal_type(oprack.nn.Linear(2, 3))
reveal_type(oprack.functional.relu)
reveal_type(oprack.layers.fc)
reveal_type(oprack.layers.relu)
reveal_type(oprack.optimizer.Adam(0.1))
reveal_type(oprack.optimizer.lr.StepDecay)
reveal_type(oprack.initializer.Xavier())
reveal_type(LayerHelper("x"))
oprack.nn.Lniear
oprack.functional.relu(x=3)
"""
FOUND = [
    '"oprack.tensor.eager_tensor.Tensor"',
    '"oprack_nn.modules.common.Linear"',
    '"def (x: oprack.tensor.eager_tensor.Tensor) -> oprack.tensor.eager_tensor.Tensor"',
    '"def (input: typing.Sequence[oprack.layers.variable.Variable] | oprack.layers.variable.Variable, size: int, ',
    '"def (x: oprack.layers.variable.Variable, act: str | typing.Mapping[str, Any] | None =, name: str | None =) -> '
    'oprack.layers.variable.Variable"',
    '"oprack_optimizer.optimizers.adam.Adam"',
    '"def (learning_rate: float, step_size: int, gamma: float =, last_epoch: int =)',
    '"oprack_random.initializers.Xavier"',
    '"oprack.layers.helper.LayerHelper"',
    'error: Module has no attribute "Lniear"; maybe "Linear"?',
    'Argument "x" to "relu" has incompatible type "int"; expected "Tensor"',
]


def test_stubs_parse_and_keep_the_cores_own_names() -> None:
    files = stub_package()
    assert files["py.typed"] == "partial\n"
    trees = {name: ast.parse(text) for name, text in files.items() if name.endswith(".pyi")}
    packages = {f"{name}/__init__.pyi" for name in ("functional", "layers", "nn")}
    assert packages | {"optimizer.pyi", "initializer.pyi"} <= set(trees)
    import oprack

    for name in ("layers", "nn", "optimizer", "initializer", "nets", "amp"):
        tree = trees.get(f"{name}.pyi") or trees[f"{name}/__init__.pyi"]
        defined = {a.asname for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names}
        defined |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(getattr(oprack, name).__dir__()) - {n for n in defined if n} == set()


def test_mypy_sees_real_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In an environment in which oprack and the packs lie as pip installs them."""
    pytest.importorskip("mypy")
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    for project in PROJECTS:
        for package in (project / "src").iterdir():
            if package.is_dir() and not package.name.endswith("-stubs"):
                (site / package.name).symlink_to(package)
    here = next(p for p in map(Path, sys.path) if (p / "numpy").is_dir())
    (site / "others.pth").write_text(f"{here}\n")
    assert main(["stubs", str(site)]) == 0
    assert Path(capsys.readouterr().out.strip()) == site / "oprack-stubs"
    (tmp_path / "user.py").write_text(USER)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "user.py", "--cache-dir", str(tmp_path / "cache"), "--config-file", "",
         "--python-executable", str(tmp_path / "env" / "bin" / "python")],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("user.py")]
    assert len(lines) == len(FOUND), done.stdout + done.stderr
    for line, words in zip(lines, FOUND, strict=True):
        assert words in line


def test_the_path_that_would_hide_oprack_is_not_taken(tmp_path: Path) -> None:
    assert main(["stubs", str(tmp_path / "typings" / "oprack")]) == 0
    assert [p.name for p in (tmp_path / "typings").iterdir()] == ["oprack-stubs"]


@pytest.mark.parametrize("project", PROJECTS, ids=lambda p: p.name)
def test_each_distribution_is_typed_and_has_its_licence(project: Path) -> None:
    """hatchling takes LICENSE* and NOTICE* of the project's folder, and all of the package."""
    for name in ("LICENSE", "NOTICE"):
        assert (project / name).read_bytes() == (ROOT / name).read_bytes()
    (package,) = (p for p in (project / "src").iterdir() if (p / "__init__.py").is_file())
    assert (package / "py.typed").read_bytes() == b""


def test_a_wheel_has_them(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    project = ROOT / "op_packages" / "metric"
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "oprack_metric/py.typed" in names
    assert {n.rpartition("/")[2] for n in names if "/licenses/" in n} == {"LICENSE", "NOTICE"}

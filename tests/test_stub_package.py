"""`oprack stubs` tells type checkers what packs bring and hides nothing; wheels are typed and have their licence."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import oprack
import pytest
from joined import join
from language_server import LanguageServer
from oprack import PackManager, use_manager
from oprack.cli.main import main
from oprack.functional.stub_package import bridge_stubs, stub_package
from oprack.functional.stubs import stubs
from oprack.op import Attr, InferShapeContext, Input, OpDef, Output

ROOT = Path(__file__).parents[1]
PROJECTS = [ROOT / "core", *sorted(ROOT.glob("op_packages/*/")), *sorted(ROOT.glob("plugins/*/"))]

USER = """
import oprack
import oprack_torch
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
reveal_type(oprack.to_tensor([1]).relu() + 1)
oprack.nn.Lniear
oprack.functional.relu(x=3)
oprack_torch.ops.leaky_relu(oprack_torch.Sequences(1, ()), alpha="steep")
"""
FOUND = [
    '"oprack.eager_tensor.tensor.Tensor"',
    '"oprack_nn.modules.common.Linear"',
    '"def (x: oprack.eager_tensor.tensor.Tensor) -> oprack.eager_tensor.tensor.Tensor"',
    '"def (input: typing.Sequence[oprack.layers.variable.Variable] | oprack.layers.variable.Variable, size: int, ',
    '"def (x: oprack.layers.variable.Variable, act: str | typing.Mapping[str, Any] | None =, name: str | None =) -> '
    'oprack.layers.variable.Variable"',
    '"oprack_optimizer.optimizers.adam.Adam"',
    '"def (learning_rate: float, step_size: int, gamma: float =, last_epoch: int =)',
    '"oprack_random.initializers.Xavier"',
    '"oprack.layers.helper.LayerHelper"',
    '"oprack.eager_tensor.tensor.Tensor"',
    'error: Module has no attribute "Lniear"; maybe "Linear"?',
    'Argument "x" to "relu" has incompatible type "int"; expected "Tensor"',
    'Argument "alpha" to "leaky_relu" has incompatible type "str"; expected "float"',
]
SEEN_BY_PYRIGHT = [
    'is "Tensor"',
    'is "Linear"',
    'is "(x: Tensor) -> Tensor"',
    'is "(input: Sequence[Variable] | Variable, size: int, ',
    'is "(x: Variable, act: str | Mapping[str, Any] | None = None, name: str | None = None) -> Variable"',
    'is "Adam"',
    'is "type[StepDecay]"',
    'is "Xavier"',
    'is "LayerHelper"',
    'is "Tensor"',
    '"Lniear" is not a known attribute of module',
    'cannot be assigned to parameter "x" of type "Tensor"',
    'cannot be assigned to parameter "alpha" of type "float"',
]
# What an editor offers behind the last character
COMPLETIONS = {
    "oprack.to_tensor([1.0]).": ("relu", "softmax", "reshape", "numpy", "backward", "grad"),
    "oprack.functional.": ("relu", "conv2d", "matmul_v2"),
    "oprack.layers.": ("fc", "relu", "data", "While"),
    "nn.": ("Linear", "Sequential", "Module", "LSTM"),
    "oprack.optimizer.": ("Adam", "SGD", "lr"),
    "(oprack.to_tensor([1.0]).relu() + 1).": ("relu", "numpy"),
}


def test_stubs_parse_and_keep_the_cores_own_names() -> None:
    files = stub_package()
    assert files["py.typed"] == "partial\n"
    trees = {name: ast.parse(text) for name, text in files.items() if name.endswith(".pyi")}
    for package in bridge_stubs().values():  # as many functions as oprack.functional has ops
        functions = [node for node in ast.parse(package["ops.pyi"]).body if isinstance(node, ast.FunctionDef)]
        assert len(functions) == len([n for n in ast.parse(stubs()).body if isinstance(n, ast.FunctionDef)])
    packages = {f"{name}/__init__.pyi" for name in ("functional", "layers", "nn")}
    assert packages | {"optimizer.pyi", "initializer.pyi"} <= set(trees)
    import oprack

    for name in ("layers", "nn", "optimizer", "initializer", "nets", "amp"):
        tree = trees.get(f"{name}.pyi") or trees[f"{name}/__init__.pyi"]
        defined = {a.asname for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names}
        defined |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(getattr(oprack, name).__dir__()) - {n for n in defined if n} == set()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which oprack, the packs and the stubs lie as pip installs them."""
    folder = tmp_path_factory.mktemp("stubs") / "env"
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (join(site) / "oprack" / "py.typed").symlink_to(ROOT / "core/src/oprack/py.typed")
    for project in PROJECTS:
        for package in (project / "src").iterdir():
            if package.is_dir() and package.name != "oprack" and not package.name.endswith("-stubs"):
                (site / package.name).symlink_to(package)
    here = next(p for p in map(Path, sys.path) if (p / "numpy").is_dir())
    (site / "others.pth").write_text(f"{here}\n")
    assert main(["stubs", str(site)]) == 0
    assert (site / "oprack-stubs" / "py.typed").is_file()
    return folder


def test_mypy_sees_real_types(environment: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(USER)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "user.py", "--cache-dir", str(tmp_path / "cache"), "--config-file", "",
         "--python-executable", str(environment / "bin" / "python")],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("user.py")]
    assert len(lines) == len(FOUND), done.stdout + done.stderr
    for line, words in zip(lines, FOUND, strict=True):
        assert words in line


def test_pyright_sees_real_types(environment: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    (tmp_path / "user.py").write_text(USER)
    python = str(environment / "bin" / "python")
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", python, "--outputjson", "user.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    found = [d["message"].splitlines()[0] for d in json.loads(done.stdout)["generalDiagnostics"]]
    assert len(found) == len(SEEN_BY_PYRIGHT), found
    for message, words in zip(found, SEEN_BY_PYRIGHT, strict=True):
        assert words in message


@pytest.mark.parametrize("code", COMPLETIONS)
def test_jedi_completes_what_is_there(code: str) -> None:
    """As IPython and notebooks do, which have the objects. Where jedi reads source alone, it knows no partial stubs."""
    jedi = pytest.importorskip("jedi")
    names: dict[str, object] = {"oprack": oprack, "nn": oprack.nn, "x": oprack.to_tensor([1.0])}
    short = "x." if "to_tensor" in code else code
    assert {c.name for c in jedi.Interpreter(short, [names]).complete()} >= set(COMPLETIONS[code])


def test_pyright_completes(environment: Path, tmp_path: Path) -> None:
    """The same by the language server that editors start."""
    pytest.importorskip("pyright")
    with LanguageServer(tmp_path, environment / "bin" / "python") as server:
        for code, names in COMPLETIONS.items():
            found = server.complete(f"import oprack\nfrom oprack import nn\n{code}")
            assert found >= set(names), code


def test_the_stubs_have_what_was_registered() -> None:
    """Whatever a pack, or this process, brings: an op as a function and a method, a module, an optimizer."""
    with use_manager(PackManager()) as manager:
        before = stub_package()

        class Twofold(OpDef, type="twofold_of_it"):
            """Twice the input."""

            X = Input("Tensor of any shape.")
            Out = Output("Shape of X.")
            often = Attr(2, "How often.")

            def infer_shape(ctx: InferShapeContext) -> None:
                ctx.set_dim("Out", ctx.dim("X"))

        manager.register_op(Twofold)
        after = stub_package()
    assert "twofold_of_it" not in "".join(before.values())
    line = "def twofold_of_it({}, *, often: int = 2) -> Tensor:"
    assert line.format("x: Tensor") in after["functional/__init__.pyi"]
    assert f"    {line.format('self')}" in after["eager_tensor/op_methods.pyi"]
    for name in dir(oprack.nn):
        assert re.search(rf"( as |def |^){name}\b", after["nn/__init__.pyi"], re.MULTILINE), name


def test_dir_of_a_tensor_has_the_ops() -> None:
    x = oprack.to_tensor([1.0])
    found = dir(x)
    assert {"relu", "softmax", "reshape", "numpy", "grad"} <= set(found) and "relu_grad" not in found
    assert all(hasattr(x, name) for name in ("relu", "sigmoid")) and found == sorted(found)


def test_help_of_a_method_is_that_of_its_op() -> None:
    x = oprack.to_tensor([1.0])
    assert inspect.getdoc(x.relu) == inspect.getdoc(oprack.functional.relu)
    assert list(inspect.signature(x.celu).parameters) == ["alpha"]
    assert list(inspect.signature(x.topk).parameters) == ["k", "axis", "largest", "sorted"]  # a pack writes it


def test_the_path_that_would_hide_oprack_is_not_taken(tmp_path: Path) -> None:
    assert main(["stubs", str(tmp_path / "typings" / "oprack")]) == 0
    assert {p.name for p in (tmp_path / "typings").iterdir()} == {"oprack-stubs", *bridge_stubs()}


@pytest.mark.parametrize("project", PROJECTS, ids=lambda p: p.name)
def test_each_distribution_is_typed_and_has_its_licence(project: Path) -> None:
    """hatchling takes LICENSE* and NOTICE* of the project's folder, and all of the package."""
    assert (project / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    # one that ships code of others says so as well
    assert {*_paragraphs(ROOT / "NOTICE")} <= {*_paragraphs(project / "NOTICE")}
    (package,) = (p for p in (project / "src").iterdir() if (p / "__init__.py").is_file())
    assert (package / "py.typed").read_bytes() == b""


def _paragraphs(file: Path) -> list[str]:
    return file.read_text("utf-8").strip().split("\n\n")


def test_a_wheel_has_them(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    project = ROOT / "op_packages" / "metric"
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "oprack_metric/py.typed" in names
    assert {n.rpartition("/")[2] for n in names if "/licenses/" in n} == {"LICENSE", "NOTICE"}

"""A pack written against the release before works as it is, and every deprecation that it meets says what to write.

The pack is a wheel in data/release_before, made by that release; fixtures/release_before/client.py uses it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data" / "release_before"
CLIENT = Path(__file__).parent / "fixtures" / "release_before" / "client.py"
WAYS = ("static", "reference", "kernels", "blocks", "eager", "training", "save", "load")
PYPROJECT = """[project]
name = "oprack-curves"
version = "0.1.0"
[project.entry-points."oprack.packs"]
curves = "oprack_curves.pack"
"""

# What a deprecation says -> the file of the pack where it is followed, the old text, the new text.
ADVICE: dict[str, tuple[tuple[str, str, str], ...]] = {
    "curves.*without a stage.*write stage= with one of 'fold'": (
        ("pack.py", 'after=["fold_constants"],\n        before=["merge_affine"],', 'stage="canonicalize",'),
    ),
    "least=.*write min_numel=": (("kernels/bend.py", "least=1000", "min_numel=1000"),),
    "prepare=.*write specialize=": (("kernels/curve.py", "prepare=_", "specialize=_"),),
    "@kernel.*layout='any'.*leave layout= out": (("kernels/curve.py", ' layout="any",', ""),),
    "KernelCall.*write oprack.kernel.KernelSpecialization": (
        ("kernels/curve.py", "KernelCall", "KernelSpecialization"),
    ),
    r"LoDTensor\(.*leave layout= out": (("kernels/peaks.py", ', layout="any")', ")"),),
    "kernel_type.*leave layout= out": (("ops/peaks.py", ', layout="any")', ")"),),
    r"OpKernelType\(.*leave layout= out": (("ops/peaks.py", "actual.layout, ", ""),),
    "OpKernelType.layout.*leave it out": (),  # the same line
    "families.grad_from_x.*leave make_grad out.*GradFromX, of=Relu": (
        ("ops/bend.py", "    make_grad = grad_from_x\n", ""),
        ("ops/bend.py", ", grad_from_x\n", "\n"),
        ("ops/bend.py", 'GradFromX, type="bend_grad"', 'GradFromX, of=Bend, type="bend_grad"'),
    ),
    "families.double_grad_from_x.*leave make_grad out.*DoubleGradFromX, of=ReluGrad": (
        ("ops/bend.py", '    make_grad = double_grad_from_x("bend_grad_grad")\n', ""),
        ("ops/bend.py", ", double_grad_from_x", ""),
        ("ops/bend.py", "DoubleGradFromX, type=", "DoubleGradFromX, of=BendGrad, type="),
    ),
    "run.run_block.*write run_block.run, index, scope., of oprack.runtime.run_block": (
        ("operators/rounds.py", "run.run_block(index, inner)", "run_block(run, index, inner)"),
        (
            "operators/rounds.py",
            "from oprack.tensor",
            "from oprack.runtime.run_block import run_block, run_operators, run_steps\nfrom oprack.tensor",
        ),
    ),
    "run.run_steps.*write run_steps.run, block, scope, keep": (
        ("operators/rounds.py", "run.run_steps(block", "run_steps(run, block"),
    ),
    "run.run_operators.*write run_operators.run, operators, scope": (
        ("operators/rounds.py", "run.run_operators(block", "run_operators(run, block"),
    ),
    "argument X is.*write x$": (("modules/curve.py", "F.curve(X=x", "F.curve(x=x"),),
    "result Indices of op peaks.*write indices$": (("modules/curve.py", ".Indices", ".indices"),),
    "interpreter.Module.*write oprack.nn.Module$": (
        ("modules/curve.py", "oprack.interpreter import Module, ", "oprack.interpreter import "),
        ("modules/curve.py", "class Curve(Module)", "class Curve(NNModule)"),
    ),
    "interpreter.Parameter.*write oprack.Parameter$": (
        ("modules/curve.py", "oprack.interpreter import Parameter, ", "oprack.interpreter import "),
        ("modules/curve.py", "from oprack import functional as F", "from oprack import Parameter, functional as F"),
    ),
    "interpreter.Tensor.*write oprack.Tensor$": (
        ("modules/curve.py", "oprack.interpreter import Tensor, ", "oprack.interpreter import "),
        ("modules/curve.py", "from oprack import Parameter", "from oprack import Tensor, Parameter"),
    ),
    "interpreter.to_tensor.*write oprack.to_tensor$": (
        ("modules/curve.py", "import no_grad, to_tensor", "import no_grad"),
        ("modules/curve.py", "from oprack import Tensor", "from oprack import to_tensor, Tensor"),
    ),
    "autodiff.ClipGradByValue.*write oprack.optimizer.ClipGradByValue$": (
        ("optimizers.py", "autodiff import ClipGradByValue, ", "autodiff import "),
        ("optimizers.py", "import Accumulator", "import ClipGradByValue, Accumulator"),
    ),
    "autodiff.L2Decay.*write oprack.optimizer.L2Decay$": (
        ("optimizers.py", "from oprack.autodiff import L2Decay\n", ""),
        ("optimizers.py", "import ClipGradByValue", "import L2Decay, ClipGradByValue"),
    ),
    "register_layout_transform.*call the function that transposes": (
        ("observers.py", 'register_layout_transform("any", "reversed", lambda array: array[::-1])\n\n\n', ""),
        ("observers.py", "from oprack.device import register_layout_transform, transform_layout\n", ""),
    ),
    "transform_layout.*call the function that transposes": (
        ("observers.py", 'transform_layout(array, "any", "reversed")', "array[::-1]"),
    ),
}
# After `oprack manifest`, which writes the layers as well.
LISTED = {
    rf"register of pack curves.*layer\('{name}'.*leave it out: ops.toml lists it": ()
    for name in ("bend", "curve", "learned_curve", "steepness", "Curve", "Highest")
}
BY_HAND = (
    '    register.layers(f"{__package__}.layers.curves", "bend", "curve", "learned_curve", "steepness")\n',
    '    register.layers(f"{__package__}.modules.curve", "Curve", "Highest", namespace="nn")\n',
)


class Pack:
    """The pack's wheel, unpacked below `folder` as pip would."""

    def __init__(self, folder: Path) -> None:
        self.site, self.package = folder / "site", folder / "site" / "oprack_curves"
        self.work = folder / "work"
        self.work.mkdir()
        (wheel,) = DATA.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.site)

    def project(self, folder: Path) -> Path:
        """The sources as their author has them."""
        (folder / "src").mkdir(parents=True)
        (folder / "src" / "oprack_curves").symlink_to(self.package, target_is_directory=True)
        (folder / "pyproject.toml").write_text(PYPROJECT)
        shutil.copy(DATA / "ops.lock.json", folder)
        return folder

    def python(self, *arguments: object, status: int = 0, **variables: str) -> str:
        kept = {n: v for n, v in os.environ.items() if not n.startswith("OPRACK_") and n != "PYTHONWARNINGS"}
        env = kept | {"PYTHONPATH": str(self.site), "OPRACK_CACHE": "0"} | variables
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(command, cwd=self.work, env=env, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == status, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def use(self, *ways: str, folder: Path | None = None, **variables: str) -> list[str]:
        """Use it in some ways; returns the deprecations."""
        return json.loads(self.python(CLIENT, folder or self.work, *ways, **variables))

    def use_all(self) -> list[str]:
        # an observer keeps programs from running by plans, so it has a process of its own
        return sorted({*self.use(*WAYS), *self.use("observers", CURVES_COUNT="1")})

    def replace(self, name: str, old: str, new: str) -> None:
        path = self.package / name
        text = path.read_text()
        assert old in text, (name, old)
        path.write_text(text.replace(old, new))


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return Pack(tmp_path_factory.mktemp("release_before"))


def _advice_for(text: str, advice: dict[str, Any]) -> str:
    (found,) = [pattern for pattern in advice if re.search(pattern, text)] or [f"nothing for {text}"]
    return found


def test_it_works_as_it_is_and_is_told_of_all_that_is_old(pack: Pack) -> None:
    texts = pack.use_all()  # which compares all results with formulas
    assert all(t.startswith("DeprecationWarning: ") and "deprecated and goes with the next release" in t for t in texts)
    assert {_advice_for(text, ADVICE) for text in texts} == set(ADVICE)


def test_following_the_advice_ends_the_warnings(tmp_path: Path) -> None:
    pack = Pack(tmp_path)
    for edits in ADVICE.values():
        for name, old, new in edits:
            pack.replace(name, old, new)
    assert pack.use_all() == []

    project = pack.project(tmp_path / "project")
    assert "9 ops" in pack.python("-m", "oprack", "manifest", project)
    assert {_advice_for(text, LISTED) for text in pack.use(*WAYS)} == set(LISTED)
    for line in BY_HAND:
        pack.replace("pack.py", line, "")
    assert pack.use(*WAYS) == []
    assert "up to date" in pack.python("-m", "oprack", "manifest", project, "--check")
    assert "0 breaking" in pack.python("-m", "oprack", "check", project, "--only", "signatures")


def test_a_model_that_the_release_before_wrote(pack: Pack, tmp_path: Path) -> None:
    for name in ("curves.pdmodel", "curves.pdiparams"):
        shutil.copy(DATA / name, tmp_path)
    assert pack.use("load", folder=tmp_path)


def test_the_command_line_knows_it(pack: Pack, tmp_path: Path) -> None:
    packs = {p["name"]: p for p in json.loads(pack.python("-m", "oprack", "packs", "--json"))}
    assert packs["curves"]["status"] == "ok" and packs["curves"]["distribution"] == "oprack-curves"
    op = json.loads(pack.python("-m", "oprack", "op", "curve", "--json"))
    assert [k["owner"] for k in op["kernels"]] == ["oprack-curves"] and "one of 'plain', 'exact'" in json.dumps(op)
    assert json.loads(pack.python("-m", "oprack", "doctor", "--imports", "--json"))["problems"] == []
    project = pack.project(tmp_path / "project")
    assert "9 ops compared with ops.lock.json: 0 breaking, 0 new" in pack.python(
        "-m", "oprack", "check", project, "--only", "signatures"
    )


def test_its_own_tests_pass(pack: Pack, tmp_path: Path) -> None:
    tests = tmp_path / "test_pack.py"
    tests.write_text(
        "from oprack.testing import Conformance\nfrom oprack_curves.cases import CASES\n\n"
        "class TestPack(Conformance):\n    pack = 'curves'\n    cases = CASES\n"
    )
    # rounds runs a block, which is no case of one op: the client runs it
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-k", "not (test_op_has_cases and rounds)")
    out = pack.python("-m", "pytest", tests, "-c", os.devnull, "--rootdir", tmp_path, *options)
    assert "30 passed" in out, out

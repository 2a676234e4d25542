"""`oprack check` reviews a pack as a careful reader would: one fault of each sort, each with the way to mend it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack.cli.main import main
from oprack.program import Program
from oprack.testing import review
from oprack.testing.fuzz.campaign import Campaign
from oprack_testing import check
from pack_site import write_metadata

FAULTY_OP = '''
from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpFacets, OpVersion, Output, empty_grad
from oprack.op.sbp import factors
import numpy

class Faulty(OpDef, type="faulty"):
    """Adds two tensors."""

    X = Input("Tensor of any shape.")
    Y = Input("")
    Out = Output("Shape of X.")
    unused = Attr(1.0, "")

    def infer_shape(ctx: InferShapeContext) -> None:
        if ctx.dim("X") != ctx.dim("Y"):
            raise ValueError("X and Y differ")
        ctx.set_dim("Out", ctx.dim("X"))

    def sbp(ctx):
        return factors({"X": "a b", "Y": "a ."}, {"Out": "a b"})

class FaultyGrad(GradOpDef, of=Faulty, reads="X Y"):
    """$$X@GRAD = Out@GRAD$$"""

class Fixed(OpDef, type="fixed"):
    """$$Out = X$$"""

    X = Input("Tensor of two dims.")
    Out = Output("As X.")
    oddName = Attr(1, "Not read.")
    versions = OpVersion("fixed").checkpoint("renamed", ("new_attr", "odName", 1))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", [2, *ctx.dim("X")[1:]])

lost = OpFacets("fixxed", type(empty_grad))
'''
FAULTY_KERNELS = """
import numpy as np
import scipy
from oprack.kernel import kernel
from oprack.types import FLOATS

@kernel("faulty", dtypes=FLOATS)
def faulty(X, Y):
    return X + Y

@kernel("faulty_grad", dtypes=FLOATS)
def faulty_grad(Out_grad):
    return Out_grad, Out_grad

@kernel("fixed", dtypes=FLOATS | {"float16"})
def fixed(X):
    return np.array(X, np.float32 if X.dtype == np.float16 else X.dtype)
"""
FAULTY_CASES = """
import numpy as np
from oprack.testing import OpCase

x = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")
CASES = [OpCase("faulty", {"X": x, "Y": x}, outputs={"Out": 2 * x})]
"""
FAULTY_PASSES = """
from oprack.ir import fusion

@fusion("odd")
def odd(p):
    root = p.op("faultyy", X="x", Y="y")
    return root, lambda m: None
"""
HOOK = """

@hookimpl
def oprack_passes(register: Register) -> None:
    \"\"\"Bring a pass.\"\"\"
    register.pass_("odd", "oprack_odd.passes:odd", stage="fuse")
    register.pass_("lost", "oprack_odd.passes:lost", stage="fuse")

from oprack.op import InferShapeFacet, OpMaker, Output

class HookedMaker(OpMaker):
    \"\"\"$$Out = 0$$\"\"\"
    Out = Output("")

class HookedShape(InferShapeFacet):
    def __call__(self, ctx):
        ctx.set_dim("Out", [1])

@hookimpl
def oprack_ops(register: Register) -> None:
    register.manifest(__package__)
    register.operator("hooked", HookedMaker, HookedShape)
"""


def bake(folder: Path) -> Path:
    assert main(["new-pack", str(folder), "--no-input", "--pack-name", "odd", "--first-op", "good_square"]) == 0
    project = folder / "oprack-odd"
    package = project / "src" / "oprack_odd"
    for part in ("ops", "kernels"):  # a pack that grew: a folder with a file for each family
        (package / part).mkdir()
        (package / f"{part}.py").rename(package / part / "good_square.py")
        (package / part / "__init__.py").touch()
    subprocess.run([sys.executable, "-m", "oprack", "manifest", str(project)], check=True)
    return project


def checked(project: Path, *arguments: str) -> tuple[int, dict]:
    """In a process of its own: the pack is imported from its source tree."""
    command = [sys.executable, "-m", "oprack", "check", str(project), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict]]:
    project = bake(tmp_path_factory.mktemp("faulty"))
    package = project / "src" / "oprack_odd"
    (package / "ops" / "faulty.py").write_text(FAULTY_OP)
    (package / "kernels" / "faulty.py").write_text(FAULTY_KERNELS)
    subprocess.run([sys.executable, "-m", "oprack", "manifest", str(project)], check=True)
    (package / "ops" / "late.py").write_text(
        (package / "ops" / "good_square.py").read_text().replace("ood_", "ood_late_")
    )
    (project / "tests" / "cases" / "faulty.py").write_text(FAULTY_CASES)
    fixed = FAULTY_CASES.replace('"Y": x}', "}").replace("2 * x", "x").replace('"faulty"', '"fixed"')
    (project / "tests" / "cases" / "fixed.py").write_text(fixed.replace("}, }", "}").replace('{"X": x, }', '{"X": x}'))
    (package / "passes.py").write_text(FAULTY_PASSES)
    (package / "pack.py").write_text((package / "pack.py").read_text() + HOOK)
    (package / "py.typed").unlink()
    (project / "LICENSE").unlink()
    pyproject = (project / "pyproject.toml").read_text().replace('"oprack>=0.1', '"oprack", "more-itertools')
    (project / "pyproject.toml").write_text(pyproject)
    code, report = checked(project)
    assert code == 1 and not report["ok"]
    assert {"op": "hooked", "breaking": False, "change": "new op"} in report["changes"]
    yield report["findings"]


@pytest.mark.parametrize(
    ("part", "text", "fix"),
    [
        ("manifest", "ops.toml is stale: it lacks good_late_square", "oprack manifest"),
        ("manifest", "oprack_odd.pack registers hooked as objects", "oprack manifest"),
        ("strings", "brings facets of op 'fixxed', which no pack in use defines (did you mean fixed", "correct the op"),
        ("strings", "op fixed: its OpVersion, of oprack-odd, has new_attr 'odName' (did you mean oddName", "correct"),
        ("docs", "op fixed: attribute oddName is not spelled as others are", "out_scale"),
        ("docs", "op hooked: no documentation of output Out", "Out = "),
        ("kernels", "op hooked has no kernel for the CPU", "@kernel"),
        ("strings", "'faultyy' (did you mean faulty", "correct the name in the pass"),
        ("strings", "'oprack_odd.passes:lost' names nothing", "correct the name"),
        ("strings", "importing the definitions imports numpy", "import it in kernels only"),
        ("docs", "op faulty: its documentation has no formula", "between dollars"),
        ("docs", "op faulty: no documentation of input Y", "Y = Input("),
        ("docs", "op faulty: no documentation of attribute unused", "unused = Attr("),
        ("shapes", "op faulty, case faulty with every dim of X alone at -1: its shape rule raises", "ctx.same_dims"),
        ("gradients", "op faulty: no case compares its gradient", "grads=['X']"),
        ("gradients", "op fixed has no gradient", "make_grad = empty_grad"),
        ("kernels", "op faulty_grad: no kernel reads input Y", "a positional parameter Y"),
        ("kernels", "op faulty_grad: no case runs it", 'OpCase("faulty_grad", {"X": ..., "Y": ..., "Out@GRAD": ...}'),
        (
            "kernels",
            "op fixed: a kernel declares float16, but case fixed converted to it fails",
            "leave it out of dtypes=",
        ),
        ("splitting", "op faulty, {'X': S(1), 'Y': B} -> {'Out': S(1)} on 2 ranks: ", "factors takes names of dims"),
        ("wheel", "the wheel has no py.typed", "py.typed"),
        ("wheel", "the wheel has no licence", "LICENSE"),
        ("wheel", "the wheel requires oprack, without the oldest version", "oprack>="),
        ("wheel", "faulty.py imports scipy, which the dependencies do not name", '"scipy"'),
    ],
)
def test_each_fault_is_found_with_its_remedy(found: list[dict], part: str, text: str, fix: str) -> None:
    matching = [f for f in found if f["part"] == part and text in f["text"]]
    assert matching, "\n".join(f"{f['part']}: {f['text']}" for f in found)
    assert fix in matching[0]["fix"]


def test_nothing_is_said_of_what_is_right(found: list[dict]) -> None:
    assert not [f for f in found if "good_square" in f["text"]]


def test_a_pack_from_the_template_is_in_order(tmp_path: Path) -> None:
    code, report = checked(bake(tmp_path))
    assert (code, report["findings"], report["ok"]) == (0, [], True)


def test_parts_are_chosen_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tuple(check.PARTS) == review.PARTS
    assert main(["check", str(tmp_path), "--only", "dosc"]) == 3
    assert "no part is 'dosc' (did you mean docs" in capsys.readouterr().err


def test_a_pack_that_cannot_be_imported_says_only_that(tmp_path: Path) -> None:
    project = bake(tmp_path)
    (project / "src" / "oprack_odd" / "ops" / "wrong.py").write_text("def f(:\n")
    code, report = checked(project, "--only", "strings,docs,wheel")
    assert code == 1 and len(report["findings"]) == 1
    assert "SyntaxError" in report["findings"][0]["text"]


def test_our_packs_are_in_order() -> None:
    """What costs little of all of them; the workflow nightly does the rest, as `make review` does."""
    packs = sorted({file.parents[2] for file in Path(__file__).parents[1].glob("*/*/src/*/ops.toml")})
    assert len(packs) > 18
    command = [sys.executable, "-m", "oprack", "check", *map(str, packs), "--only", "strings,docs,gradients", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [f["text"] for report in json.loads(done.stdout) for f in report["findings"] if not f["note"]]
    assert found == [] and done.returncode == 0


SUITE = """
from pathlib import Path
from oprack.testing import Conformance, collect_cases

class TestPack(Conformance):
    pack = "odd"
    cases = collect_cases(Path(__file__).parent / "cases")
    case_files = Path(__file__).parent / "recorded"
    without_cases = {"good_plain": "a test of this folder runs it"}
    without_gradients = {"good_plain": "its slope is 1"}
"""
WITHOUT_CASES = """

class Relu(OpDef, type="good_relu"):
    r\"\"\"$$Out = X$$\"\"\"

    X = Input("Tensor.")
    Out = Output("As X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))


class ReluGrad(GradOpDef, of=Relu, reads="Out@GRAD", like="Out@GRAD"):
    r\"\"\"$$X@GRAD = Out@GRAD$$\"\"\"
"""
PLAIN_KERNELS = """

@kernel("good_relu", dtypes=FLOATS)
def good_relu(X: Array) -> Array:
    return X + 0


@kernel("good_relu_grad", dtypes=FLOATS)
def good_relu_grad(Out_grad: Array) -> Array:
    return Out_grad + 0
"""


def grown(folder: Path) -> Path:
    """A pack with two ops more, of which no record runs either."""
    project = bake(folder)
    package = project / "src" / "oprack_odd"
    for part, text in (("ops", WITHOUT_CASES), ("kernels", PLAIN_KERNELS)):
        file = package / part / "good_square.py"
        file.write_text(file.read_text() + text + text.replace("Relu", "Plain").replace("relu", "plain"))
    return project


def test_the_cases_of_the_suite_are_those_of_the_review(tmp_path: Path) -> None:
    """Records, programs of case files, and reasons why there are none."""
    project = grown(tmp_path)
    subprocess.run([sys.executable, "-m", "oprack", "manifest", str(project)], check=True)
    code, report = checked(project, "--only", "gradients,kernels")
    said = [f["text"] for f in report["findings"]]
    assert code == 1 and len([text for text in said if "no case" in text]) == 6, said
    _record(project / "tests" / "recorded" / "good_relu.npz")
    (project / "tests" / "test_pack.py").write_text(SUITE)
    code, report = checked(project, "--only", "gradients,kernels")
    assert [f["text"] for f in report["findings"]] == ["op good_plain_grad: no case runs it"]
    assert code == 1


def _record(file: Path) -> None:
    """A case file of good_relu and its gradient, as tests/data/cases/README.md says."""
    program = Program()
    block = program.global_block()
    for name in ("x", "out"):
        block.create_var(name, dtype="float64", shape=[2])
    block.append_op("good_relu", {"X": ["x"]}, {"Out": ["out"]}, {})
    forward = program.serialize()
    for name in ("out@GRAD", "x@GRAD"):
        block.create_var(name, dtype="float64", shape=[2])
    block.append_op("good_relu_grad", {"Out@GRAD": ["out@GRAD"]}, {"X@GRAD": ["x@GRAD"]}, {})
    x, slope = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    arrays = {"feed:x": x, "out:out": x, "cot:out": slope, "grad:x": slope}
    arrays |= {"program": np.frombuffer(forward, "uint8"), "program_grad": np.frombuffer(program.serialize(), "uint8")}
    close = {"rtol": 1e-6, "atol": 1e-6}
    header = {
        "id": "good_relu.0000",
        "op_type": "good_relu",
        "feeds": {"x": {}},
        "fetch": [{"name": "out", **close}],
        "grad": {
            "cotangents": [{"var": "out@GRAD", "target": "out"}],
            "wrt": [{"var": "x@GRAD", "wrt": "x", **close}],
        },
        "arrays": {},
    }
    buffers: dict[str, list[np.ndarray]] = {}
    for name, array in arrays.items():
        held = buffers.setdefault(array.dtype.name, [])
        header["arrays"][name] = [array.dtype.name, sum(a.size for a in held), list(array.shape)]
        held.append(array.reshape(-1))
    file.parent.mkdir()
    data = {f"data_{dtype}": np.concatenate(held) for dtype, held in buffers.items()}
    np.savez(file, cases=np.frombuffer(json.dumps([header]).encode(), "uint8"), **data)


def pytest_of(project: Path) -> str:
    """What the tests of a pack say, as its author runs them in its folder; the pack is installed from its source."""
    site = project.parent / "site"
    if not site.is_dir():
        write_metadata(site, "oprack-odd", "0.1", {"odd": "oprack_odd.pack"})
    environ = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, (site, project / "src"))))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_pack.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project, env=environ)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_a_forgotten_manifest_and_a_case_to_write_are_told_by_the_tests_of_a_pack(tmp_path: Path) -> None:
    """The paths are there, and the commands work, in the folder of the pack."""
    project = grown(tmp_path)
    record = "from __future__ import annotations\nfrom oprack.testing import OpCase\nimport numpy as np\n"
    record += "CASE = OpCase('good_relu', {'X': np.ones(2)}, outputs={'Out': np.ones(2)})\n"
    (project / "tests" / "cases" / "good_relu.py").write_text(record)
    said = pytest_of(project)
    assert "1 failed" in said, "one mistake, one failure"
    assert "ops.toml lacks good_plain, good_plain_grad, good_relu, good_relu_grad; run `oprack manifest .`" in said
    subprocess.run([sys.executable, "-m", "oprack", "manifest", "."], check=True, cwd=project)
    said = pytest_of(project)
    assert "good_plain: no case runs it; add OpCase(" in said and "to tests/cases/good_plain.py, with numbers" in said
    assert "ops.toml lacks" not in said


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "nan"])
def test_fuzzing_for_no_time_is_refused(seconds: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path), "--fuzz", seconds]) == 3
    assert "expected a number of seconds above 0, such as --fuzz 30" in capsys.readouterr().err


@pytest.mark.parametrize("parts", [[], ["--only", "generated"], ["--only", "docs"]])
def test_a_pack_that_is_not_installed_is_not_fuzzed_in_silence(tmp_path: Path, parts: list[str]) -> None:
    project = bake(tmp_path)
    command = [sys.executable, "-m", "oprack", "check", str(project), *parts, "--fuzz", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "none is installed with a kernel for the CPU" in done.stderr and "pip install -e" in done.stderr


@pytest.mark.parametrize("parts", [[], ["--only", "docs"]])
def test_fuzz_says_what_it_tried_whatever_else_is_asked_for(
    parts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[Any] = []

    class Counted(Campaign):
        def run(self) -> None:
            ran.append((self.targets, self.folders))
            self.tally.examples = 7

    monkeypatch.setattr("oprack.testing.fuzz.campaign.Campaign", Counted)
    monkeypatch.chdir(tmp_path)
    amp = Path(__file__).parents[1] / "op_packages" / "amp"
    assert main(["check", str(amp), *parts, "--fuzz", "1"]) == 0
    ((targets, folders),) = ran
    assert "op update_loss_scaling" in targets and [f.name for f in folders] == ["cases"]
    assert "7 examples" in capsys.readouterr().out


def test_fuzzing_that_tried_nothing_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(Campaign, "run", lambda self: None)
    monkeypatch.chdir(tmp_path)
    assert main(["check", str(Path(__file__).parents[1] / "op_packages" / "amp"), "--fuzz", "1"]) == 3
    assert "the time was up before the first call was tried; give it more" in capsys.readouterr().err


def test_each_part_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(check, "track", lambda items, what: (shown.append(what), items)[1])
    amp = Path(__file__).parents[1] / "op_packages" / "amp"
    assert main(["check", str(amp), "--only", "shapes,gradients,kernels,splitting"]) == 0
    whats = ("shapes", "gradients", "case files", "kernels of ops of other packs", "kernels", "splitting")
    assert shown == [f"{amp}: {what}" for what in whats]

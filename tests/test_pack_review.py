"""`oprack check` reviews a pack as a careful reader would: one fault of each sort, each with the way to mend it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from oprack.cli.main import main
from oprack.testing import review
from oprack_testing import check

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

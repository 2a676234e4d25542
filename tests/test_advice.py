"""What messages advise is done here, and it helps: commands are run, expressions evaluated, corrections made."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pack_site
import pytest
from oprack.cli.main import main
from oprack.errors import PackImportError, UnknownLayerError, UnknownOpError
from oprack.io import save_inference_model
from oprack.op import GradOp, Input, OpDef, Output
from oprack.packs.manager import PackManager, use_manager


@pytest.fixture
def model(tmp_path: Path) -> Path:
    program, scope = oprack.Program(), oprack.Scope()
    block = program.global_block()
    block.create_var("x", dtype="float32", shape=[-1, 3])
    block.create_var("y", dtype="float32", shape=[-1, 3])
    block.append_op("relu", {"X": ["x"]}, {"Out": ["y"]})
    save_inference_model(tmp_path / "m", program, ["x"], ["y"], scope)
    np.save(tmp_path / "x.npy", np.ones((2, 3), "float32"))
    return tmp_path


# Names that are not there ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "namespace", ["layers", "optimizer", "initializer", "metrics", "nets", "nn", "amp", "quantization"]
)
def test_advice_for_an_unknown_name_names_what_there_is(namespace: str) -> None:
    """With all packs installed, none of them is to be installed, and what is named in its place exists."""
    with pytest.raises(UnknownLayerError) as caught:
        eval(f"oprack.{namespace}.NothingOfTheSort", {"oprack": oprack})
    text = str(caught.value)
    assert "pip install" not in text
    expressions = re.findall(r"dir\(oprack\.\w+\)|oprack\.\w+\.\w+", text)
    for expression in expressions:
        assert eval(expression, {"oprack": oprack}) is not None
    assert expressions


def test_advice_to_install_names_only_packs_that_are_not_installed() -> None:
    with use_manager(PackManager(entry_points=[], environ={})), pytest.raises(UnknownLayerError) as caught:
        oprack.nn.Linear  # noqa: B018
    assert "no installed pack brings it; `pip install oprack-nn` adds it" in str(caught.value)


# Ops that can't be imported -------------------------------------------------------------------------------------------
def test_the_command_for_a_broken_op_shows_it(tmp_path: Path) -> None:
    """The message names a command, whose output has the cause; without --imports it says what it did not look at."""
    site = pack_site.install(tmp_path / "site", "good")
    (site / "fixture_good" / "ops" / "twice.py").write_text("class Twice(:\n")
    env = pack_site.environment([site, pack_site.libraries(tmp_path / "lib")])
    code = "import oprack; oprack.op_info('fixture_twice')"
    text = pack_site.run_python("-c", code, env=env).stderr
    assert PackImportError.__name__ in text
    (command,) = re.findall(r"`oprack (doctor[^`]*)` says more", text)
    done = pack_site.run_python("-m", "oprack", *shlex.split(command), env=env)
    assert done.returncode == 1 and "SyntaxError" in done.stdout and "fixture_twice" in done.stdout
    plain = pack_site.run_python("-m", "oprack", "doctor", env=env)
    assert plain.returncode == 0 and "everything is in order" not in plain.stdout
    (command,) = re.findall(r"Run `oprack (doctor[^`]*)`", plain.stdout)
    assert pack_site.run_python("-m", "oprack", *shlex.split(command), env=env).returncode == 1


class Gated(OpDef, type="gated"):
    """Out = X."""

    X = Input("Any tensor.")
    Out = Output("As X.")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", ctx.dim("X"))

    def make_grad(fwd: Any) -> Any:
        return GradOp("gated_grd", X=fwd.input("X"), Out_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X"))


class GatedGrad(OpDef, type="gated_grad"):
    """X@GRAD = Out@GRAD."""

    X = Input("Any tensor.")
    Out_grad = Input("Gradient of Out.", name="Out@GRAD")
    X_grad = Output("As X.", name="X@GRAD")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("X@GRAD", ctx.dim("X"))


def test_a_make_grad_with_a_typo_is_named_and_the_name_it_proposes_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    from oprack.kernel import kernel
    from oprack.packs.checks import import_problems

    manager = PackManager(environ={})
    manager.register_op(Gated)
    manager.register_op(GatedGrad)
    manager.register_kernel(kernel("gated")(lambda X: X + 0))
    words = r"the make_grad of op gated \(pack this process\) gives an op that can't be had: op 'gated_grd' is unknown"
    with use_manager(manager):
        x = oprack.to_tensor(np.ones(3, "float32"), requires_grad=True)
        with pytest.raises(UnknownOpError, match=words) as caught:
            oprack.functional.gated(x).sum().backward()
        program = oprack.Program()
        with oprack.program_guard(program):
            data = oprack.layers.data("x", [3])
            data.stop_gradient = False
            loss = oprack.layers.mean(oprack.functional.gated(data))
            with pytest.raises(UnknownOpError, match=words):
                oprack.append_backward(loss, parameter_list=["x"])
        assert any(re.search(words, problem) for problem in import_problems(manager))
    proposed = re.search(r"did you mean (\w+)", str(caught.value))
    assert proposed is not None and manager.has_op(proposed[1])


# The command line -----------------------------------------------------------------------------------------------------
def said(capsys: pytest.CaptureFixture[str], *argv: object) -> str:
    """What a command prints that fails."""
    assert main([str(a) for a in argv]) != 0
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "command,option",
    [(["run", "m.pdmodel", "--feed", "x=x.npy"], "--out"),
     (["run", "m.pdmodel", "--feed", "x=x.npy"], "--trace")],
)  # fmt: skip
def test_a_directory_in_place_of_a_file(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str], option: str
) -> None:
    monkeypatch.chdir(model)
    (model / "folder").mkdir()
    text = said(capsys, *command, option, "folder")
    assert f"{option} folder is a directory; expected a file, such as" in text and "Error" not in text.split(":")[2]
    advised = text.rpartition("such as ")[2].split()
    assert main([*command, *advised]) == 0 and Path(advised[1]).is_file()
    assert "no directory" in said(capsys, *command, option, "x.npy/file")


def test_a_feed_that_is_no_array_is_not_answered_with_unpickling(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(model)
    np.save("objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    Path("text.npy").write_text("hello")
    for name in ("objects.npy", "text.npy"):
        text = said(capsys, "run", "m.pdmodel", "--feed", f"x={name}")
        assert "allow_pickle" not in text and "unsafely" not in text and "write it with numpy.save" in text
        np.save(name, np.ones((1, 3), "float32"))
        assert main(["run", "m.pdmodel", "--feed", f"x={name}"]) == 0


def test_new_pack_says_where_to_go(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cookiecutter")
    answers = ["--pack-name", "gates", "--first-op", "swiggle"]
    assert main(["new-pack", str(tmp_path / "with space"), "--no-input", *answers]) == 0
    (advised,) = re.findall(r"^  cd (.*)$", capfd.readouterr().out, re.M)
    (folder,) = shlex.split(advised)
    assert (Path(folder) / "pyproject.toml").is_file()
    (tmp_path / "file").write_text("")
    assert main(["new-pack", str(tmp_path / "file"), "--no-input", *answers]) == 3
    assert "is a file; expected a directory" in capfd.readouterr().err


def test_show_says_what_the_version_means(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(model / "m.pdmodel")]) == 0
    assert "in the format of Paddle 2.6.2" in capsys.readouterr().out


def test_the_notes_of_doctor_are_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--imports", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["problems"] == [] and facts["notes"] == [] and sys.version.startswith(facts["python"])

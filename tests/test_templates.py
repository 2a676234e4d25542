"""The template gives a pack that works: baked, built, installed beside the core, run from a saved program, tested."""

from __future__ import annotations

import ast
import compileall
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fresh_environment import PACKAGE, ROOT, FreshEnvironment, build_wheel, run
from oprack.cli.main import main

RUN_SAVED_PROGRAM = """
import sys, numpy as np, oprack
program = oprack.Program.parse(open(sys.argv[1], "rb").read())
(y,) = oprack.Executor().run(program, feed={"x": np.float32([1, -2, 3])}, fetch_list=["y"], scope=oprack.Scope())
print(y.tolist(), [p.name for p in oprack.packs()])
"""


def _files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts}


@pytest.mark.parametrize("places", ["cpu and cuda", "cpu"])
@pytest.mark.parametrize(("licence", "native"), [("Apache-2.0", "no"), ("MIT", "C"), ("BSD-3-Clause", "no")])
def test_bakes_every_choice(tmp_path: Path, places: str, licence: str, native: str) -> None:
    answers = ["--pack-name", "two_words", "--first-op", "my_op", "--places", places, "--licence", licence]
    answers += ["--native", native]
    assert main(["new-pack", str(tmp_path), "--no-input", *answers]) == 0
    folder = tmp_path / "oprack-two-words"
    package = "src/oprack_two_words"
    assert _files(folder) == {
        ".github/workflows/publish.yml", ".github/workflows/test.yml", ".gitignore", "CHANGELOG.md", "LICENSE",
        "README.md", "build-requirements.txt", "pyproject.toml", f"{package}/__init__.py", f"{package}/kernels.py",
        f"{package}/ops.toml", f"{package}/ops.py",
        f"{package}/pack.py", f"{package}/py.typed", "ops.lock.json", "tests/cases/my_op.py",
        "tests/test_my_op.py", "tests/test_pack.py",
        *(("hatch_build.py", f"{package}/native.c", f"{package}/native.py") if native == "C" else ()),
    }  # fmt: skip
    assert ("ubuntu-24.04-arm" in (folder / ".github/workflows/test.yml").read_text("utf-8")) == (native == "C")
    assert ("ziglang" in (folder / "build-requirements.txt").read_text("utf-8")) == (native == "C")
    assert {"Apache-2.0": "Apache", "MIT": "MIT License", "BSD-3-Clause": "BSD 3-Clause"}[licence] in (
        folder / "LICENSE"
    ).read_text()
    assert "{{" not in "".join((folder / f).read_text() for f in _files(folder) if not f.startswith(".github"))
    # the rendered manifest is what `oprack manifest` would write; in a process that has not imported another bake
    assert "up to date" in run(sys.executable, "-m", "oprack.cli.main", "manifest", folder, "--check")
    # and so is the snapshot of what its ops promise, which its workflow checks
    checked = run(sys.executable, "-m", "oprack.cli.main", "check", "--only", "signatures", folder)
    assert "2 ops compared with ops.lock.json: 0 breaking, 0 new" in checked
    assert "oprack check ." in (folder / ".github/workflows/test.yml").read_text()


def test_a_template_that_pip_compiled_leaves_no_compiled_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = tmp_path / "templates" / "op_pack"
    shutil.copytree(ROOT / "templates" / "op_pack", template)
    compileall.compile_dir(template, quiet=1)
    assert list(template.rglob("*.pyc"))
    monkeypatch.setattr("oprack_testing.new_pack.template_directory", lambda: template)
    assert main(["new-pack", str(tmp_path), "--no-input", "--pack-name", "two_words"]) == 0
    folder = tmp_path / "oprack-two-words"
    assert (folder / "pyproject.toml").is_file() and not list(folder.rglob("*.pyc"))


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (["--pack-name", "Bad Name"], "pack_name is 'Bad Name'; expected lower-case words joined by _"),
        (["--pack-name", "math"], "which is a pack of oprack itself"),
        (["--description", 'Ops for "fast" nets'], "description is 'Ops for \"fast\" nets'; expected one line without"),
        (["--author", "C:\\me"], "author is 'C:\\\\me'; expected one line without"),
        (["--email", "a\nb"], "email is 'a\\nb'; expected one line without"),
        (["--description", "{{ cycler.__init__.__globals__.os.getcwd() }}"], "has signs of a template; expected text"),
        (["--author", "{% for c in [1] %}x{% endfor %}"], "--author '{% for c in [1] %}x{% endfor %}' has signs of a"),
        (["--first-op", "class"], "first_op is 'class'"),
        (["--first-op", "foo_grad"], "names that end in _grad are gradient ops"),
        (["--first-op", "relu"], "first_op is 'relu', which is an op of oprack-nn; choose another name"),
    ],
)
def test_refuses_wrong_answers(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], answers: list[str], reason: str
) -> None:
    assert main(["new-pack", str(tmp_path), "--no-input", *answers]) == 3
    errors = capfd.readouterr().err
    assert reason in errors
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_every_pack_of_oprack_is_reserved() -> None:
    hook = (ROOT / "templates" / "op_pack" / "hooks" / "pre_gen_project.py").read_text()
    (block,) = re.findall(r"^RESERVED = (\{.*?\})$", hook, re.M | re.S)
    packs = {p.parent.name for room in ("op_packages", "plugins") for p in (ROOT / room).glob("*/pyproject.toml")}
    assert packs | {"core"} == ast.literal_eval(block)


def test_it_asks_for_eight_things(tmp_path: Path) -> None:
    """And takes what is typed; an input that ends early leaves nothing behind."""
    command = [sys.executable, "-m", "oprack", "new-pack", str(tmp_path)]
    answers = ["geo", "Geometry.", "Ann", "ann@example.org", "dist2", "2", "1", "3"]
    done = subprocess.run(command, input="\n".join(answers) + "\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "[8/8] Licence" in done.stdout and "/9]" not in done.stdout
    assert (tmp_path / "oprack-geo" / "src" / "oprack_geo" / "kernels.py").is_file()
    assert "Ann" in (tmp_path / "oprack-geo" / "LICENSE").read_text()
    done = subprocess.run(command, input="geo_two\n", capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "Traceback" not in done.stderr
    assert "the input ended before all questions were answered; nothing was written" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["oprack-geo"]


def test_an_existing_folder_is_left_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "oprack-my-pack").mkdir()
    (tmp_path / "oprack-my-pack" / "mine").write_text("kept")
    assert main(["new-pack", str(tmp_path), "--no-input"]) == 3
    assert "already exists" in capfd.readouterr().err
    assert _files(tmp_path / "oprack-my-pack") == {"mine"}


def test_a_baked_pack_is_built_installed_and_used(tmp_path: Path, wheels: Path) -> None:
    """Wheels of the package and of the baked pack in a fresh environment: nothing of this checkout is on its path."""
    environment = FreshEnvironment(tmp_path / "env")
    core, *rooms = (build_wheel(folder, wheels) for folder in PACKAGE)
    environment.install(f"{core}[templates,test]", *rooms)
    # what is installed bakes the pack, from the template inside a wheel
    run(environment.path / "bin" / "oprack", "new-pack", tmp_path, "--no-input", "--native", "C", cwd=tmp_path)
    folder = tmp_path / "oprack-my-pack"
    environment.install(build_wheel(folder, tmp_path / "wheels"))
    (tmp_path / "saved.pdmodel").write_bytes(_saved_program())
    python = environment.python
    printed = run(python, "-c", RUN_SAVED_PROGRAM, tmp_path / "saved.pdmodel", cwd=tmp_path)
    assert printed.startswith("[2.0, 8.0, 18.0] ['core', ") and "'my_pack'" in printed
    tested = run(python, "-m", "pytest", "-q", folder / "tests", cwd=folder)
    assert " passed" in tested and ("skipped" in tested) == (shutil.which("cc") is None), (
        "C is tested where it is built"
    )


def _saved_program() -> bytes:
    """y = 2 x², saved by a process that does not know the op."""
    from oprack import Program

    program = Program()
    block = program.global_block()
    for name in ("x", "y"):
        block.create_var(name, dtype=np.float32, shape=[-1])
    block.append_op("scaled_square", {"X": "x"}, {"Out": "y"}, {"factor": 2.0})
    return program.serialize()

"""The code in README.md works as it stands there, and prints what it says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from doc_snippets import Reader
from oprack import Executor, PackManager, Program, Scope, inference, unique_name
from oprack.cli.main import COMMANDS, pack_commands

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text("utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """README.md, run from top to bottom by a reader who has a model and a picture."""
    found = Reader("README.md", tmp_path_factory.mktemp("readme"))
    for file in (ROOT / "tests" / "data" / "small_models").glob("resnet.pd*"):
        shutil.copy(file, found.folder / f"inference{file.suffix}")
    with np.load(ROOT / "tests" / "data" / "small_models" / "resnet.npz") as model:
        found.names["image"] = next(model[name] for name in model.files if model[name].ndim == 4)
    with unique_name.guard():
        found.run(TEXT)
    return found


def test_the_snippets_run_and_print_what_is_said(reader: Reader) -> None:
    assert reader.ran == len(SNIPPETS) >= 5
    assert np.isfinite(reader.names["answer"]).all()


@pytest.mark.parametrize("model", ["model", "eager"])
def test_what_is_trained_and_saved_answers_right(reader: Reader, model: str) -> None:
    prefix = reader.folder / model
    predictor = inference.create_predictor(inference.Config(f"{prefix}.pdmodel", f"{prefix}.pdiparams"))
    (classes,) = predictor.run([np.float32([[1, 1, 1, 1], [-1, -1, -1, 0]])])
    assert classes.argmax(axis=1).tolist() == [1, 0]


def test_every_training_says_how_it_goes(reader: Reader) -> None:
    printed = re.findall(r"```python\n((?:(?!```).)*?for step in range.*?)```\n\n```text\n(.*?)```", TEXT, re.DOTALL)
    assert len(printed) == 2 and all("loss 0." in text for _, text in printed)
    assert float(reader.names["cost"]) < 0.3 and float(reader.names["loss"]) < 0.3


def test_the_operator_runs(pack_manager: PackManager) -> None:
    ops, kernels = (next(s for s in SNIPPETS if s.startswith(f"# {room}.py")) for room in ("ops", "kernels"))
    names: dict[str, object] = {"__name__": "readme"}
    exec(ops + kernels, names)
    pack_manager.register_op(names["Scale"])
    pack_manager.register_kernel(names["scale"])
    program = Program()
    block = program.global_block()
    for name in ("x", "y"):
        block.create_var(name, dtype="float32", shape=[-1])
    block.append_op("scale", {"X": "x"}, {"Out": "y"}, {"scale": 3.0, "bias": 1.0})
    (y,) = Executor().run(program, {"x": np.float32([1, -2])}, ["y"], Scope())
    assert y.tolist() == [4.0, -5.0] and y.dtype == np.float32


def test_the_commands_exist() -> None:
    shown = "\n".join(re.findall(r"^```\w*\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE))
    used = {*re.findall(r"`oprack ([a-z-]+)", TEXT), *re.findall(r"^\S*oprack ([a-z-]+)", shown, re.MULTILINE)}
    assert used >= {"packs", "op", "show", "run", "manifest", "new-pack"} and used <= {*COMMANDS, *pack_commands()}
    targets = re.findall(r"(?:`|^)make (\w+)", TEXT, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert [t for t in targets if not re.search(rf"^{t}:", makefile, re.MULTILINE)] == []


def test_the_first_command_needs_no_package_index() -> None:
    """Until an index has oprack: what comes first is one that works in a checkout."""
    first = re.search(r"```\n(.*?)```", TEXT, re.DOTALL)[1]
    assert first.startswith("make demo") and "pip install" not in first
    assert all("--find-links" in line for line in TEXT.splitlines() if line.startswith("pip install"))


def test_figures_of_the_first_screen_are_those_of_the_pages_they_come_from() -> None:
    first, speed = TEXT.partition("## Install")[0], TEXT.partition("## Speed")[2]
    row = re.search(r"^\| PP-OCRv4 detection, 736x736 \|(.*)\|$", speed, re.MULTILINE)[1]
    oprack_ms, paddle, onnxruntime, openvino = re.findall(r"[\d.]+", row)
    assert f"[{oprack_ms} ms]" in first
    others = f"{paddle} ms in Paddle 2.6.2, {onnxruntime} in ONNX Runtime, {openvino} in OpenVINO"
    assert others in first
    assert f"PP-OCRv4 detection in {oprack_ms} ms | {others}" in (ROOT / "docs" / "index.md").read_text("utf-8")
    nets, agree = re.search(
        r"^(\d+) nets .*; (\d+) agree", (ROOT / "docs" / "zoo.md").read_text("utf-8"), re.M
    ).groups()
    assert f"[{agree} of {nets} nets]" in first
    assert "7 to 18 times as long" in first and "take 7 to 18 times" in " ".join(
        (ROOT / "docs" / "platforms.md").read_text("utf-8").split()
    )


def test_the_missing_op_types_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    from oprack.cli.main import main

    main(["ops", "--missing"])
    missing, of = re.search(r"^(\d+) of (\d+) op types", capsys.readouterr().out, re.MULTILINE).groups()
    assert f"one of the {missing} of Paddle's {of} op types" in TEXT.replace("\n", " ")

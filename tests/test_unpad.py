"""Pass unpad: encoders that Paddle saved, on padded batches, without padding."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack.cli.main import main
from oprack.errors import OprackError
from oprack.inference import Config, create_predictor
from oprack.io import load_inference_model
from oprack.ir import Optimized, find_pass, optimize, select_passes
from oprack.packs.register import STAGES
from oprack.tensor import Scope
from oprack.testing.passes import op_types

ROOT = Path(__file__).parents[1]
ENCODERS = sorted(path for path in (ROOT / "tests/data/encoders").iterdir() if path.is_dir())
ZOO = sorted(path for path in (ROOT / "tests/data/zoo").iterdir() if path.is_dir())
sys.path.append(str(ROOT / "tests" / "zoo"))

import compare  # noqa: E402

ATTENTIONS = {path.name: 2 for path in ENCODERS}
MIXED = {"electra": 3, "ernie_m": 3, "uie": 3}


def rewritten(folder: Path) -> tuple[Any, Optimized]:
    """A model of data, and what it is with the pass after all that come before it."""
    scope = Scope()
    params = compare.remake(folder)
    model = load_inference_model(folder, scope, model_filename="model.pdmodel", params_filename=params.name)
    passes = select_passes(excluded_libraries=["onednn"], enabled=["unpad"])
    stages = STAGES[: STAGES.index("fuse")]
    chosen = [p for p in passes if p.stage in stages and p.name != "hoist_slices"]
    return model, optimize(model.program.desc, scope, keep=model.fetch_names, passes=chosen)


def matches(done: Optimized) -> int:
    (report,) = [r for r in done.reports if r.name == "unpad"]
    assert not report.error
    return report.matches


def answers(folder: Path, unpad: bool, batches: list[dict[str, np.ndarray]]) -> list[list[np.ndarray]]:
    """What one predictor gives for one batch after the other."""
    config = Config(str(folder / "model.pdmodel"), str(folder / "model.pdiparams"))
    if unpad:
        config.enable_pass("unpad")
    predictor, found = create_predictor(config), list[list[np.ndarray]]()
    for feeds in batches:
        for name in predictor.get_input_names():
            predictor.get_input_handle(name).copy_from_cpu(feeds[name])
        predictor.run()
        found.append([predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()])
    return found


def kept_of(name: str, feeds: dict[str, np.ndarray]) -> np.ndarray:
    return feeds["attention_mask"] != 0 if "attention_mask" in feeds else feeds["input_ids"] != (name == "mpnet")


@pytest.mark.parametrize("source", ENCODERS, ids=lambda path: path.name)
def test_an_encoder_answers_as_paddle_where_there_is_no_padding(source: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(source, tmp_path / source.name)
    compare.remake(folder)
    with np.load(folder / "io.npz") as found:
        feeds = {key.removeprefix("in/"): found[key] for key in found if key.startswith("in/")}
        wanted = [found[key] for key in sorted(found) if key.startswith("out/")]
    # shorter, of other sizes, and nothing but words: what ran before must not be seen in later runs
    batches = [feeds, {k: v[:3, :7] for k, v in feeds.items()}, {k: v[:1] for k, v in feeds.items()}, feeds]
    plain, unpadded = (answers(folder, unpad, batches) for unpad in (False, True))
    for batch, mine, other in zip(batches, plain, unpadded, strict=True):
        kept = kept_of(source.name, batch)
        for want, got in zip(mine, other, strict=True):
            places = kept if got.ndim == 3 else kept[:, 0]
            np.testing.assert_allclose(got[places], want[places], rtol=0, atol=1e-5)
            if got.ndim == 3:
                assert not got[~kept].any()
    kept = kept_of(source.name, feeds)
    for want, got in zip(wanted, unpadded[-1], strict=True):
        places = kept if got.ndim == 3 else kept[:, 0]
        np.testing.assert_allclose(got[places], want[places], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("source", ENCODERS, ids=lambda path: path.name)
def test_attention_runs_on_rows(source: Path, tmp_path: Path) -> None:
    _, done = rewritten(shutil.copytree(source, tmp_path / source.name))
    assert matches(done) == ATTENTIONS[source.name]
    types = op_types(done)
    assert types.count("sequence_attention") == ATTENTIONS[source.name]
    if source.name == "convbert":  # before each layer and behind the last
        assert types.count("conv2d") == types.count("sequence_unfold") == 2 and types.count("pad_by_index") == 3
    else:
        assert "softmax" not in types and types.count("pad_by_index") == 1


@pytest.mark.parametrize("source", ZOO, ids=lambda path: path.name)
def test_other_nets_stay_as_they_are(source: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(source, tmp_path / source.name)
    model, done = rewritten(folder)
    assert matches(done) == MIXED.get(source.name, 0)
    if source.name not in MIXED:
        scope = Scope()
        load_inference_model(folder, scope, model_filename="model.pdmodel", params_filename="model.pdiparams")
        others = [p for p in select_passes(excluded_libraries=["onednn"]) if STAGES.index(p.stage) < 2]
        others = [p for p in others if p.name != "hoist_slices"]
        without = optimize(model.program.desc, scope, keep=model.fetch_names, passes=others)
        assert str(done.program) == str(without.program)


def test_it_runs_for_those_alone_who_ask_for_it() -> None:
    assert find_pass("unpad").optional
    assert "unpad" not in {p.name for p in select_passes()}
    config = Config()
    assert "unpad" not in config.pass_builder().all_passes()
    config.enable_pass("unpad")
    names = config.pass_builder().all_passes()
    assert names.index("unpad") < names.index("hoist_slices")
    config.delete_pass("unpad")
    assert "unpad" not in config.pass_builder().all_passes()
    with pytest.raises(OprackError, match="no installed pack brings pass 'unpadd'"):
        config.enable_pass("unpadd")


def test_a_mask_of_something_else_is_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "tests/data/encoders/albert", tmp_path / "albert")
    compare.remake(folder)
    ids = np.full((2, 4), 7)
    mask = np.array([[1, 1, 1, 0], [1, 2, 0, 0]])
    with pytest.raises(OprackError, match=r"Mask holds 2; expected 0 for padding and 1 for the rest\. If pass unpad"):
        answers(folder, True, [{"input_ids": ids, "attention_mask": mask}])


def test_distances_count_places_of_the_batch(tmp_path: Path) -> None:
    """With padding between words, places of the rows are no places of the batch."""
    folder = shutil.copytree(ROOT / "tests/data/encoders/mpnet", tmp_path / "mpnet")
    compare.remake(folder)
    left, holes = np.array([[1, 1, 7, 8], [1, 5, 6, 7]]), np.array([[5, 1, 7, 8]])
    plain, unpadded = (answers(folder, unpad, [{"input_ids": left}])[0][0] for unpad in (False, True))
    np.testing.assert_allclose(unpadded[left != 1], plain[left != 1], rtol=0, atol=1e-5)
    with pytest.raises(OprackError, match="Mask has padding between places that are kept"):
        answers(folder, True, [{"input_ids": holes}])


def test_the_command_line_shows_what_it_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shutil.copytree(ROOT / "tests/data/encoders/bert", tmp_path / "bert")
    compare.remake(folder)
    model = str(folder / "model.pdmodel")
    assert main(["passes", model, "--enable", "unpad"]) == 0
    (line,) = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("unpad ")]
    assert line[:4] == ["unpad", "oprack-sequence", "canonicalize", "2"]
    assert main(["passes", model, "--enable", "unpadd"]) != 0
    assert "no installed pack brings pass 'unpadd'" in capsys.readouterr().err

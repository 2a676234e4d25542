"""Models that Paddle 3 saved: what they answer, by every way to load them, and as files of Paddle 2."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from oprack import Executor, Program, Scope, inference
from oprack.cli.main import main
from oprack.io import load_from_buffers, load_inference_model
from pir_files import DATA, MODELS


def recorded(name):
    with np.load(DATA / name / "io.npz") as found:
        inputs = {key.removeprefix("in/"): found[key] for key in found if key.startswith("in/")}
        return inputs, [found[f"out/{i}"] for i in range(len(found) - len(inputs))]


def same(got, expected):
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        one = np.asarray(one)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def answers(config, inputs):
    predictor = inference.create_predictor(config)
    for name in predictor.get_input_names():
        predictor.get_input_handle(name).copy_from_cpu(inputs[name])
    predictor.run()
    predictor.run()  # by the plan
    return [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]


def test_all_recorded_models_are_here():
    assert len(MODELS) == 10


@pytest.mark.parametrize("name", MODELS)
def test_a_predictor_answers_as_paddle(name):
    inputs, expected = recorded(name)
    same(answers(inference.Config(str(DATA / name)), inputs), expected)


@pytest.mark.parametrize("name", MODELS)
def test_the_reference_path_answers_as_paddle(name):
    inputs, expected = recorded(name)
    scope = Scope()
    model = load_inference_model(DATA / name / "inference", scope)
    assert model.feed_names == list(inputs)
    assert model.fetch_names == [f"fetch_name_{i}" for i in range(len(expected))]
    same(Executor(prepared=False).run(model.program, inputs, model.fetch_names, scope), expected)


@pytest.mark.parametrize("name", MODELS)
def test_written_as_a_model_of_paddle_2_it_answers_the_same(name, tmp_path, capsys):
    assert main(["convert", str(DATA / name), "--to", "pdmodel", str(tmp_path / "out" / name)]) == 0
    assert f"{name}.pdmodel" in capsys.readouterr().out
    inputs, expected = recorded(name)
    file = tmp_path / "out" / f"{name}.pdmodel"
    program = Program.parse(file.read_bytes())
    assert program.desc.version == 2006002
    same(answers(inference.Config(str(file.parent)), inputs), expected)


@pytest.mark.parametrize("optim", [True, False])
def test_files_and_buffers_give_the_same(optim):
    inputs, expected = recorded("conv")
    files = DATA / "conv" / "inference.json", DATA / "conv" / "inference.pdiparams"
    config = inference.Config(*map(str, files))
    config.switch_ir_optim(optim)
    same(answers(config, inputs), expected)
    config = inference.Config()
    program, params = (file.read_bytes() for file in files)
    config.set_model_buffer(program, len(program), params, len(params))
    same(answers(config, inputs), expected)
    model = load_from_buffers(program, params, scope := Scope())
    same(Executor().run(model.program, inputs, model.fetch_names, scope), expected)


def test_parameters_keep_their_names():
    scope = Scope()
    load_inference_model(DATA / "conv", scope)
    names = [name for name in scope.local_var_names() if name.startswith("conv2d")]
    assert len([name for name in names if name.endswith(".w_0")]) >= 2


def test_other_json_files_beside_a_model_are_no_models(tmp_path):
    shutil.copytree(DATA / "conv", tmp_path / "model")
    (tmp_path / "model" / "config.json").write_text("{}")
    inputs, expected = recorded("conv")
    same(answers(inference.Config(str(tmp_path / "model")), inputs), expected)


def test_the_rewritten_model_is_kept_on_disk(tmp_path):
    inputs, expected = recorded("encoder")
    for _ in range(2):
        config = inference.Config(str(DATA / "encoder"))
        config.set_optim_cache_dir(tmp_path)
        same(answers(config, inputs), expected)
    assert any(tmp_path.rglob("*"))


def test_show_and_run_take_it(tmp_path, capsys):
    inputs, expected = recorded("lstm")
    assert main(["show", str(DATA / "lstm")]) == 0
    shown = capsys.readouterr().out
    assert "fetch_name_2" in shown and "rnn" in shown
    np.savez(tmp_path / "feed.npz", **inputs)
    run = ["run", str(DATA / "lstm" / "inference.json"), "--feed", str(tmp_path / "feed.npz")]
    assert main([*run, "--out", str(tmp_path / "out.npz")]) == 0
    with np.load(tmp_path / "out.npz") as got:
        same([got[f"fetch_name_{i}"] for i in range(3)], expected)

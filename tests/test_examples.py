"""The training examples run end to end on a little of their data, and a run that was interrupted goes on bit by bit."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the examples draw with matplotlib, which `make setup` installs")
pytest.importorskip("tensorboardX", reason="the examples write events with tensorboardX, which `make setup` installs")

import _fetch
import common
import datasets
import oprack
from oprack.errors import NotFoundError

EXAMPLES = ("train_digits", "train_sentiment", "train_seq2seq", "train_tagger")
SCORES = {"train_seq2seq": "exact_match"}


def example(name: str) -> ModuleType:
    """The example as a module; skips when its data can't be had."""
    try:
        if name in ("train_tagger", "train_sentiment"):
            datasets.people_daily(1)
        elif name == "train_digits":
            datasets.digits()
        elif name == "train_pronunciation":
            datasets.pronunciations()
    except _fetch.DownloadError as error:
        pytest.skip(f"the data of {name} is not in .downloads and cannot be fetched: {error}")
    return importlib.import_module(name)


def run(module: ModuleType, out: Path, *more: str) -> None:
    assert module.main(["--quick", "--epochs", "2", "--save-every", "3", "--out", str(out), *more]) == 0


def measured(out: Path) -> dict:
    found = json.loads((out / "metrics.json").read_text())
    return {"losses": found["losses"], "scores": found["scores"]}


def scalars(out: Path) -> dict[str, dict[int, float]]:
    """What a reader of event files finds in a folder: tag -> step -> the value written last."""
    from tensorboardX.proto.event_pb2 import Event

    found: dict[str, dict[int, float]] = {}
    for path in sorted(out.glob("events.out.tfevents.*")):
        data, at = path.read_bytes(), 0
        while at < len(data):
            size = int.from_bytes(data[at : at + 8], "little")
            event = Event.FromString(data[at + 12 : at + 12 + size])
            at += 12 + size + 4
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


@pytest.fixture(scope="module", params=EXAMPLES)
def finished(request, tmp_path_factory):
    """(module, folder, last lines that it printed) of a run without interruption."""
    module, out, printed = example(request.param), tmp_path_factory.mktemp(request.param), io.StringIO()
    with contextlib.redirect_stdout(printed):
        run(module, out)
    return module, out, printed.getvalue().splitlines()[-2:]


def test_an_interrupted_run_goes_on_bit_by_bit(finished, tmp_path, monkeypatch, capsys):
    """The end of the second epoch, from the checkpoint before: same losses, scores, model and answers."""
    module, whole, answers = finished
    steps = len(measured(whole)["losses"])
    stop = steps - 2 if (steps - 2) % 3 else steps - 1  # not at a checkpoint, so that some steps are done again
    train = common.Run.train

    def interrupted(self, *arguments):
        if self.step == stop:
            raise KeyboardInterrupt
        return train(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(common.Run, "train", interrupted)
        with pytest.raises(SystemExit, match="130"):
            run(module, tmp_path)
    assert f"stopped after step {stop}; --resume" in capsys.readouterr().out
    assert not (tmp_path / "metrics.json").exists()
    run(module, tmp_path, "--resume")
    assert capsys.readouterr().out.splitlines()[-2:] == answers
    assert measured(tmp_path) == measured(whole)
    assert steps > 4 and np.isfinite(measured(whole)["losses"]).all()
    assert (tmp_path / "model.pdiparams").read_bytes() == (whole / "model.pdiparams").read_bytes()


def test_what_a_run_leaves(finished):
    """The curve is a picture, event files hold every loss and score, and the model is there."""
    module, out, _ = finished
    picture = (out / "loss.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n") and len(picture) > 10_000
    found, want = scalars(out), measured(out)
    np.testing.assert_allclose([found["loss"][i] for i in range(len(want["losses"]))], want["losses"], rtol=1e-6)
    (score,) = want["scores"]
    assert score == SCORES.get(module.__name__, "accuracy") and len(want["scores"][score]) == 2
    assert found[f"held_out/{score}"] == pytest.approx(dict(want["scores"][score]))
    rates = list(found["learning_rate_0"].values())
    assert rates[0] > rates[-1] > 0
    assert (out / "model.pdmodel").stat().st_size > 1000


def test_another_seed_gives_other_numbers(tmp_path):
    module = example("train_seq2seq")
    for seed in ("1", "2"):
        run(module, tmp_path / seed, "--epochs", "1", "--seed", seed)
    assert not set(measured(tmp_path / "1")["losses"]) & set(measured(tmp_path / "2")["losses"])


def test_nothing_to_go_on_from(tmp_path):
    with pytest.raises(NotFoundError, match="holds no checkpoint"):
        run(example("train_seq2seq"), tmp_path, "--resume")


def test_as_a_script(tmp_path):
    """A fresh process trains, another one goes on."""
    script = Path(common.__file__).with_name("train_seq2seq.py")
    command = [sys.executable, str(script), "--quick", "--out", str(tmp_path)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    for more in (["--epochs", "1"], ["--epochs", "2", "--resume"]):
        done = subprocess.run([*command, *more], capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
    assert "epoch 2: loss" in done.stdout and "epoch 1: loss" not in done.stdout


# Parts ----------------------------------------------------------------------------------------------------------------
def test_batches_by_length():
    """Every item once, of similar length, never more rows than asked for but in a batch of one item."""
    generator = np.random.default_rng(0)
    lengths = [*generator.integers(1, 30, 200).tolist(), 70]
    batches = common.by_length(list(range(201)), lengths, 60)
    assert sorted(i for b in batches for i in b) == list(range(201))
    assert all(sum(lengths[i] for i in b) <= 60 for b in batches[:-1]) and batches[-1] == [200]
    flat = [lengths[i] for b in batches for i in b]
    assert flat == sorted(flat)


def test_sequences_are_not_padded():
    made = common.sequences([np.array([3, 1]), np.array([2])])
    assert made.lod == [[0, 2, 3]] and made.array.dtype == np.int64
    assert made.array.tolist() == [[3], [1], [2]]
    assert isinstance(made, oprack.LoDTensor)


@pytest.mark.parametrize(
    "number, words",
    [
        (0, "zero"),
        (17, "seventeen"),
        (40, "forty"),
        (105, "one hundred five"),
        (2000, "two thousand"),
        (472013, "four hundred seventy two thousand thirteen"),
        (999999, "nine hundred ninety nine thousand nine hundred ninety nine"),
    ],
)
def test_spelled_numbers(number, words):
    module = importlib.import_module("train_seq2seq")
    assert module.spelled(number) == words.split()
    assert len(module.spelled(number)) < module.LONGEST


def test_held_out_numbers_are_new():
    module = importlib.import_module("train_seq2seq")
    made = module.numbers(2000, seed=0)
    assert len(set(made)) == 2000 and max(made) < 10**6
    for part in (made[:200], made[200:]):
        assert {len(str(n)) for n in part} >= {2, 3, 4, 5, 6}


def test_moved_images_keep_their_pixels():
    module = importlib.import_module("train_digits")
    images = np.zeros((40, 1, 28, 28), np.float32)
    images[:, 0, 10, 20] = np.arange(1, 41)
    moved = module.moved(images, np.random.default_rng(0))
    where = np.argwhere(moved[:, 0] > 0)
    assert moved.shape == images.shape and where[:, 0].tolist() == list(range(40))
    np.testing.assert_array_equal(moved.max(axis=(1, 2, 3)), np.arange(1, 41))
    shifts = where[:, 1:] - [10, 20]
    assert {*shifts[:, 0].tolist()} == {*shifts[:, 1].tolist()} == {-2, -1, 0, 1, 2}

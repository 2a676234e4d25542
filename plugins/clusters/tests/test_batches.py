"""A model as a function of tables gives what a loop over its rows gives: of arrays, of frames, of sequences."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
from models import drawn, looped, pictures, words
from oprack import LoDTensor, inference
from oprack.errors import InvalidArgumentError
from oprack_clusters import BatchPredictor, batches


@pytest.fixture
def pd():
    return pytest.importorskip("pandas", reason="pandas is not installed; `make clusters` runs this")


@pytest.fixture(scope="module")
def net(tmp_path_factory) -> str:
    return pictures(tmp_path_factory.mktemp("net"))


@pytest.fixture(scope="module")
def tagger(tmp_path_factory) -> str:
    return words(tmp_path_factory.mktemp("tagger"))


def test_a_batch_of_arrays(net):
    images = drawn(10)
    scores, means = looped(net, images[:, None].astype("f4"))
    predict = BatchPredictor(net, inputs={"image": "picture"}, batch_size=4)
    found = predict({"picture": images, "name": np.arange(10)})
    assert next(iter(found)) == "name" and "picture" not in found
    for column, wanted in zip(list(found)[1:], (scores, means), strict=True):
        np.testing.assert_allclose(found[column], np.concatenate(wanted), rtol=1e-5)


def test_frames_keep_their_index_and_other_columns(net, pd):
    images = drawn(7)
    scores, _ = looped(net, images[:, None].astype("f4"))
    output = inference.create_predictor(inference.Config(net)).get_output_names()[0]
    predict = BatchPredictor(net, outputs={output: "scores"}, batch_size=3)
    frame = pd.DataFrame({"image": list(images), "name": list("abcdefg")}, index=range(10, 17))
    found = predict.frame(frame)
    assert list(found.columns) == ["name", "scores"] and list(found.index) == list(range(10, 17))
    np.testing.assert_allclose(np.stack(found["scores"]), np.concatenate(scores), rtol=1e-5)
    empty = predict.frame(frame[:0])
    assert list(empty.columns) == list(found.columns) and empty["scores"].dtype == found["scores"].dtype
    nested = [
        np.array([np.array(list(c), object) for c in x] + [None], object)[:3] for x in images
    ]  # as Arrow has lists
    again = predict.frame(pd.DataFrame({"image": nested, "name": list("abcdefg")}))
    np.testing.assert_array_equal(np.stack(again["scores"]), np.stack(found["scores"]))
    parts = list(predict.frames(iter([frame[:3], frame[:0], frame[3:]])))
    assert [type(row) for row in parts[0]["scores"]] == [list] * 3
    np.testing.assert_allclose([v for part in parts for v in part["scores"]], np.concatenate(scores), rtol=1e-5)
    assert predict.spark_columns() == "`scores` array<float>"


def test_rows_that_are_sequences(tagger, pd):
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 50, n) for n in (0, 3, 1, 0, 5, 2, 0)]
    each, whole = looped(tagger, [LoDTensor(r.reshape(-1, 1).astype("i8"), [[0, len(r)]]) for r in rows])
    predict = BatchPredictor(tagger, sequences=["ids"], batch_size=3)
    found = predict.frame(pd.DataFrame({"ids": rows}))
    for column, wanted in zip(found.columns, (each, [w[0] for w in whole]), strict=True):
        for own, other in zip(found[column], wanted, strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-5)
    assert [x.split()[1] for x in predict.spark_columns().split(", ")] == ["array<array<float>>", "array<float>"]


def test_a_process_loads_a_model_once(net, monkeypatch, tmp_path):
    made = []
    real = batches.create_predictor
    monkeypatch.setattr(batches, "create_predictor", lambda config: made.append(config) or real(config))
    predict = BatchPredictor(net, inputs={"image": "p"}, cache=tmp_path, config={"switch_strict_sums": [True]})
    found = []

    def task(sent: bytes) -> None:
        found.append(pickle.loads(sent)({"p": drawn(2)}))

    threads = [threading.Thread(target=task, args=(pickle.dumps(predict),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len(made) == 1
    assert made[0].optim_cache_dir() == str(tmp_path) and made[0].strict_sums()
    assert len(pickle.dumps(predict)) < 1_000
    for file in Path(net).parent.iterdir():
        file.touch()
    predict({"p": drawn(1)})
    assert len(made) == 2  # the files are others now


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({}, {"picture": np.zeros((1, 3, 16, 16))}, "no column 'image' for the input 'image' .* has 'picture'"),
        ({"inputs": {"x": "y"}}, {}, "has no input 'x'; it has 'image'"),
        ({"outputs": {"x": "y"}}, {"image": np.zeros((1, 3, 16, 16))}, "has no output 'x'; it has"),
        ({"sequences": ["x"]}, {}, "has no input 'x'"),
        (
            {},
            {"image": [np.zeros((3, 16, 16)), np.zeros((3, 8, 8))]},
            r"have shapes \(3, 16, 16\), \(3, 8, 8\); expected",
        ),
        ({"config": {"no_method": []}}, {}, "config has 'no_method'"),
        ({"batch_size": 0}, {}, "expected positive numbers"),
    ],
)
def test_what_does_not_go_together_is_said(options, table, message, net):
    with pytest.raises(InvalidArgumentError, match=message):
        BatchPredictor(net, **options)(table)

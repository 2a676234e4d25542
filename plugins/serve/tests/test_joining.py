"""Joining and splitting: by LoD and along the batch dim, and the probe that says whether a model allows it."""

from __future__ import annotations

import re

import numpy as np
import pytest
import served
from hypothesis import given
from hypothesis import strategies as st
from oprack import layers
from oprack.tensor import LoDTensor
from oprack_serve import joining
from oprack_serve.host import load
from oprack_serve.joining import JoinRule
from oprack_serve.probe import probe
from oprack_serve.signature import Signature, Tensor, TensorSpec

lengths = st.lists(st.integers(0, 4), min_size=1, max_size=4)


def offsets(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(int).tolist()


@given(st.lists(st.tuples(lengths, st.integers(0, 3)), min_size=1, max_size=5))
def test_what_is_joined_is_split_again(requests):
    """Of two levels, with empty sequences first, last and in the middle."""
    feeds = []
    for number, (counts, extra) in enumerate(requests):
        inner = [extra] * sum(counts)
        array = np.arange(sum(inner), dtype=np.float32) + 100 * number
        feeds.append({"x": Tensor(array.reshape(-1, 1), [offsets(counts), offsets(inner)])})
    joined = joining.join(feeds)
    assert joined["x"].lod[0][-1] == len(joined["x"].lod[1]) - 1 and joined["x"].lod[1][-1] == len(joined["x"].array)
    rule = JoinRule({"a": "lod", "b": "rows:x", "c": "batch"})
    total = sum(len(counts) for counts, _ in requests)
    outputs = {"a": joined["x"], "b": Tensor(joined["x"].array * 2, []), "c": Tensor(np.arange(total), [])}
    parts = joining.split(rule, feeds, outputs)
    row = 0
    for part, feed in zip(parts, feeds, strict=True):
        np.testing.assert_array_equal(part["a"].array, feed["x"].array)
        assert part["a"].lod == feed["x"].lod
        np.testing.assert_array_equal(part["b"].array, feed["x"].array * 2)
        count = len(feed["x"].lod[0]) - 1
        assert part["c"].array.tolist() == list(range(row, row + count))
        row += count


def test_keys_tell_apart_what_cannot_be_joined():
    def feed(shape, dtype="float32", lod=()):
        return {"x": Tensor(np.zeros(shape, dtype), [list(level) for level in lod])}

    def key(*arguments, **more):
        return joining.join_key(feed(*arguments, **more))[0]

    assert key([2, 3]) == key([5, 3])
    assert key([2, 3]) != key([2, 4])
    assert key([2, 3]) != key([2, 3], "float64")
    assert key([2, 3]) != key([2, 3], lod=[[0, 2]])
    assert key([0, 3]) is None and key([]) is None
    assert joining.join_key(feed([2, 3]) | {"y": Tensor(np.zeros([3]), [])}) == (None, 1, 0.0)
    assert joining.join_key(feed([5, 3], lod=[[0, 2, 5]]))[1:] == (2, 2.5)
    assert joining.entries(feed([5, 3], lod=[[0, 2, 5]])) == 2


def test_outputs_without_the_rows_are_refused():
    feeds = [{"x": Tensor(np.zeros([2, 1]), [])}] * 2
    with pytest.raises(ValueError, match="expected 4 rows"):
        joining.split(JoinRule({"y": "batch"}), feeds, {"y": Tensor(np.zeros([1, 1]), [])})
    with pytest.raises(ValueError, match="expected 4 sequences"):
        joining.split(JoinRule({"y": "lod"}), feeds, {"y": Tensor(np.zeros([4, 1]), [[0, 4]])})


def findings(models, name, declared=(), recorded=()):
    predictor, signature, proof = load(str(models / name), 0)

    def run(feed):
        for key, tensor in feed.items():
            predictor.get_input_handle(key).share_external_data(LoDTensor(tensor.array, tensor.lod))
        predictor.run()
        handles = [(n, predictor.get_output_handle(n)) for n in predictor.get_output_names()]
        return {n: Tensor(h.copy_to_cpu(), h.lod()) for n, h in handles}

    return probe(signature, run, proof, list(declared), list(recorded))


def test_the_probe_finds_how_outputs_fall_apart(models):
    found = findings(models, "text")
    assert sorted(found.rule.outputs.values()) == ["batch", "lod"] and found.rule.joins
    assert sorted(found.outputs.values()) == [("float32", 0), ("float32", 1)]
    assert found.rule.described() == "by LoD"
    found = findings(models, "image")
    assert list(found.rule.outputs.values()) == ["batch"] and found.rule.described() == "along the batch dim"


def test_the_probe_refuses_rows_that_depend_on_each_other(models):
    assert "changes with what it is joined with" in findings(models, "centred").rule.reason
    assert "declares no batch dim" in findings(models, "slow").rule.reason


def couples_above_a_threshold():
    """Rows are divided by the largest |x| of the batch where that is above a million: no trial comes upon it."""
    x = layers.data("x", [None, 4])
    top = layers.reduce_max(layers.abs(x))
    return ["x"], [x / layers.elementwise_max(top, layers.fill_constant([1], "float32", 1e6))]


def counts_its_batch():
    """Rows and the size of the batch, where that is above 4096: no trial joins as many."""
    x = layers.data("x", [None, 4])
    count = layers.cast(layers.slice(layers.shape(x), [0], [0], [1]), "float32")
    return ["x"], [x + layers.relu(count - 4096.0)]


def couples_large_values():
    """As the first, at 8: the trial with values of unlike size comes upon it."""
    x = layers.data("x", [None, 4])
    top = layers.reduce_max(layers.abs(x))
    return ["x"], [x / layers.elementwise_max(top, layers.fill_constant([1], "float32", 8.0))]


def test_rows_that_are_not_proved_to_be_alone_are_not_joined(tmp_path):
    for build, reason in (
        (couples_above_a_threshold, r"not proved: output Out .* of op reduce_max \(pack oprack-math\) may mix entries"),
        (counts_its_batch, "not proved: .* holds the size of the batch"),
        (couples_large_values, "changes with what it is joined with"),
    ):
        served.save(tmp_path / build.__name__, build)
        rule = findings(tmp_path, build.__name__).rule
        assert not rule.joins and re.search(reason, rule.reason), rule.reason


def shapes_of_its_batch():
    """A first state in the size of the batch, a reshape by numbers of the shape, and heads beside the batch."""
    x = layers.data("x", [None, 6, 4])
    count = layers.slice(layers.shape(x), [0], [0], [1])
    state = layers.fill_constant([count, 4], "float32", 0.5)
    heads = layers.transpose(layers.reshape(x, [0, 6, 2, 2]), [0, 2, 1, 3])
    scores = layers.softmax(layers.matmul(heads, heads, transpose_y=True))
    mixed = layers.reshape(layers.transpose(layers.matmul(scores, heads), [0, 2, 1, 3]), [count, 24])
    return ["x"], [layers.concat([mixed, state], axis=1)]


def test_attention_and_states_in_the_size_of_the_batch_are_joined(tmp_path):
    served.save(tmp_path / "net", shapes_of_its_batch)
    rule = findings(tmp_path, "net").rule
    assert rule.joins and rule.described() == "along the batch dim", rule.reason


def test_declared_examples_have_to_run_and_recorded_ones_may_fail(models):
    shape = {"image": {"shape": [5, 3, 8, 8], "lod": []}}
    strange = {"image": {"shape": [5, 4, 8, 8], "lod": []}}
    assert findings(models, "image", [shape], [shape, strange]).warmed == 4
    with pytest.raises(Exception, match="feed 'image'"):
        findings(models, "image", [strange])


def test_open_dims_are_guessed():
    signature = Signature((TensorSpec("x", "float32", (-1, -1)),), (TensorSpec("y", "float32", (-1, -1)),))
    tried = []

    def run(feed):
        tried.append(feed["x"].array.shape)
        if tried[-1][1] != 16:
            raise ValueError("only 16 fits")
        return {"y": feed["x"]}

    found = probe(signature, run, lambda dims: "", [], [])
    assert found.rule.joins and (1, 64) in tried and (1, 16) in tried
    nothing = probe(signature, lambda feed: run({"x": Tensor(np.zeros([1, 3]), [])}), lambda dims: "", [], [])
    assert "only 16 fits" in nothing.why and not nothing.rule.joins


def test_a_predictor_gives_a_joined_run_the_same_numbers(models):
    """The property that joining rests on, for sequences of 0 to 9 ids."""
    random = np.random.default_rng(5)
    texts = [random.integers(0, 50, (n, 1)) for n in (3, 9, 1, 4)]
    joined = LoDTensor(np.concatenate(texts), [offsets([len(t) for t in texts])])
    path = models / "text"
    scores, tags = served.predict(path, joined)
    for i, ids in enumerate(texts):
        alone_scores, alone_tags = served.predict(path, LoDTensor(ids, [[0, len(ids)]]))
        a, b = joined.lod[0][i : i + 2]
        np.testing.assert_allclose(scores.array[a:b], alone_scores.array, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(tags.array[i : i + 1], alone_tags.array, rtol=1e-5, atol=1e-6)


# Programs that a proof has to tell apart, whatever a trial may find: by name the function of an input, and whether its
# entries are independent by the formulas of its ops.
def rows(build):
    """A model of x, [N, 4]."""
    return lambda: (["x"], [build(layers.data("x", [None, 4]))])


def words(build, levels: int = 1):
    """A model of the vectors of words, a sequence of them for each entry."""

    def model():
        ids = layers.data("ids", [None, 1], "int64", lod_level=levels)
        return ["ids"], [build(layers.embedding(ids, [50, 8]))]

    return model


def normalised(x):
    return layers.batch_norm(layers.fc(x, 6), is_test=True)


def scores(e):
    return layers.fc(e, 1)


def of_two_inputs():
    ids = layers.data("ids", [None, 1], "int64", lod_level=1)
    weights = layers.data("w", [None, 8])
    return ["ids", "w"], [layers.sequence_pool(layers.embedding(ids, [50, 8]), "sum") * weights]


INDEPENDENT = {
    "cumsum of a row": rows(lambda x: layers.cumsum(x, axis=1)),
    "statistics that were learned": rows(normalised),
    "dropout that does nothing": rows(lambda x: layers.dropout(x, 0.3, is_test=True) + 1.0),
    "pool": words(lambda e: layers.sequence_pool(e, "average")),
    "context": words(lambda e: layers.sequence_conv(e, 5, 3)),
    "gru": words(lambda e: layers.dynamic_gru(layers.fc(e, 12), 4)),
    "lstm": words(lambda e: layers.sequence_last_step(layers.dynamic_lstm(layers.fc(e, 16), 16)[0])),
    "softmax of a sequence": words(lambda e: layers.sequence_softmax(scores(e))),
    "reversed sequences": words(layers.sequence_reverse),
    "two levels": words(lambda e: layers.sequence_pool(layers.sequence_pool(e, "sum"), "sum"), 2),
    "two inputs": of_two_inputs,
}
DEPENDENT = {
    "cumsum of a column": rows(lambda x: layers.cumsum(x, axis=0)),
    "softmax of a column": rows(lambda x: layers.softmax(x, axis=0)),
    "reversed rows": rows(lambda x: layers.reverse(x, axis=[0])),
    "sorted rows": rows(lambda x: layers.argsort(x, axis=0)[0]),
    "products of rows": rows(lambda x: layers.matmul(x, x, transpose_y=True)),
    "the first row": rows(lambda x: x + layers.slice(x, [0], [0], [1])),
    "two rows as one": rows(lambda x: layers.reshape(layers.softmax(layers.reshape(x, [-1, 8])), [-1, 4])),
    "a sum that is lost in rounding": rows(lambda x: x / (layers.sqrt(layers.reduce_sum(x * x)) + 1e30)),
    "a norm that clips large values": rows(lambda x: layers.clip_by_norm(x, 1e30)),
    "a branch by all rows": rows(lambda x: layers.cond(layers.reduce_max(x) > 1e30, lambda: x * 0.0, lambda: x * 1.0)),
    "cumsum over sequences": words(lambda e: layers.cumsum(e, axis=0)),
    "mean of all words": words(lambda e: e - layers.reduce_mean(e, dim=0, keep_dim=True)),
    "softmax of all words": words(lambda e: layers.softmax(scores(e), axis=0)),
    "padded to the longest": words(lambda e: layers.sequence_pad(e, layers.fill_constant([1], "float32", 0.0))[0]),
}


@pytest.mark.parametrize("name", [*INDEPENDENT, *DEPENDENT])
def test_the_proof_alone_tells_programs_apart(tmp_path, name):
    served.save(tmp_path / "net", (INDEPENDENT | DEPENDENT)[name])
    _, _, proof = load(str(tmp_path / "net"), 0)
    assert (proof({}) == "") == (name in INDEPENDENT), proof({})


def test_what_is_drawn_at_random_is_not_joined(tmp_path):
    """The draws of an entry follow those of the entries before it. Other writers leave training's ops in a model."""
    from oprack import Program, program_guard
    from oprack.parallel.programs.independence import why_rows_may_depend

    main = Program()
    with program_guard(main, Program()):
        y = layers.dropout(layers.data("x", [None, 4]), 0.3)
    assert "dropout" in why_rows_may_depend(main, ["x"], [y.name])
    assert why_rows_may_depend(main.clone(for_test=True), ["x"], [y.name]) == ""


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_what_fills_a_batch_up_are_rows_of_its_own(counts):
    feeds = []
    for number, count in enumerate(counts):
        array = np.arange(count, dtype=np.int64)[:, None] + 100 * (number + 1)
        feeds.append({name: Tensor(array, [[0, count]]) for name in ("x", "y")})
    rows, more = sum(counts), joining.filler(feeds)
    if more is None:
        assert rows % 8 == 0
        return
    lacking = len(more["x"].array)
    assert lacking <= max(7, rows / 8) and not (rows + lacking) % 8
    assert more["x"].lod == more["y"].lod == [[0, lacking]]
    assert set(more["x"].array.ravel()) <= set(joining.join(feeds)["x"].array.ravel())


def test_batches_have_few_numbers_of_rows():
    found = set()
    for rows in range(1, 4097):
        more = joining.filler([{"x": Tensor(np.zeros((rows, 1)), [[0, rows]])}])
        found.add(rows + (0 if more is None else len(more["x"].array)))
    assert len(found) == 56


@pytest.mark.parametrize(
    "feed",
    [
        {"x": Tensor(np.zeros((3, 1)), [])},
        {"x": Tensor(np.zeros((3, 1)), [[0, 2], [0, 1, 3]])},
        {"x": Tensor(np.zeros((3, 1)), [[0, 3]]), "y": Tensor(np.zeros((3, 1)), [[0, 1, 3]])},
        {"x": Tensor(np.zeros((0, 1)), [[0, 0]])},
    ],
)
def test_other_batches_are_not_filled_up(feed):
    assert joining.filler([feed]) is None

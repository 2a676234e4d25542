"""Layers of sequence: shapes and LoD as a program is built, numbers against walks over each sequence in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import oprack
import pytest
from oprack import LoDTensor, ParamAttr, layers
from oprack.errors import InvalidArgumentError, NotFoundError

RNG = np.random.default_rng(5)
OFFSETS = [0, 2, 5, 6]
SPANS = list(itertools.pairwise(OFFSETS))


def rows(width, offsets=OFFSETS):
    return LoDTensor(RNG.standard_normal((offsets[-1], width)).astype(np.float32), [offsets])


def ids(high, offsets=OFFSETS, dtype=np.int64):
    return LoDTensor(RNG.integers(0, high, (offsets[-1], 1)).astype(dtype), [offsets])


def dense(array):
    return LoDTensor(np.asarray(array))


class Built:
    """A network that was built and run once; `[name]` is the value of a parameter."""

    def __init__(self, build, **feed):
        self.main, startup, self.scope = oprack.Program(), oprack.Program(), oprack.Scope()
        exe = oprack.Executor(seed=2)
        with oprack.program_guard(self.main, startup), oprack.unique_name.guard():
            inputs = {n: layers.data(n, [None, *t.shape[1:]], t.dtype, len(t.lod)) for n, t in feed.items()}
            made = build(**inputs)
        outputs = list(made) if isinstance(made, list | tuple) else [made]
        exe.run(startup, scope=self.scope, fetch_list=[])
        self.values = exe.run(self.main, feed=feed, fetch_list=outputs, scope=self.scope, return_numpy=False)
        self.arrays = [np.asarray(v) for v in self.values]
        for var, value in zip(outputs, self.values, strict=True):
            assert var.dtype == value.dtype and len(var.shape) == len(value.shape), var
            assert all(d in (-1, n) for d, n in zip(var.shape, value.shape, strict=True)), (var, value.shape)

    def __getitem__(self, name):
        return np.asarray(self.scope.find_var(name).get())


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru_step(x, h, w, origin=False):
    d = h.shape[-1]
    buffer = w.reshape(-1)
    gates = sigmoid(x[: 2 * d] + h @ buffer[: 2 * d * d].reshape(d, 2 * d))
    u, r = gates[:d], gates[d:]
    c = np.tanh(x[2 * d :] + (r * h) @ buffer[2 * d * d :].reshape(d, d))
    return u * h + (1 - u) * c if origin else (1 - u) * h + u * c


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("origin", [False, True])
def test_dynamic_gru(reverse, origin):
    x, h0 = rows(12), dense(RNG.standard_normal((3, 4)).astype(np.float32))

    def build(x, h0):
        return layers.dynamic_gru(x, 4, "w", "b", is_reverse=reverse, h_0=h0, origin_mode=origin)

    net = Built(build, x=x, h0=h0)
    expected = np.zeros((6, 4))
    for s, (a, b) in enumerate(SPANS):
        h = h0.array[s]
        for t in range(a, b)[:: -1 if reverse else 1]:
            h = expected[t] = gru_step(x.array[t] + net["b"][0], h, net["w"], origin)
    close(net.arrays[0], expected)
    assert net.values[0].lod == [OFFSETS]


@pytest.mark.parametrize("peepholes", [False, True])
def test_dynamic_lstm(peepholes):
    x = rows(12)
    net = Built(lambda x: layers.dynamic_lstm(x, 12, None, None, "w", "b", use_peepholes=peepholes), x=x)
    w, b = net["w"], net["b"][0]
    assert b.shape == ((21,) if peepholes else (12,))
    pi, pf, po = b[12:].reshape(3, 3) if peepholes else np.zeros((3, 3))
    hidden, cell = np.zeros((6, 3)), np.zeros((6, 3))
    for a, end in SPANS:
        h = c = np.zeros(3)
        for t in range(a, end):
            g = x.array[t] + h @ w + b[:12]
            i, f = sigmoid(g[3:6] + pi * c), sigmoid(g[6:9] + pf * c)
            c = cell[t] = f * c + i * np.tanh(g[:3])
            h = hidden[t] = sigmoid(g[9:] + po * c) * np.tanh(c)
    close(net.arrays[0], hidden)
    close(net.arrays[1], cell)


def test_dynamic_lstmp_makes_two_parameters():
    net = Built(lambda x: layers.dynamic_lstmp(x, 12, 2, param_attr="w"), x=rows(12))
    assert net["w"].shape == (2, 12) and net["w_1"].shape == (3, 2)
    assert net.values[0].shape == (6, 2) and net.values[1].shape == (6, 3)


def test_units_are_single_steps():
    x, h, c = (dense(RNG.standard_normal((2, n)).astype(np.float32)) for n in (6, 2, 2))

    def build(x, h, c):
        return [*layers.gru_unit(x, h, 6, "g", False), *layers.lstm_unit(x, h, c, 1.0, "l", "lb")]

    net = Built(build, x=x, h=h, c=c)
    close(net.arrays[0], [gru_step(a, b, net["g"]) for a, b in zip(x.array, h.array, strict=True)])
    assert [a.shape for a in net.arrays[1:3]] == [(2, 2), (2, 6)]
    g = np.concatenate([x.array, h.array], 1) @ net["l"] + net["lb"]
    i, f, o = sigmoid(g[:, :2]), sigmoid(g[:, 2:4] + 1), sigmoid(g[:, 4:6])
    cell = f * c.array + i * np.tanh(g[:, 6:])
    close(net.arrays[4], cell)
    close(net.arrays[3], o * np.tanh(cell))


def test_sequence_conv_and_row_conv():
    x = rows(3)
    net = Built(
        lambda x: [layers.sequence_conv(x, 4, param_attr="w", bias_attr=False), layers.row_conv(x, 1, "r")], x=x
    )
    conv, ahead = np.zeros((6, 4)), np.zeros((6, 3))
    for a, b in SPANS:
        part = np.pad(x.array[a:b], ((1, 1), (0, 0)))
        for t in range(b - a):
            conv[a + t] = part[t : t + 3].reshape(-1) @ net["w"]
            ahead[a + t] = (part[t + 1 : t + 3] * net["r"]).sum(0)
    close(net.arrays[0], conv)
    close(net.arrays[1], ahead)


def test_pooling():
    x = rows(3)
    kinds = {
        "sum": lambda p: p.sum(0),
        "average": lambda p: p.mean(0),
        "sqrt": lambda p: p.sum(0) / np.sqrt(len(p)),
        "max": lambda p: p.max(0),
    }

    def build(x):
        pools = [layers.sequence_pool(x, kind) for kind in kinds]
        return [*pools, layers.sequence_first_step(x), layers.sequence_last_step(x)]

    net = Built(build, x=x)
    functions = [*kinds.values(), lambda p: p[0], lambda p: p[-1]]
    for found, function in zip(net.arrays, functions, strict=True):
        close(found, [function(x.array[a:b]) for a, b in SPANS])
    assert all(v.lod == [] for v in net.values)


def test_empty_sequences_are_pooled_to_the_pad_value():
    x = rows(2, [0, 0, 3, 3])
    net = Built(lambda x: layers.sequence_pool(x, "sum", pad_value=7.0), x=x)
    close(net.arrays[0], [[7, 7], x.array.sum(0), [7, 7]])


def test_rearranging():
    x, one = rows(2), dense(RNG.standard_normal((3, 2)).astype(np.float32))

    def build(x, one):
        padded, length = layers.sequence_pad(x, layers.fill_constant([1], "float32", 9.0), maxlen=4)
        return [
            layers.sequence_expand_as(one, x),
            layers.sequence_expand(one, x),
            padded,
            length,
            layers.sequence_unpad(padded, length),
            layers.sequence_mask(length, 4, "float32"),
            layers.sequence_reverse(x),
            layers.sequence_concat([x, x]),
            layers.sequence_reshape(x, 1),
            layers.lod_reset(x, target_lod=[0, 4, 6]),
            layers.lod_append(x, [0, 1, 2, 3, 4, 5, 6]),
        ]

    net = Built(build, x=x, one=one)
    found = net.arrays
    repeated = one.array.repeat([2, 3, 1], 0)
    parts = [x.array[a:b] for a, b in SPANS]
    close(found[0], repeated)
    close(found[1], repeated)
    close(found[2], np.stack([np.pad(p, ((0, 4 - len(p)), (0, 0)), constant_values=9) for p in parts]))
    assert found[3].tolist() == [2, 3, 1]
    close(found[4], x.array)
    close(found[5], [[1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 0, 0]])
    close(found[6], np.concatenate([p[::-1] for p in parts]))
    close(found[7], np.concatenate([q for p in parts for q in (p, p)]))
    lods = [net.values[k].lod for k in (0, 4, 6, 7, 8, 9, 10)]
    doubled = [[0, 4, 10, 12]]
    assert lods == [[OFFSETS]] * 3 + [doubled, doubled, [[0, 4, 6]], [OFFSETS, list(range(7))]]


def test_softmax_enumerate_slice_and_scatter():
    x, words = rows(1), ids(9)
    offset, length = dense(np.array([[1], [0], [0]])), dense(np.array([[1], [2], [1]]))

    def build(x, words, offset, length):
        return [
            layers.sequence_softmax(x),
            layers.sequence_enumerate(words, 2, pad_value=0),
            layers.sequence_slice(x, offset, length),
        ]

    net = Built(build, x=x, words=words, offset=offset, length=length)
    parts = [np.exp(x.array[a:b]) for a, b in SPANS]
    close(net.arrays[0], np.concatenate([p / p.sum() for p in parts]))
    w = words.array[:, 0]
    assert net.arrays[1].tolist() == [[w[t], w[t + 1] if t + 1 not in OFFSETS else 0] for t in range(6)]
    close(net.arrays[2], x.array[[1, 2, 3, 5]])


# Labels ---------------------------------------------------------------------------------------------------------------
def test_crf_agrees_with_all_paths():
    x, label = rows(3), ids(3)

    def build(x, label):
        cost = layers.linear_chain_crf(x, label, ParamAttr(name="crf"))
        return [cost, layers.crf_decoding(x, "crf"), layers.crf_decoding(x, ParamAttr(name="crf"), label=label)]

    net = Built(build, x=x, label=label)
    start, stop, follow = net["crf"][0], net["crf"][1], net["crf"][2:]

    def score(path, part):
        moves = sum(follow[p, q] for p, q in itertools.pairwise(path))
        return start[path[0]] + stop[path[-1]] + part[range(len(path)), path].sum() + moves

    best = []
    for s, (a, b) in enumerate(SPANS):
        part, given = x.array[a:b], list(label.array[a:b, 0])
        paths = [list(p) for p in itertools.product(range(3), repeat=b - a)]
        scores = [score(p, part) for p in paths]
        close(net.arrays[0][s, 0], np.log(np.exp(scores).sum()) - score(given, part))
        best += paths[int(np.argmax(scores))]
    assert net.arrays[1][:, 0].tolist() == best
    assert net.arrays[2][:, 0].tolist() == [int(p == q) for p, q in zip(best, label.array[:, 0], strict=True)]


def test_crf_decoding_needs_the_parameter():
    with oprack.program_guard(oprack.Program(), oprack.Program()):
        x = layers.data("x", [None, 3], lod_level=1)
        with pytest.raises(NotFoundError, match="crf"):
            layers.crf_decoding(x, "crf")
        with pytest.raises(InvalidArgumentError, match="param_attr has no name"):
            layers.crf_decoding(x, ParamAttr())


def test_ctc():
    p = np.zeros((6, 3), np.float32)
    p[np.arange(6), [0, 0, 2, 1, 1, 0]] = 1
    label = LoDTensor(np.array([[0], [1], [0], [0]], np.int32), [[0, 1, 3, 4]])

    def build(x, label):
        return [layers.ctc_greedy_decoder(x, blank=2), layers.warpctc(x, label, blank=2)]

    net = Built(build, x=LoDTensor(p, [OFFSETS]), label=label)
    assert net.arrays[0][:, 0].tolist() == [0, 1, 0] and net.values[0].lod == [[0, 1, 2, 3]]
    soft = np.exp(p) / np.exp(p).sum(1, keepdims=True)
    # label 0 in two steps: 00, 02, 20; in one step: 0
    two = soft[0, 0] * soft[1, 0] + soft[0, 0] * soft[1, 2] + soft[0, 2] * soft[1, 0]
    close(net.arrays[1][[0, 2], 0], [-np.log(two), -np.log(soft[5, 0])])


def test_ctc_of_padded_input():
    p = np.zeros((2, 3, 3), np.float32)
    for b, path in enumerate([[0, 0, 2], [1, 2, 1]]):
        p[b, range(3), path] = 1
    length = dense(np.array([[2], [3]]))
    net = Built(lambda x, n: layers.ctc_greedy_decoder(x, 2, input_length=n, padding_value=-1), x=dense(p), n=length)
    assert net.arrays[0].tolist() == [[0, -1, -1], [1, 1, -1]] and net.arrays[1].tolist() == [[1], [2]]


def test_edit_distance():
    hyps = LoDTensor(np.array([[1], [2], [3], [9], [4]]), [[0, 4, 5]])
    refs = LoDTensor(np.array([[1], [3], [4], [4]]), [[0, 2, 4]])

    def build(h, r):
        return [
            *layers.edit_distance(h, r, normalized=False),
            layers.edit_distance(h, r)[0],
            layers.edit_distance(h, r, normalized=False, ignored_tokens=[9])[0],
        ]

    net = Built(build, h=hyps, r=refs)
    assert [a.ravel().tolist() for a in net.arrays] == [[2, 1], [2], [1, 0.5], [1, 1]]


def test_beam_search_over_two_steps():
    lod = [[0, 1], [0, 1]]
    pre_ids, pre_scores = LoDTensor(np.array([[0]]), lod), LoDTensor(np.zeros((1, 1), np.float32), lod)
    scores = LoDTensor(np.array([[0.2, 0.5, 0.3]], np.float32), lod)

    def build(pre_ids, pre_scores, scores):
        i = layers.fill_constant([1], "int64", 0)
        all_ids, all_scores = layers.array_write(pre_ids, i), layers.array_write(pre_scores, i)
        picked, score, parent = layers.beam_search(
            pre_ids, pre_scores, None, scores, beam_size=2, end_id=9, return_parent_idx=True
        )
        i = i + 1
        layers.array_write(picked, i, all_ids)
        layers.array_write(score, i, all_scores)
        return [picked, score, parent, *layers.beam_search_decode(all_ids, all_scores, beam_size=2, end_id=9)]

    net = Built(build, pre_ids=pre_ids, pre_scores=pre_scores, scores=scores)
    assert sorted(net.arrays[0][:, 0].tolist()) == [1, 2] and net.arrays[2].tolist() == [0, 0]
    assert net.arrays[3].ravel().tolist() == [0, 1, 0, 2] and net.values[3].lod == [[0, 2], [0, 2, 4]]


def test_sequence_conv_pool():
    x = rows(3)

    def build(x):
        conv = layers.sequence_conv(x, 4, param_attr="w", bias_attr=False, act="sigmoid")
        return [oprack.nets.sequence_conv_pool(x, 4, 3, "w", bias_attr=False), layers.sequence_pool(conv, "max")]

    net = Built(build, x=x)
    close(net.arrays[0], net.arrays[1])


BAD_CALLS = [
    (lambda x: layers.dynamic_lstm(x, 10), "dynamic_lstm: size is 10; expected 4 times the width"),
    (lambda x: layers.dynamic_gru(x, 5), "Input has 12 columns; expected three times the 5 rows of Weight, 15"),
    (lambda x: layers.gru_unit(x, x, 36, activation="gelu"), "activation is 'gelu'; expected one of identity"),
    (lambda x: layers.sequence_pool(x, "mean"), "pool_type is 'mean'; expected one of average"),
    (lambda x: layers.sequence_conv(x, 3, filter_stride=2), "filter_stride is 2"),
    (lambda x: layers.lod_reset(x), "expected one of y and target_lod"),
    (lambda x: layers.sequence_expand(x, 3), r"sequence_expand: y is 3 \(int\)"),
    (lambda x: layers.linear_chain_crf(x, x), r"label \(variable 'x'\) is float32; expected int64"),
]


@pytest.mark.parametrize(("build", "text"), BAD_CALLS)
def test_bad_calls(build, text):
    with oprack.program_guard(oprack.Program(), oprack.Program()):
        x = layers.data("x", [None, 12], lod_level=1)
        with pytest.raises(InvalidArgumentError, match=text):
            build(x)

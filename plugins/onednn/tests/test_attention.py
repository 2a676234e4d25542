"""Attention: the op against its formula, and the pass on the ways in which programs write it."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack.cache import Cache
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.kernels.attention import _part_of, attention

CLOSE = dict(rtol=1e-5, atol=2e-6)
B, T, HEADS, D = 2, 10, 3, 4
WIDTH = HEADS * D


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def run(monkeypatch, feeds, heads, alpha, *, excluded=(), served=True):
    """The op alone, in a program; served: whether oneDNN has to run it."""
    outputs = {"Out": "out"}
    case = PassCase(feeds, {}, [("onednn_attention", {s: s for s in feeds}, outputs, {"heads": heads, "alpha": alpha})])
    program, scope = case.build()
    ran, execute = [], PrimitiveChain.run
    monkeypatch.setattr(PrimitiveChain, "run", lambda self, *args: (ran.append(self), execute(self, *args))[1])
    (out,) = oprack.Executor(excluded_libraries=excluded).run(program, feeds, ["out"], scope)
    assert bool(ran) == served
    return out


def expected(feeds, heads, alpha):
    """By the formula, in float64."""
    q, k, v = (feeds[s].astype(np.float64).reshape(*feeds[s].shape[:2], heads, -1).transpose(0, 2, 1, 3) for s in "QKV")
    scores = alpha * np.einsum("bhnd,bhmd->bhnm", q, k) + feeds.get("Mask", 0)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("bhnm,bhme->bnhe", weights, v).reshape(q.shape[0], q.shape[2], -1)


MASKS = [None, (2, 1, 1, 7), (1, 1, 1, 7), (2, 1, 5, 7), (1, 1, 5, 7), (1, 3, 5, 7), (2, 3, 5, 7), (5, 7), (2, 3, 1, 7)]


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("alpha", [1.0, 0.25])
def test_attention_with_masks(monkeypatch, mask, alpha):
    feeds = {"Q": normal(2, 5, 12), "K": normal(2, 7, 12, seed=1), "V": normal(2, 7, 6, seed=2)}
    if mask:
        feeds["Mask"] = 3 * normal(*mask)
    served = mask != (2, 3, 1, 7)  # what is broadcast in the middle is slow in oneDNN
    np.testing.assert_allclose(run(monkeypatch, feeds, 3, alpha, served=served), expected(feeds, 3, alpha), **CLOSE)


@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_a_batch_in_parts(monkeypatch, mask):
    monkeypatch.setattr("oprack_onednn.kernels.attention._SCORES", 1)
    monkeypatch.setattr(THREAD, "primitives", Cache(16))
    test_attention_with_masks(monkeypatch, mask, 0.25)


def test_parts_of_a_batch():
    assert _part_of(8, 1 << 10) == 8 and _part_of(8, 1 << 19) == 4 and _part_of(8, 1 << 30) == 1
    assert _part_of(7, 1 << 20) == 1 and _part_of(1000, 1 << 30) == 40


@pytest.mark.parametrize("rows, columns", [(1, 33), (128, 128), (1, 1), (17, 2)])
def test_attention_of_lengths(monkeypatch, rows, columns):
    feeds = {"Q": normal(2, rows, 64), "K": normal(2, columns, 64, seed=1), "V": normal(2, columns, 64, seed=2)}
    np.testing.assert_allclose(run(monkeypatch, feeds, 4, 0.5), expected(feeds, 4, 0.5), **CLOSE)


def test_attention_of_numpy(monkeypatch):
    feeds = {"Q": normal(2, 5, 12), "K": normal(2, 7, 12, seed=1), "V": normal(2, 7, 6, seed=2), "Mask": normal(5, 7)}
    got = run(monkeypatch, feeds, 3, 0.5, excluded=("onednn",), served=False)
    np.testing.assert_allclose(got, expected(feeds, 3, 0.5), **CLOSE)
    doubles = {s: a.astype(np.float64) for s, a in feeds.items()}
    np.testing.assert_allclose(attention(*doubles.values(), heads=3, alpha=0.5), expected(feeds, 3, 0.5), rtol=1e-12)


@pytest.mark.parametrize("shape", [(0, 5, 12), (2, 0, 12)])
def test_attention_of_nothing(monkeypatch, shape):
    feeds = {"Q": normal(*shape), "K": normal(shape[0], 7, 12), "V": normal(shape[0], 7, 6)}
    assert run(monkeypatch, feeds, 3, 1.0, served=False).shape == (*shape[:2], 6)


def test_attention_of_no_keys_is_zero(monkeypatch):
    feeds = {"Q": normal(2, 5, 12), "K": normal(2, 0, 12), "V": normal(2, 0, 6)}
    np.testing.assert_array_equal(run(monkeypatch, feeds, 3, 1.0, served=False), np.zeros((2, 5, 6)))


def test_slices_are_attended_where_they_are(monkeypatch):
    """Parts of one array: the strides differ from those of arrays on their own."""
    whole = normal(2, 9, 72)
    feeds = {s: whole[..., i * 24 : (i + 1) * 24] for i, s in enumerate("QKV")}
    np.testing.assert_allclose(run(monkeypatch, feeds, 3, 0.3), expected(feeds, 3, 0.3), **CLOSE)


# The pass -------------------------------------------------------------------------------------------------------------
def heads(name, shape=(0, 0, HEADS, D), axis=(0, 2, 1, 3)):
    """Ops from [B, T, heads * D] to name_h [B, heads, T, D]."""
    return [
        ("reshape2", {"X": name}, {"Out": f"{name}_r", "XShape": f"{name}_rs"}, {"shape": list(shape)}),
        ("transpose2", {"X": f"{name}_r"}, {"Out": f"{name}_h", "XShape": f"{name}_hs"}, {"axis": list(axis)}),
    ]


def context(weights="p", values="v_h", shape=(0, 0, WIDTH)):
    return [
        ("matmul_v2", {"X": weights, "Y": values}, {"Out": "c"}),
        ("transpose2", {"X": "c"}, {"Out": "ct", "XShape": "cts"}, {"axis": [0, 2, 1, 3]}),
        ("reshape2", {"X": "ct"}, {"Out": "out", "XShape": "outs"}, {"shape": list(shape)}),
    ]


def softmax(x="s"):
    return [("softmax", {"X": x}, {"Out": "p"}, {"axis": -1})]


FEEDS = {"q": normal(B, T, WIDTH), "k": normal(B, T, WIDTH, seed=1), "v": normal(B, T, WIDTH, seed=2)}
ALL_HEADS = [*heads("q"), *heads("k"), *heads("v")]
SCORES = ("matmul_v2", {"X": "q_h", "Y": "k_h"}, {"Out": "s"}, {"trans_y": True})


def check(ops, feeds=FEEDS, params=None, fused=True, **close):
    """Attention is fused (or not), and what comes out is the same; returns the op."""
    case = PassCase(feeds, params or {}, ops, ["out"])
    optimized = check_passes(case, "onednn_fuse_attention", **(close or CLOSE))
    assert ("onednn_attention" in op_types(optimized)) == fused
    found = [op for op in optimized.program.blocks[0].ops if op.type == "onednn_attention"]
    return found[0] if found else None


@pytest.mark.primitives("attention")
def test_bert():
    q = [*heads("q"), ("scale", {"X": "q_h"}, {"Out": "q_s"}, {"scale": 0.5})]
    scores = ("matmul_v2", {"X": "q_s", "Y": "k_h"}, {"Out": "s"}, {"trans_y": True})
    op = check([*q, *heads("k"), *heads("v"), scores, *softmax(), *context()])
    assert op.attrs["heads"] == HEADS and op.attrs["alpha"] == 0.5


@pytest.mark.parametrize("mask", [(B, 1, 1, T), (B, 1, T, T), (B, HEADS, T, T)], ids=str)
@pytest.mark.parametrize("order", ["XY", "YX"])
@pytest.mark.primitives("attention")
def test_masks(mask, order):
    add = ("elementwise_add", dict(zip(order, ("s", "m"), strict=True)), {"Out": "sm"})
    ops = [*ALL_HEADS, SCORES, add, *softmax("sm"), *context()]
    op = check(ops, {**FEEDS, "m": normal(*mask)})
    assert op.inputs["Mask"] == ["m"]


@pytest.mark.primitives("attention")
def test_a_constant_mask():
    add = ("elementwise_add", {"X": "s", "Y": "m"}, {"Out": "sm"})
    causal = np.triu(np.full((T, T), -1e4, np.float32), 1)
    check([*ALL_HEADS, SCORES, add, *softmax("sm"), *context()], params={"m": causal})


@pytest.mark.primitives("attention")
def test_reshapes_in_place_as_programs_of_paddle_1_have_them():
    def made(name):
        return [
            ("mul", {"X": "x", "Y": "w"}, {"Out": f"{name}0"}, {"x_num_col_dims": 2}),
            ("elementwise_add", {"X": f"{name}0", "Y": "b"}, {"Out": name}, {"axis": 2}),
            ("reshape2", {"X": name}, {"Out": name, "XShape": f"{name}rs"}, {"shape": [0, 0, HEADS, D]}),
            ("transpose2", {"X": name}, {"Out": f"{name}_h", "XShape": f"{name}hs"}, {"axis": [0, 2, 1, 3]}),
        ]

    *last, (kind, slots, _, attrs) = context()
    joined = (kind, slots, {"Out": "ct", "XShape": "outs"}, attrs)
    out = ("mul", {"X": "ct", "Y": "w"}, {"Out": "out"}, {"x_num_col_dims": 2})
    ops = [*(op for name in "qkv" for op in made(name)), SCORES, *softmax(), *last, joined, out]
    case = PassCase({"x": normal(B, T, WIDTH)}, {"w": normal(WIDTH, WIDTH), "b": normal(WIDTH)}, ops)
    names = ("name_every_write", "onednn_fuse_attention", "onednn_fuse_matmul")
    assert op_types(check_passes(case, *names, **CLOSE)) == ["matmul_post_ops"] * 3 + ["onednn_attention", "mul"]


@pytest.mark.primitives("attention")
def test_the_first_matmul_has_a_factor():
    scores = ("matmul", {"X": "q_h", "Y": "k_h"}, {"Out": "s"}, {"transpose_Y": True, "alpha": 0.25})
    scaled = ("scale", {"X": "s"}, {"Out": "s2"}, {"scale": 0.5})
    op = check([*ALL_HEADS, scores, scaled, *softmax("s2"), *context()])
    assert op.attrs["alpha"] == 0.125


@pytest.mark.primitives("attention")
def test_scores_are_divided():
    divided = ("elementwise_div", {"X": "s", "Y": "d"}, {"Out": "s2"})
    op = check([*ALL_HEADS, SCORES, divided, *softmax("s2"), *context()], params={"d": np.float32([4.0])})
    assert op.attrs["alpha"] == 0.25


@pytest.mark.primitives("attention")
def test_keys_are_flipped_by_their_transpose():
    scores = ("matmul_v2", {"X": "q_h", "Y": "k_h"}, {"Out": "s"})
    check([*heads("q"), *heads("k", axis=(0, 2, 3, 1)), *heads("v"), scores, *softmax(), *context()])


@pytest.mark.parametrize("shape", [(-1, T, HEADS, D), (0, T, HEADS, D), (0, -1, HEADS, D)], ids=str)
@pytest.mark.primitives("attention")
def test_shapes_of_the_split(shape):
    check([*heads("q", shape), *heads("k", shape), *heads("v", shape), SCORES, *softmax(), *context()])


@pytest.mark.parametrize("shape", [(-1, T, WIDTH), (0, 0, -1), (0, -1, WIDTH)], ids=str)
@pytest.mark.primitives("attention")
def test_shapes_of_the_join(shape):
    check([*ALL_HEADS, SCORES, *softmax(), *context(shape=shape)])


def test_lookalikes_stay():
    last = [("softmax", {"X": "s"}, {"Out": "p"}, {"axis": 2})]
    check([*ALL_HEADS, SCORES, *last, *context()], fused=False)
    moved = [*heads("q", (0, T // 2, HEADS, 2 * D)), *heads("k", (0, T // 2, HEADS, 2 * D)), *heads("v")]
    both = [*moved[:4], *heads("v", (0, T // 2, HEADS, 2 * D))]
    check([*both, SCORES, *softmax(), *context(shape=(0, T // 2, 2 * WIDTH))], fused=False)
    shifted = ("scale", {"X": "s"}, {"Out": "s2"}, {"scale": 2.0, "bias": 1.0})
    check([*ALL_HEADS, SCORES, shifted, *softmax("s2"), *context()], fused=False)
    unflipped = ("matmul_v2", {"X": "q_h", "Y": "k_h"}, {"Out": "s"})
    square = {name: normal(B, D, WIDTH, seed=i) for i, name in enumerate("qkv")}
    check([*ALL_HEADS, unflipped, *softmax(), *context()], square, fused=False)
    other = ("elementwise_add", {"X": "s", "Y": "m"}, {"Out": "sm"}, {"axis": 0})
    check([*ALL_HEADS, SCORES, other, *softmax("sm"), *context()], {**FEEDS, "m": normal(B)}, fused=False)


def test_weights_that_somebody_reads_stay():
    case = PassCase(FEEDS, {}, [*ALL_HEADS, SCORES, *softmax(), *context()], ["out", "p"])
    assert "onednn_attention" not in op_types(check_passes(case, "onednn_fuse_attention", **CLOSE))


def together(source):
    """Ops from [B, T, 3 * heads * D] to q_h, k_h and v_h, as vision transformers write them."""
    split = [
        ("reshape2", {"X": source}, {"Out": "r", "XShape": "rs"}, {"shape": [0, -1, 3, HEADS, D]}),
        ("transpose2", {"X": "r"}, {"Out": "t", "XShape": "ts"}, {"axis": [2, 0, 3, 1, 4]}),
    ]
    attrs = {"axes": [0], "decrease_axis": [0]}
    return split + [
        ("slice", {"Input": "t"}, {"Out": f"{name}_h"}, attrs | {"starts": [i], "ends": [i + 1]})
        for i, name in enumerate("qkv")
    ]


@pytest.mark.parametrize("product", ["matmul_v2", "mul"])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.primitives("attention")
def test_svtr(product, biased):
    attrs = {"x_num_col_dims": 2} if product == "mul" else {}
    ops = [(product, {"X": "x", "Y": "w"}, {"Out": "y0"}, attrs)]
    if biased:
        ops.append(("elementwise_add", {"X": "y0", "Y": "b"}, {"Out": "y1"}, {"axis": 2}))
    ops += [*together("y1" if biased else "y0"), ("scale", {"X": "q_h"}, {"Out": "q_s"}, {"scale": 0.5})]
    ops += [("matmul_v2", {"X": "q_s", "Y": "k_h"}, {"Out": "s"}, {"trans_y": True}), *softmax(), *context()]
    params = {"w": normal(8, 3 * WIDTH), "b": normal(3 * WIDTH)}
    case = PassCase({"x": normal(B, T, 8)}, params if biased else {"w": params["w"]}, ops, ["out"])
    optimized = check_passes(case, "onednn_fuse_attention", **CLOSE)
    assert op_types(optimized) == [product, *["elementwise_add"] * biased] * 3 + ["onednn_attention"]


@pytest.mark.primitives("attention")
def test_thirds_of_one_variable():
    ops = [*together("x"), SCORES, *softmax(), *context()]
    case = PassCase({"x": normal(B, T, 3 * WIDTH)}, {}, ops, ["out"])
    optimized = check_passes(case, "onednn_fuse_attention", **CLOSE)
    assert op_types(optimized) == ["slice"] * 3 + ["onednn_attention"]

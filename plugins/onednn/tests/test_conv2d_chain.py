"""Chains of convolutions: which become one op, and that its parts fit together."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack.ir import optimize, select_passes
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernels import conv2d_chain

PASSES = ("onednn_fuse_conv2d", "onednn_chain_conv2d")
CLOSE = dict(rtol=1e-4, atol=1e-4)
CHAIN = "onednn_conv2d_chain"


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def layer(channels, kernel=1, stride=1, pad=None, groups=1, act="relu", bias=True):
    return dict(locals())


def chain_case(layers, image=(2, 6, 17, 15), residual=False, fetch=()):
    """Convolutions after each other, each with its bias and activation."""
    ops, params, feeds, x, inputs = [], {}, {"x": normal(*image)}, "x", image[1]
    for i, a in enumerate(layers):
        pad = a["kernel"] // 2 if a["pad"] is None else a["pad"]
        pads = [pad, pad] if isinstance(pad, int) else list(pad)
        attrs = {"strides": [a["stride"]] * 2, "paddings": pads, "groups": a["groups"]}
        kernel = a["kernel"]
        scale = np.sqrt(inputs // a["groups"] * kernel * kernel)
        params[f"w{i}"] = normal(a["channels"], inputs // a["groups"], kernel, kernel, seed=i) / np.float32(scale)
        ops.append(("conv2d", {"Input": x, "Filter": f"w{i}"}, {"Output": f"c{i}"}, attrs))
        x, inputs = f"c{i}", a["channels"]
        if a["bias"]:
            params[f"b{i}"] = normal(inputs, seed=i)
            ops.append(("elementwise_add", {"X": x, "Y": f"b{i}"}, {"Out": f"a{i}"}, {"axis": 1}))
            x = f"a{i}"
        if a["act"]:
            ops.append((a["act"], {"X": x}, {"Out": f"r{i}"}))
            x = f"r{i}"
    if residual:
        ops.append(("elementwise_add", {"X": x, "Y": "x"}, {"Out": "y"}))
    return PassCase(feeds, params, ops, list(fetch))


INVERTED = [layer(12), layer(12, 3, groups=12, act="relu6"), layer(6, act="")]
STEM = [
    layer(8, 3, 2, act=""),
    layer(8, 3, groups=8),
    layer(10, bias=False),
    layer(10, 5, 2, groups=10, act="hard_swish"),
    layer(7, act="", bias=False),
]
ODD = [layer(5, 3, pad=(0, 2, 1, 0)), layer(9, 2, 2, pad=0, act="sigmoid"), layer(4, 3, pad=2)]


@pytest.fixture
def parts(monkeypatch):
    """Notes the parts of every chain of one thread, of primitives, as without AVX-512; none is left from before."""
    monkeypatch.setattr(conv2d_chain, "layers_primitive", lambda *given: None)
    monkeypatch.setattr(LIBRARY, "num_threads", lambda: 1)
    THREAD.primitives.clear()
    made, before = [], conv2d_chain.ConvChainPrimitive._parts

    def note(self):
        made.append(before(self))
        return made[-1]

    monkeypatch.setattr(conv2d_chain.ConvChainPrimitive, "_parts", note)
    return made


def run_both(example, feeds=None, excluded=()):
    """Outputs of the program as it is, and with chains, both with parameters that stay as they are."""
    program, scope = example.build()
    passes = [p for p in select_passes() if p.name in PASSES]
    changed = optimize(program.desc, scope, keep=example.fetches(), passes=passes).program
    assert CHAIN in [op.type for op in changed.blocks[0].ops]
    for name in scope.local_var_names():
        scope.get_var(name).get().array.flags.writeable = False
    executor = oprack.Executor(excluded_libraries=excluded)
    return [executor.run(p, feeds or example.feeds, example.fetches(), scope)[0] for p in (program, changed)]


@pytest.mark.parametrize("layers", [INVERTED, STEM, ODD], ids=["inverted", "stem", "odd"])
@pytest.mark.parametrize("cache, overlap", [(1 << 30, 1.15), (1 << 12, 1e9), (1, 1e9), (1, 1.5)], ids=str)
def test_in_parts(monkeypatch, parts, layers, cache, overlap):
    monkeypatch.setattr(conv2d_chain, "_CACHE", cache)
    monkeypatch.setattr(conv2d_chain, "_OVERLAP", overlap)
    want, got = run_both(chain_case(layers))
    np.testing.assert_allclose(got, want, **CLOSE)
    *_, found = parts  # a chain with little to do is built anew, for one thread
    assert len(found) > 1 or cache > 1 << 20 or overlap < 2
    rows = sorted((i, r) for p in found for i in range(p.first, p.first + p.images) for r in range(p.begin, p.end))
    assert rows == [(i, r) for i in range(2) for r in range(got.shape[2])]


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.primitives("conv chain")
def test_a_wide_window_of_channels_is_one_of_its_own(residual):
    want, got = run_both(chain_case([layer(6, 7, groups=6)], residual=residual))
    np.testing.assert_allclose(got, want, **CLOSE)
    assert types([layer(6, 5, groups=6)]).count(CHAIN) == 0


@pytest.mark.parametrize("cache", [1 << 30, 1 << 12], ids=str)
@pytest.mark.primitives("conv chain")
def test_a_residual_and_any_layout(monkeypatch, parts, cache):
    monkeypatch.setattr(conv2d_chain, "_CACHE", cache)
    monkeypatch.setattr(conv2d_chain, "_OVERLAP", 1e9)
    example = chain_case(INVERTED, residual=True)
    x = np.ascontiguousarray(example.feeds["x"].transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for feeds in (example.feeds, {"x": x}):
        want, got = run_both(example, feeds)
        np.testing.assert_allclose(got, want, **CLOSE)
    assert parts


def test_many_small_images_at_a_time(monkeypatch, parts):
    monkeypatch.setattr(conv2d_chain, "_CACHE", 3 * 4 * 12 * 8 * 8)
    want, got = run_both(chain_case(INVERTED, (7, 6, 8, 8)))
    np.testing.assert_allclose(got, want, **CLOSE)
    assert [p.images for p in parts[0]] == [3, 3, 1]


def test_the_overlap_is_bounded(monkeypatch, parts):
    """However little is to be computed at a time, parts do not become mostly what their neighbours compute, too."""
    monkeypatch.setattr(conv2d_chain, "_CACHE", 1)
    run_both(chain_case(INVERTED, (1, 6, 200, 8)))
    assert all(p.end - p.begin > 4 for p in parts[0][:-1]) and len(parts[0]) > 4


@pytest.mark.parametrize("excluded", [(), ("onednn",)])
def test_chains_run_on_numpy_as_well(monkeypatch, excluded):
    if excluded:
        monkeypatch.setattr(PrimitiveChain, "run", lambda *a: pytest.fail("oneDNN ran"))
    else:
        monkeypatch.setattr("oprack_onednn.chain.thread.Thread.primitive", lambda *a: None)
    for example in (chain_case(STEM), chain_case(INVERTED, residual=True)):
        want, got = run_both(example, excluded=("onednn",))
        np.testing.assert_allclose(got, want, **CLOSE)
        np.testing.assert_allclose(run_both(example, excluded=excluded)[1], want, **CLOSE)


def test_parameters_that_may_change():
    """As an executor has them."""
    assert op_types(check_passes(chain_case(STEM), *PASSES, **CLOSE)) == [CHAIN]


def types(layers, **options):
    return op_types(check_passes(chain_case(layers, **options), *PASSES, **CLOSE))


def test_where_a_chain_ends():
    assert types(INVERTED, residual=True) == [CHAIN]
    assert types(INVERTED * 2) == [CHAIN]
    deep = types([layer(6, 3)] * 5)
    assert deep == [CHAIN, "conv2d_post_ops"] or deep == [CHAIN, CHAIN]
    assert types([layer(6)] * 10) == [CHAIN, CHAIN]


def test_results_that_others_read_are_kept():
    assert types(INVERTED, fetch=["r1", "a2"]) == [CHAIN, "conv2d_post_ops"]
    assert types(INVERTED[:2], fetch=["r0", "r1"]) == ["conv2d_post_ops"] * 2


def test_a_residual_from_inside_ends_it():
    """The block's input is read twice."""
    block = chain_case(INVERTED, residual=True)
    first = ("conv2d", {"Input": "x0", "Filter": "v"}, {"Output": "x"}, {})
    case = PassCase({"x0": normal(2, 4, 9, 9)}, {"v": normal(6, 4, 1, 1), **block.params}, [first, *block.ops])
    assert op_types(check_passes(case, *PASSES, **CLOSE)) == ["conv2d", CHAIN]


@pytest.mark.parametrize("attrs", [{"dilations": [2, 2]}, {"padding_algorithm": "SAME"}, {"data_format": "NHWC"}])
def test_other_convolutions_stay(attrs):
    last = {"data_format": attrs["data_format"]} if "data_format" in attrs else {}
    ops = [
        ("conv2d", {"Input": "x", "Filter": "w0"}, {"Output": "y0"}, attrs),
        ("conv2d", {"Input": "y0", "Filter": "w1"}, {"Output": "y1"}, last),
    ]
    x = normal(2, 9, 9, 5) if last else normal(2, 5, 9, 9)
    case = PassCase({"x": x}, {"w0": normal(6, 5, 3, 3), "w1": normal(4, 6, 1, 1)}, ops)
    assert op_types(check_passes(case, *PASSES, **CLOSE)) == ["conv2d", "conv2d"]


def test_an_empty_batch():
    check_passes(chain_case(INVERTED, (0, 6, 9, 9)), *PASSES)

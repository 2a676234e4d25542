"""Recurrent layers: what is fused, and that oneDNN's primitives give what NumPy's kernels give, for any lengths."""

from __future__ import annotations

import threading

import numpy as np
import oprack
import pytest
from oprack.ir import optimize, select_passes
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types
from oprack.types import dtype_enum
from oprack_onednn.chain.parameters import FromConstants
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.side_by_side import SideBySide
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernels import _recurrent
from oprack_onednn.kernels._order import order_of
from oprack_onednn.kernels.declare import no_limits
from oprack_onednn.threads.pool import POOL

CLOSE = dict(rtol=1e-5, atol=1e-5)
GATES = {"gru": 3, "lstm": 4}
LENGTHS = [
    *([7], [1], [3, 0, 9, 1, 0], [0, 0, 5], [0, 6, 0], [4] * 5, [4, 0, 4]),
    *(list(range(40)), [5] * 70 + [9] * 66, [30, 1], [33] * 3 + [2]),
]


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def words(lengths, inputs=24, dtype=np.float32):
    rows = sum(lengths)
    return oprack.LoDTensor(normal(rows, inputs).astype(dtype), oprack.lod_from_lengths([lengths]))


def layer(op_type, i, reverse, size=16, inputs=24, bias=True, product="mul", **attrs):
    """(ops, parameters, output) of a layer in one direction."""
    n = GATES[op_type] * size
    params = {f"wx{i}": normal(inputs, n, seed=i) * 0.3, f"b{i}": normal(n, seed=i), f"w{i}": normal(size, n, seed=i)}
    if op_type == "lstm" or bias:
        peepholes = 3 * size if attrs.get("use_peepholes") else 0
        params[f"bias{i}"] = normal(1, n + peepholes, seed=i + 9)
    attrs |= {"is_reverse": reverse} | ({"use_peepholes": False} | attrs if op_type == "lstm" else {})
    slots = {"Input": f"y{i}", "Weight": f"w{i}"} | ({"Bias": f"bias{i}"} if f"bias{i}" in params else {})
    outputs = {"Hidden": f"h{i}"} | {"gru": {}, "lstm": {"Cell": f"c{i}"}}[op_type]
    extra = {"gru": ("BatchGate", "BatchResetHiddenPrev", "BatchHidden"), "lstm": ("BatchGate", "BatchCellPreAct")}
    outputs |= {slot: f"{slot}{i}" for slot in extra[op_type]}
    ops = [
        (product, {"X": "x", "Y": f"wx{i}"}, {"Out": f"p{i}"}),
        ("elementwise_add", {"X": f"p{i}", "Y": f"b{i}"}, {"Out": f"y{i}"}, {"axis": 1}),
        (op_type, slots, outputs, attrs),
    ]
    return ops, params, f"h{i}"


def both_directions(op_type, lengths, **more):
    parts = [layer(op_type, i, i == 1, **more) for i in range(2)]
    ops = [op for p in parts for op in p[0]]
    ops.append(("concat", {"X": [p[2] for p in parts]}, {"Out": "out"}, {"axis": 1}))
    return PassCase({"x": words(lengths)}, parts[0][1] | parts[1][1], ops)


PASSES = ("onednn_fuse_matmul", "onednn_fuse_recurrent")


@pytest.mark.parametrize("lengths", LENGTHS, ids=lambda lengths: f"{len(lengths)}-{sum(lengths)}")
@pytest.mark.parametrize("op_type", GATES)
@pytest.mark.primitives("recurrent")
def test_both_directions_of_a_layer(op_type, lengths):
    optimized = check_passes(both_directions(op_type, lengths), *PASSES, **CLOSE)
    assert op_types(optimized) == [f"onednn_fc_{op_type}"]


@pytest.mark.parametrize("lengths", [[7], [3, 0, 9, 1, 0], [4] * 5], ids=str)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("op_type, attrs", [("gru", {"origin_mode": True}), ("gru", {"bias": False}), ("lstm", {})])
@pytest.mark.primitives("recurrent")
def test_one_direction(op_type, attrs, reverse, lengths):
    ops, params, _ = layer(op_type, 0, reverse, **attrs)
    case = PassCase({"x": words(lengths)}, params, ops, fetch=["h0"])
    assert op_types(check_passes(case, *PASSES, **CLOSE)) == [f"onednn_fc_{op_type}"]


@pytest.mark.primitives("recurrent")
def test_two_layers_that_run_the_same_way(monkeypatch):
    parts = [layer("gru", i, False) for i in range(2)]
    ops = [*parts[0][0], *parts[1][0], ("concat", {"X": ["h0", "h1"]}, {"Out": "out"}, {"axis": -1})]
    for lengths in ([5], [3, 8], [4, 4]):
        case = PassCase({"x": words(lengths)}, parts[0][1] | parts[1][1], ops)
        assert op_types(check_passes(case, *PASSES, **CLOSE)) == ["onednn_fc_gru"]


@pytest.mark.parametrize("product", ["mul", "matmul"])
@pytest.mark.primitives("recurrent")
def test_a_product_without_bias(product):
    ops, params, _ = layer("gru", 0, True, product=product)
    ops[2][1]["Input"] = "p0"
    del ops[1], params["b0"]
    case = PassCase({"x": words([2, 5])}, params, ops, fetch=["h0"])
    assert op_types(check_passes(case, *PASSES, **CLOSE)) == ["onednn_fc_gru"]


@pytest.mark.parametrize(
    "op_type, attrs", [("gru", {"activation": "relu"}), ("lstm", {"cell_activation": "relu"})], ids=str
)
def test_other_activations_stay(op_type, attrs):
    ops, params, _ = layer(op_type, 0, False, **attrs)
    case = PassCase({"x": words([2, 5])}, params, ops, fetch=["h0"])
    assert op_types(check_passes(case, *PASSES, **CLOSE)) == ["matmul_post_ops", op_type]


@pytest.mark.parametrize("lengths", [[7], [3, 0, 9, 1, 0], [4] * 5], ids=str)
@pytest.mark.primitives("recurrent")
def test_peepholes(lengths):
    case = both_directions("lstm", lengths, use_peepholes=True)
    assert op_types(check_passes(case, *PASSES, **CLOSE)) == ["onednn_fc_lstm"]


@pytest.mark.parametrize("op_type, name", [("gru", "BatchGate0"), ("lstm", "c0")])
def test_layers_of_which_more_is_read_stay(op_type, name):
    ops, params, _ = layer(op_type, 0, False)
    case = PassCase({"x": words([2, 5])}, params, ops, fetch=["h0", name])
    assert op_types(check_passes(case, *PASSES, **CLOSE)) == ["matmul_post_ops", op_type]


def test_initial_states_stay():
    ops, params, _ = layer("gru", 0, False)
    ops[2][1]["H0"] = "h"
    case = PassCase({"x": words([2, 5]), "h": normal(2, 16)}, params, ops, fetch=["h0"])
    assert op_types(check_passes(case, *PASSES, **CLOSE)) == ["matmul_post_ops", "gru"]


@pytest.mark.parametrize("op_type", GATES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fused_layers_run_on_numpy_as_well(monkeypatch, op_type, dtype):
    case = both_directions(op_type, [3, 0, 9])
    program, scope = case.build()
    passes = [p for p in select_passes() if p.name in PASSES]
    optimized = optimize(program.desc, scope, keep=["out"], passes=passes)
    assert op_types(optimized) == [f"onednn_fc_{op_type}"]
    case.feeds = {"x": words([3, 0, 9], dtype=dtype)}
    for desc in (program.desc, optimized.program):
        desc.blocks[0].vars["x"].dtype = dtype_enum(dtype)
    for name, value in case.params.items():
        scope.var(name).set(value.astype(dtype))
    for name, var in optimized.program.blocks[0].vars.items():
        if var.persistable:
            tensor = scope.get_var(name).get()
            scope.get_var(name).set(tensor.array.astype(dtype))
    monkeypatch.setattr(PrimitiveChain, "run", lambda *a: pytest.fail("oneDNN ran"))
    executor = oprack.Executor(excluded_libraries=("onednn",))
    runs = [executor.run(p, case.feeds, ["out"], scope, return_numpy=False) for p in (program, optimized.program)]
    ((want,), (got,)) = runs
    assert got.dtype == dtype and got.lod == want.lod
    np.testing.assert_allclose(got.array, want.array, **CLOSE)


def test_a_layer_that_onednn_refuses_runs_step_by_step(monkeypatch):
    monkeypatch.setattr(_recurrent, "_bound_chain", lambda *a: None)
    for lengths in ([5], [3, 8], [4, 4]):
        check_passes(both_directions("gru", lengths), *PASSES, **CLOSE)


@pytest.mark.parametrize("lengths", [[9], [3, 0, 9, 1, 0], [4] * 5], ids=str)
@pytest.mark.parametrize("op_type", GATES)
def test_directions_in_a_thread_each(monkeypatch, op_type, lengths):
    monkeypatch.setattr(_recurrent, "_APART", 0)
    walked = []
    run = _recurrent.run_all
    monkeypatch.setattr(
        _recurrent, "run_all", lambda *a: (walked.append((threading.get_ident(), THREAD.limit)), run(*a))
    )
    with THREAD.limited(2):
        check_passes(both_directions(op_type, lengths), *PASSES, **CLOSE)
    assert len(set(walked)) == 2 and {limit for _, limit in walked} == {1}


@pytest.mark.parametrize("lengths", [[9], [3, 0, 9, 1, 0], [4] * 5], ids=str)
@pytest.mark.parametrize("op_type", GATES)
def test_directions_on_a_thread_of_the_pool_each(monkeypatch, op_type, lengths):
    LIBRARY.usable()
    if POOL.problem:
        pytest.skip(POOL.problem)
    together, run = [], SideBySide.run
    monkeypatch.setattr(SideBySide, "run", lambda self, rows: (together.append(len(rows)), run(self, rows)))
    with no_limits(), THREAD.limited(2):
        check_passes(both_directions(op_type, lengths), *PASSES, **CLOSE)
    assert together and set(together) == {2}


def test_an_error_in_the_other_thread_is_seen(monkeypatch):
    monkeypatch.setattr(_recurrent, "_APART", 0)

    def calls(d):
        if d:
            raise ArithmeticError("of direction 1")
        return []

    shapes = (2, 3, 3, 4), (2, 4, 3, 4), (2, 3, 4)
    layers = _recurrent.Layer("gru", *(np.zeros(shape, np.float32) for shape in shapes))
    with THREAD.limited(2), pytest.raises(ArithmeticError, match="of direction 1"):
        _recurrent.side_by_side(calls, layers, 10, 5)


def test_small_steps_are_left_to_one_thread():
    with THREAD.limited(4):
        with _recurrent.threads_for(10):
            assert THREAD.limit == 1
        with _recurrent.threads_for(1e9):
            assert THREAD.limit == 4


def test_weights_are_made_ready_once_while_nobody_can_write_to_them():
    made = []
    layers = FromConstants(lambda arrays, *options: made.append(options) or len(made))
    fixed, open_ = np.ones(3), np.ones(3)
    fixed.flags.writeable = False
    assert [layers([fixed, fixed]), layers([fixed, fixed]), layers([fixed, fixed], True)] == [1, 1, 2]
    assert layers([fixed, open_]) == 3 and layers([fixed, open_]) == 4
    other = fixed.copy()
    other.flags.writeable = False
    assert layers([fixed, other]) == 5 == layers([fixed, other]) and len(layers._entries) == 3
    del other
    assert len(layers._entries) == 2, "it goes with any of its arrays"
    del fixed
    assert not layers._entries


def test_packed_rows_are_in_time_major_order():
    order = order_of((0, 2, 2, 5, 6))
    assert order.order.tolist() == [2, 0, 3]
    assert order.runs == [(0, 3, 1), (3, 2, 1), (5, 1, 1)]
    assert order.rows(False).tolist() == [2, 0, 5, 3, 1, 4]
    assert order.rows(True).tolist() == [4, 1, 5, 3, 0, 2]
    assert order.inverse(False).tolist() == [1, 4, 0, 3, 5, 2]

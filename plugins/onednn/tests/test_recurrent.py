"""Recurrent layers: what is fused, and that native code gives what NumPy's kernels give, for any lengths."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import oprack
import pytest
from oprack.cache import BUDGET
from oprack.ir import optimize, select_passes
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types
from oprack.types import dtype_enum
from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.parameters import FromConstants
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import OperandError
from oprack_onednn.kernels._recurrent import CELLS, Cell, Direction, order_of, sequences, serves
from oprack_onednn.kernels.declare import no_limits

LIBRARY.usable()
pytestmark = pytest.mark.skipif(not serves(), reason=f"native code does not serve: {RUNNER.problem}")

CLOSE = dict(rtol=1e-5, atol=1e-5)
GATES = {"gru": 3, "lstm": 4}
LENGTHS = [
    *([7], [1], [3, 0, 9, 1, 0], [0, 0, 5], [0, 6, 0], [4] * 5, [4, 0, 4]),
    *(list(range(40)), [5] * 70 + [9] * 66, [30, 1], [33] * 3 + [2]),
]


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


@pytest.fixture
def native(monkeypatch):
    """A test fails where NumPy computes in native code's place."""
    calls, run = [], RUNNER.recurrent
    monkeypatch.setattr(RUNNER, "recurrent", lambda *arguments: (calls.append(arguments), run(*arguments)))
    yield calls
    assert calls, "native code did not run"


def words(lengths, inputs=24, dtype=np.float32):
    rows = sum(lengths)
    return oprack.LoDTensor(normal(rows, inputs).astype(dtype), oprack.lod_from_lengths([lengths]))


def layer(op_type, i, reverse, size=16, inputs=24, bias=True, product="mul", **attrs):
    """(ops, parameters, output) of a layer in one direction."""
    n = GATES[op_type] * size
    params = {
        f"wx{i}": normal(inputs, n, seed=i) * 0.3,
        f"b{i}": normal(n, seed=i),
        f"w{i}": normal(size, n, seed=i) / 2,
    }
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
@pytest.mark.usefixtures("native")
def test_both_directions_of_a_layer(op_type, lengths):
    optimized = check_passes(both_directions(op_type, lengths), *PASSES, **CLOSE)
    assert op_types(optimized) == [f"onednn_fc_{op_type}"]


@pytest.mark.parametrize("lengths", [[7], [3, 0, 9, 1, 0], [4] * 5], ids=str)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("op_type, attrs", [("gru", {"origin_mode": True}), ("gru", {"bias": False}), ("lstm", {})])
@pytest.mark.usefixtures("native")
def test_one_direction(op_type, attrs, reverse, lengths):
    ops, params, _ = layer(op_type, 0, reverse, **attrs)
    case = PassCase({"x": words(lengths)}, params, ops, fetch=["h0"])
    assert op_types(check_passes(case, *PASSES, **CLOSE)) == [f"onednn_fc_{op_type}"]


@pytest.mark.usefixtures("native")
def test_two_layers_that_run_the_same_way(monkeypatch):
    parts = [layer("gru", i, False) for i in range(2)]
    ops = [*parts[0][0], *parts[1][0], ("concat", {"X": ["h0", "h1"]}, {"Out": "out"}, {"axis": -1})]
    for lengths in ([5], [3, 8], [4, 4]):
        case = PassCase({"x": words(lengths)}, parts[0][1] | parts[1][1], ops)
        assert op_types(check_passes(case, *PASSES, **CLOSE)) == ["onednn_fc_gru"]


@pytest.mark.parametrize("product", ["mul", "matmul"])
@pytest.mark.usefixtures("native")
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
@pytest.mark.usefixtures("native")
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


def directions(kind, sides, size=20, inputs=24):
    """Weights of a layer; its size is no multiple of what a block of them holds."""
    n = size * {"lstm": 4, "rnn": 1}.get(kind, 3)
    return [
        Direction(
            Cell(kind),
            normal(size, n // size, size, seed=i),
            normal(inputs, n, seed=i) * 0.3,
            normal(n, seed=i),
            normal(size, seed=i) if kind == "lbr_gru" else None,
            normal(3, size, seed=i) if kind == "lstm" else None,
        )
        for i in range(sides)
    ]


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("kind", CELLS)
def test_a_sequence_has_the_same_numbers_among_others_and_with_any_threads(kind, sides):
    lengths = [0, 3, 0, 9, 1, *range(30), 0]
    offsets, layer, reversals = [0, *np.cumsum(lengths).tolist()], directions(kind, sides), (False, True)[:sides]
    x = normal(offsets[-1], 24)
    alone = [sequences(layer, x[a:b], [0, b - a], reversals) for a, b in pairwise(offsets) if b > a]
    for threads in (1, 2, 5):
        with no_limits(), THREAD.limited(threads):
            THREAD.ready()
            np.testing.assert_array_equal(sequences(layer, x, offsets, reversals), np.concatenate(alone))


@pytest.mark.parametrize("wrong", ["w_state", "w_input", "bias", "candidate_bias", "peepholes"])
def test_weights_that_do_not_fit_are_refused(wrong):
    shapes = {"w_state": (4, 3, 4), "w_input": (5, 12), "bias": (12,), "candidate_bias": (4,), "peepholes": (3, 4)}
    given = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    assert Direction(Cell("lbr_gru"), **given).operations == 2 * 12 * 9
    given[wrong] = np.zeros((*shapes[wrong][:-1], 7), np.float32)
    with pytest.raises(OperandError, match="weights of lbr_gru"):
        Direction(Cell("lbr_gru"), **given)


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


def test_packed_weights_count_against_the_budget():
    def packed():
        BUDGET.settle()
        return BUDGET.taken("packed parameters")

    layers, given = FromConstants(lambda arrays: directions("gru", 2)), np.ones(3)
    given.flags.writeable = False
    before = packed()
    layers([given])
    blocks = 24 * 64 + 20 * 48 + 20 * 32  # rows of the weights of x, of h for u and r, and for c, by whole columns
    assert packed() - before == 2 * 4 * (blocks + 60)
    del given
    assert packed() == before


def test_sequences_are_walked_longest_first():
    order = order_of((0, 2, 2, 5, 6))
    assert order.numbers.tolist() == [2, 0, 3] and order.count == 4
    for reverse, first, stride in ((False, [2, 0, 5], 1), (True, [4, 1, 5], -1)):
        starts, lengths, by = order.walk(reverse, slice(None))
        assert (starts.tolist(), lengths.tolist(), by) == (first, [3, 2, 1], stride)

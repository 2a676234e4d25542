"""How single forms of PIR are written in Fluid, and what they compute, on programs put together here."""

from __future__ import annotations

import numpy as np
import pytest
from oprack import Executor, PackManager, Scope
from oprack.errors import MissingPackError, UnimplementedError
from oprack.packs import use_manager
from oprack_pir import table
from oprack_pir.reader import read_program
from pir_files import BOOL, I64, attr, block, data, fetch, full, op, tensor, text

X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


def run(*ops, x=X):
    program = read_program(text(*ops))
    names = [o.input("X")[0] for o in program.global_block().ops if o.type == "fetch"]
    slow = Executor(prepared=False).run(program, {"x": x}, names, Scope())
    fast = Executor().run(program, {"x": x}, names, Scope())
    for one, other in zip(slow, fast, strict=True):
        np.testing.assert_array_equal(one, other)
    return slow


def types(*ops):
    return [o.type for o in read_program(text(*ops)).global_block().ops]


def scaled(result, operand, factor, bias=0.0):
    attrs = [attr("bias", "0.a_f32", bias), attr("bias_after_scale", "0.a_bool", True)]
    return op("1.scale", [operand, factor], [(result, tensor())], attrs)


def test_a_constant_becomes_an_attribute_and_leaves_no_op():
    ops = [data(), full(2, 2.5), scaled(3, 1, 2, 1.0), fetch(3)]
    assert types(*ops) == ["feed", "scale", "fetch"]
    np.testing.assert_array_equal(run(*ops)[0], X * np.float32(2.5) + 1)


def test_what_only_a_run_knows_stays_an_input():
    factor = data(2, "factor", tensor(shape=(1,)))
    program = read_program(text(data(), factor, scaled(3, 1, 2), fetch(3)))
    (scale,) = (o for o in program.global_block().ops if o.type == "scale")
    assert scale.input("ScaleTensor") == ["factor"] and "scale" not in scale.attrs
    feeds = {"x": X, "factor": np.array([-3], np.float32)}
    np.testing.assert_array_equal(Executor().run(program, feeds, ["fetch_name_0"], Scope())[0], X * -3)


def test_large_integers_and_infinities_are_exact():
    big = 2**53 - 1
    ops = [data(), full(2, float(big), "int64", (2,)), full(3, 0.0), fetch(2), fetch(3, 1)]
    ops[2]["A"][1]["AT"] = {"#": "0.a_f64", "VD": "-inf"}
    got = run(*ops)
    np.testing.assert_array_equal(got[0], np.full(2, big, np.int64))
    np.testing.assert_array_equal(got[1], np.array([-np.inf], np.float32))


@pytest.mark.parametrize("value", [True, False])
def test_bool_is_a_dtype(value):
    (got,) = run(data(), full(2, float(value), "bool", (2,)), fetch(2))
    np.testing.assert_array_equal(got, np.array([value, value]))


def test_the_older_type_of_numbers_is_read():
    ops = [data(), full(2, 1.5), scaled(3, 1, 2), fetch(3)]
    ops[1]["A"][1]["AT"] = {"#": "1.a_scalar", "D": ["float32", 1.5]}
    np.testing.assert_array_equal(run(*ops)[0], X * np.float32(1.5))


def test_a_shape_has_64_bits_as_in_paddle_3():
    (got,) = run(data(), op("1.shape64", [1], [(2, tensor(I64, (2,)))]), fetch(2))
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got, [2, 3])


def test_an_input_that_is_fetched_and_a_value_that_is_fetched_twice():
    relu = op("1.relu", [1], [(2, tensor())])
    program = read_program(text(data(), relu, fetch(1), fetch(2, 1), fetch(2, 2)))
    names = [o.input("X")[0] for o in program.global_block().ops if o.type == "fetch"]
    assert names == ["fetch_name_0", "fetch_name_1", "fetch_name_2"]
    got = Executor().run(program, {"x": X}, names, Scope())
    for one, expected in zip(got, [X, np.maximum(X, 0), np.maximum(X, 0)], strict=True):
        np.testing.assert_array_equal(one, expected)


def test_outputs_stand_in_the_order_of_their_columns():
    relu, exp = op("1.relu", [1], [(2, tensor())]), op("1.exp", [1], [(3, tensor())])
    got = run(data(), relu, exp, fetch(3, 1), fetch(2, 0))
    np.testing.assert_array_equal(got[0], np.maximum(X, 0))


def test_an_op_in_place_is_seen_by_who_reads_the_value_before():
    """PIR's increment_ writes the memory of its operand; increment does not."""
    counter = op("1.assign", [4], [(5, tensor(shape=(1,)))])
    by_two = [attr("value", "0.a_f32", 2.0)]
    in_place = op("1.increment_", [5], [(6, tensor(shape=(1,)))], by_two)
    got = run(data(), full(4, 1.0), counter, in_place, fetch(5), fetch(6, 1))
    apart = op("1.increment", [5], [(6, tensor(shape=(1,)))], by_two)
    assert [float(v[0]) for v in run(data(), full(4, 1.0), counter, apart, fetch(5), fetch(6, 1))] == [1.0, 3.0]
    assert [float(v[0]) for v in got] == [3.0, 3.0]


def test_a_constant_that_was_overwritten_is_no_attribute():
    """The factor is 1 when it is made, and 3 when scale reads it."""
    by_two = [attr("value", "0.a_f32", 2.0)]
    in_place = op("1.increment_", [2], [(6, tensor(shape=(1,)))], by_two)
    (got,) = run(data(), full(2, 1.0), in_place, scaled(3, 1, 2), fetch(3))
    np.testing.assert_array_equal(got, X * 3)


def branch(condition, result, ops_then, ops_else):
    return op("1.if", [condition], [(result, tensor())], regions=[ops_then, ops_else])


@pytest.mark.parametrize("value", [True, False])
def test_a_branch_gives_what_its_block_yields(value):
    then = [op("1.relu", [1], [(5, tensor())]), op("2.yield", [5])]
    otherwise = [op("2.yield", [1])]  # a value from outside, as it is
    (got,) = run(data(), full(2, float(value), "bool"), branch(2, 3, then, otherwise), fetch(3))
    np.testing.assert_array_equal(got, np.maximum(X, 0) if value else X)


def counted(n):
    """A loop of n rounds in which two values change places."""
    less = [op("1.less_than", [12, 3], [(13, tensor(BOOL, (1,)))]), op("2.yield", [13, 12, -3, -2])]
    one = full(11, 1.0, "int64")
    add = op("1.add", [-1, 11], [(12, tensor(I64, (1,)))])
    loop = op("1.while", [4, 2, 1, 5], [(6, tensor(I64, (1,))), (7, tensor()), (8, tensor())])
    args = [{"#": -1, "TT": tensor(I64, (1,))}, {"#": -2, "TT": tensor()}, {"#": -3, "TT": tensor()}]
    loop["regions"] = [{"#": "r", "blocks": [block([one, add, *less], args)]}]
    start = op("1.less_than", [2, 3], [(4, tensor(BOOL, (1,)))])
    twice = op("1.add", [1, 1], [(5, tensor())])
    return [data(), full(2, 0.0, "int64"), full(3, float(n), "int64"), start, twice, loop, fetch(7), fetch(8, 1)]


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_values_of_a_loop_change_places_at_once(rounds):
    a, b = run(*counted(rounds))
    first, second = (X, 2 * X) if rounds % 2 == 0 else (2 * X, X)
    np.testing.assert_array_equal(a, first)
    np.testing.assert_array_equal(b, second)


def test_a_parameter_that_is_not_in_the_file_is_no_persistable_variable():
    dead = {"#": "p", "A": [0, 1, 1, "dead"], "DA": [], "QA": [], "OA": [0, 1, 0], "O": {"%": 9, "TT": tensor()}}
    alive = dead | {"A": [0, 1, 1, "alive"], "OA": [1, 0, 1], "O": {"%": 8, "TT": tensor()}}
    block_ = read_program(text(dead, alive, data(), op("1.add", [1, 8], [(2, tensor())]), fetch(2))).global_block()
    assert not block_.vars["dead"].persistable and block_.vars["alive"].persistable


def test_a_program_that_is_not_trainable_has_no_flags():
    weight = {"#": "p", "A": [0, 1, 0, "w"], "DA": [], "QA": [], "O": {"%": 8, "TT": tensor()}}
    feed = data() | {"#": "1.feed"}
    ops = [weight, feed, op("1.add", [1, 8], [(2, tensor())]), fetch(2)]
    for other in ops[1:]:
        other.pop("OA")
    found = read_program(text(*ops)).global_block()
    assert found.vars["w"].persistable and [o.type for o in found.ops] == ["feed", "elementwise_add", "fetch"]


# What can't be written -----------------------------------------------------------------------------------------------
def refused(*ops):
    with pytest.raises(UnimplementedError) as info:
        read_program(text(*ops))
    return str(info.value)


def test_all_unknown_ops_are_named_with_the_version():
    said = refused(data(), op("1.flux", [1], [(2, tensor())]), op("1.flux", [2], [(3, tensor())]), op("3.mine"))
    assert "pd_op.flux (2)" in said and "custom_op.mine (1)" in said and "PIR version 4" in said


def test_an_attribute_that_fluid_lacks_is_refused_unless_it_changes_nothing():
    def rounded(decimals):
        return [data(), op("1.round", [1], [(2, tensor())], [attr("decimals", "0.a_i32", decimals)]), fetch(2)]

    assert "decimals" in refused(*rounded(2)) and "pd_op.round" in refused(*rounded(2))
    np.testing.assert_array_equal(run(*rounded(0))[0], X)


def test_an_axis_that_only_a_run_knows_is_refused_by_name():
    axis = data(2, "axis", tensor(I64, (1,)))
    said = refused(data(), axis, op("1.nanmedian", [1, 2], [(3, tensor())]), fetch(3))
    assert "pd_op.nanmedian" in said and "'axis'" in said


@pytest.mark.parametrize("axis", [0, 1])
def test_an_axis_that_a_run_may_choose_is_read_in_the_run(axis):
    """Fluid's attribute names the variable."""
    of = data(2, "axis", tensor(I64, (1,)))
    program = read_program(text(data(), of, op("1.argmax", [1, 2], [(3, tensor(I64, (-1,)))]), fetch(3)))
    feeds = {"x": X, "axis": np.array([axis])}
    np.testing.assert_array_equal(Executor().run(program, feeds, ["fetch_name_0"], Scope())[0], X.argmax(axis=axis))


def test_sizes_that_a_run_may_choose_are_read_in_the_run():
    """A list of tensors: the attribute names them all."""
    axes = [data(n, name, tensor(I64, (1,))) for n, name in ((2, "a"), (3, "b"))]
    both = op("0.combine", [2, 3], [(4, {"#": "0.t_vec", "D": [tensor(I64, (1,))] * 2})])
    sums = op("1.sum", [1, 4], [(5, tensor())], [attr("keepdim", "0.a_bool", True)])
    program = read_program(text(data(), *axes, both, sums, fetch(5)))
    feeds = {"x": X, "a": np.array([0]), "b": np.array([1])}
    found = Executor().run(program, feeds, ["fetch_name_0"], Scope())[0]
    np.testing.assert_allclose(found, X.sum(keepdims=True), rtol=1e-6)


def test_an_op_whose_pack_is_not_installed_is_named_when_it_is_to_run():
    ops = text(data(), op("1.relu", [1], [(2, tensor())]), fetch(2))
    with use_manager(PackManager(environ={"OPRACK_BLOCK": "math,nn"})):
        program = read_program(ops)
        with pytest.raises(MissingPackError, match="relu"):
            Executor().run(program, {"x": X}, ["fetch_name_0"], Scope())


# The table -----------------------------------------------------------------------------------------------------------
def test_rows_fit_the_signatures_of_their_ops():
    """What the rules say of slots and attributes is there, and what an op insists on has an operand."""
    facts, rules, _ = table._data()
    wrong, fitting, manager = [], 0, PackManager()
    for name in sorted({*facts, *rules}):
        row = table.row(name)
        if row is None or not manager.has_op(row.op):
            continue
        proto = manager.op_info(row.op).proto
        fitting += 1
        slots = [slot for slot in row.inputs if slot] + [s for _, _, *both in row.mutable for s in both if s]
        wrong += [f"{name}: {s} twice" for s in {*slots} if slots.count(s) > 1]
        wrong += [
            f"{name}: nothing for input {s.name}"
            for s in proto.inputs.values()
            if not s.dispensable and s.name not in slots
        ]
        rule = rules.get(name, {})
        named = [*rule.get("renamed", {}).values(), *row.set, *row.dtype_of, *row.flags_like]
        wrong += [f"{name}: attribute {a}" for a in named if a not in proto.attrs]
        wrong += [f"{name}: slot {s}" for s in (*rule.get("in", ()), *row.cast) if s and s not in proto.inputs]
        wrong += [f"{name}: slot {s}" for s in (*rule.get("out", ()), *row.alias) if s and s not in proto.outputs]
    assert wrong == []
    assert fitting > 250


def test_an_op_of_several_steps_fills_what_a_mask_chooses():
    mask = np.array([[True, False, True]])
    given = [data(), data(2, "mask", tensor(BOOL, (1, 3))), full(3, -np.inf)]
    given[2]["A"][1]["AT"] = {"#": "0.a_f64", "VD": "-inf"}
    program = read_program(text(*given, op("1.masked_fill", [1, 2, 3], [(4, tensor())]), fetch(4)))
    (got,) = Executor().run(program, {"x": X, "mask": mask}, ["fetch_name_0"], Scope())
    np.testing.assert_array_equal(got, np.where(mask, np.float32(-np.inf), X))


def test_an_op_of_several_steps_in_place_changes_what_others_read():
    given = [data(), data(2, "mask", tensor(BOOL)), full(3, 9.0), full(4, 1.0), scaled(5, 1, 4)]
    ops = [*given, op("1.masked_fill_", [5, 2, 3], [(6, tensor())]), fetch(5), fetch(6, 1)]
    program = read_program(text(*ops))
    found = Executor().run(program, {"x": X, "mask": X < 0}, ["fetch_name_0", "fetch_name_1"], Scope())
    for got in found:
        np.testing.assert_array_equal(got, np.where(X < 0, np.float32(9), X))


def test_an_op_of_several_steps_says_what_it_can_not_broadcast():
    given = [data(), data(2, "mask", tensor(BOOL, (4, 2, 3))), full(3, 9.0)]
    wide = op("1.masked_fill", [1, 2, 3], [(4, tensor(shape=(4, 2, 3)))])
    with pytest.raises(UnimplementedError, match=r"masked_fill.*Broadcast it before"):
        read_program(text(*given, wide, fetch(4)))

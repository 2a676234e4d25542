"""Two kernels that fit a call equally well: refused, unless exactly one of them comes from the op's own pack."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType, SimpleNamespace, new_class

import numpy as np
import oprack
import pytest
from oprack.desc import ProgramDesc, framework_pb2
from oprack.errors import (
    DuplicateKernelError,
    DuplicateOpError,
    InvalidArgumentError,
    MissingPackError,
    NotFoundError,
    OpError,
)
from oprack.io.export import inference_program
from oprack.kernel import attr, has_input, kernel
from oprack.op import Attr, Input, OpDef, Output
from oprack.packs.manager import PackManager, use_manager
from oprack.packs.pack import PackWarning
from oprack.program import Program


class Scaled(OpDef, type="scaled"):
    """$$Out = factor X$$"""

    X = Input("x")
    Out = Output("o")
    factor = Attr(2.0, "factor")

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))


@kernel("scaled")
def own(X, *, factor):
    return X * np.asarray(factor, X.dtype)


def third_party(**options):
    @kernel("scaled", **options)
    def wrong(X):
        return X * 0

    return wrong


def entry_point(name, **hooks):
    """A pack whose module is in memory."""
    module = ModuleType(f"fixture_ties_{name}")
    for hook, function in hooks.items():
        setattr(module, hook, oprack.hookimpl(function))
    sys.modules[module.__name__] = module
    return SimpleNamespace(name=name, value=module.__name__, dist=SimpleNamespace(name=f"oprack-{name}", version="1.0"))


def own_pack(*kernels, name="scaling"):
    def bring(register):
        for function in kernels or (own,):
            register.kernel(function)

    return entry_point(name, oprack_ops=lambda register: register.op(Scaled), oprack_kernels=bring)


def other_pack(function, name="careless"):
    return entry_point(name, oprack_kernels=lambda register: register.kernel(function))


def run(manager, x, **attrs):
    program = ProgramDesc()
    block = program.blocks[0]
    for v in ("x", "y"):
        block.create_var(v, dtype="float32", shape=[-1])
    block.append_op("scaled", {"X": ["x"]}, {"Out": ["y"]}, attrs)
    return oprack.Executor(manager=manager).run(program, {"x": x}, ["y"], oprack.Scope())[0]


X = np.array([1.0, 3.0], "float32")


@pytest.mark.parametrize("first", [True, False])
def test_a_careless_pack_does_not_stop_the_op(first):
    packs = [own_pack(), other_pack(third_party())]
    manager = PackManager(packs if first else packs[::-1], environ={})
    with pytest.warns(PackWarning, match=r"wrong of oprack-careless.*brings the op.*OPRACK_BLOCK=oprack-careless"):
        np.testing.assert_array_equal(run(manager, X), [2, 6])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        np.testing.assert_array_equal(run(manager, X), [2, 6])


def test_the_block_that_the_message_names_works():
    packs = [own_pack(), other_pack(third_party())]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        manager = PackManager(packs, environ={"OPRACK_BLOCK": "oprack-careless"})
        np.testing.assert_array_equal(run(manager, X), [2, 6])


def test_a_higher_priority_is_no_tie():
    manager = PackManager([own_pack(), other_pack(third_party(priority=1))], environ={})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(run(manager, X), [0, 0])


def test_predicates_that_both_hold_tie_only_where_they_do():
    small, large = third_party(when=attr("factor") < 10.0), third_party(when=attr("factor") > 1.0)
    manager = PackManager([own_pack(), other_pack(small, "one"), other_pack(large, "two")], environ={})
    np.testing.assert_array_equal(run(manager, X, factor=0.5), [0, 0])
    with pytest.warns(PackWarning) as warned:
        run(manager, X, factor=5.0)
    for part in (
        "two kernels for place cpu",
        "of oprack-one",
        "of oprack-two",
        "when attribute factor < 10.0",
        "when attribute factor > 1.0",
        "wrong of oprack-one, whose name sorts first, is used",
        "OPRACK_PREFER=oprack-one or OPRACK_PREFER=oprack-two",
        "OPRACK_BLOCK=oprack-one or OPRACK_BLOCK=oprack-two",
        "priority=",
    ):
        assert part in str(warned[0].message)


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_of_two_other_packs_that_tie_the_first_by_name_is_used(order):
    def of(name):
        @kernel("scaled", priority=3)
        def times(X):
            return X * np.float32(10 if name == "one" else 20)

        return other_pack(times, name)

    packs = [own_pack(), *map(of, order)]
    with pytest.warns(PackWarning, match=r"of oprack-(one|two) .* of oprack-(one|two) .*OPRACK_BLOCK=oprack-one or"):
        np.testing.assert_array_equal(run(PackManager(packs, environ={}), X), 10 * X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for choice in ({"environ": {"OPRACK_PREFER": "oprack-two"}}, {"environ": {}, "prefer": ["two"]}):
            np.testing.assert_array_equal(run(PackManager(packs, **choice), X), 20 * X)


def test_a_user_sets_the_priority_of_a_packs_kernels():
    packs = [own_pack(), other_pack(third_party(priority=5), "one")]
    for environ, expected in (
        ({}, 0 * X),
        ({"OPRACK_PRIORITY": "one=-6"}, 2 * X),
        ({"OPRACK_PRIORITY": "oprack-scaling=6"}, 2 * X),
        ({"OPRACK_PRIORITY": "scaling=4"}, 0 * X),
    ):
        np.testing.assert_array_equal(run(PackManager(packs, environ=environ), X), expected)
    manager = PackManager(packs, environ={"OPRACK_PRIORITY": "one=-6"}, priorities={"one": 0})
    np.testing.assert_array_equal(run(manager, X), 0 * X)
    manager.set_priority("one", -9)
    np.testing.assert_array_equal(run(manager, X), 2 * X)
    with pytest.raises(NotFoundError, match=r"set_priority\('ome', 1\).*did you mean one"):
        manager.set_priority("ome", 1)
    with pytest.raises(InvalidArgumentError, match=r"OPRACK_PRIORITY='one': 'one' is not of the form NAME=NUMBER"):
        PackManager(packs, environ={"OPRACK_PRIORITY": "one"})


def test_kernels_of_one_other_pack_that_tie_in_a_call_do_not_stop_the_op():
    def bring(register):
        register.kernel(third_party(when=attr("factor") < 10.0))
        register.kernel(third_party(when=attr("factor") > 1.0))

    manager = PackManager([own_pack(), entry_point("careless", oprack_kernels=bring)], environ={})
    with pytest.warns(PackWarning, match="wrong of oprack-careless, whose name sorts first, is used"):
        np.testing.assert_array_equal(run(manager, X, factor=5.0), 0 * X)


def test_a_tie_inside_the_ops_own_pack_is_the_authors():
    with pytest.raises(DuplicateKernelError, match=r"own of oprack-scaling .*wrong of oprack-scaling"):
        PackManager([own_pack(own, third_party())], environ={}).kernel_map("scaled", "cpu")


def test_a_tie_inside_another_pack_leaves_its_second_kernel_out():
    def bring(register):
        register.kernel(third_party(priority=2))
        register.kernel(third_party(priority=2))

    manager = PackManager([own_pack(), entry_point("careless", oprack_kernels=bring)], environ={})
    with pytest.warns(PackWarning, match=r"careless.*is left out: DuplicateKernelError"):
        assert len(manager.kernel_map("scaled", "cpu")) == 2


def test_a_kernel_of_this_process_that_would_not_be_used_is_refused_at_once():
    manager = PackManager([own_pack()], environ={})
    with pytest.raises(DuplicateKernelError, match=r"own of oprack-scaling .*wrong of this process"):
        manager.register_kernel(third_party())
    np.testing.assert_array_equal(run(manager, X), [2, 6])
    manager.register_kernel(third_party(when=has_input("X")))
    np.testing.assert_array_equal(run(manager, X), [0, 0])


def test_of_two_packs_with_one_op_one_is_used_whole():
    """With its kernels: those of the other were written for another definition."""

    class Other(OpDef, type="another"):
        """$$Out = X$$"""

        X = Input("x")
        Out = Output("o")

        def infer_shape(ctx):
            ctx.set_dim("Out", ctx.dim("X"))

    def both(register):
        register.op(Scaled)
        register.op(Other)

    tenfold = kernel("scaled")(lambda X: X * np.float32(10))
    big = entry_point("big", oprack_ops=both, oprack_kernels=lambda register: register.kernel(tenfold))
    packs = [own_pack(name="small"), big]
    manager = PackManager(packs, environ={})
    with pytest.raises(DuplicateOpError, match=r"'scaled' is brought by big .* and by small .*OPRACK_PREFER=small"):
        run(manager, X)  # which of them runs must not hang on how they are called
    assert [p.conflicts for p in manager.packs()] == [(), ("scaled",), ("scaled",)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        manager.prefer("small")
        np.testing.assert_array_equal(run(manager, X), 2 * X)
        (settled,) = manager.index.settlements()
        assert (settled.winner.owner, settled.by_user) == ("oprack-small", True)
        manager.prefer("big")
        np.testing.assert_array_equal(run(manager, X), 10 * X)


def tenfold_packs():
    tenfold = kernel("scaled")(lambda X: X * np.float32(10))
    return [own_pack(name="small"), own_pack(tenfold, name="big")]


def test_a_model_runs_with_the_op_that_it_was_saved_with():
    """Whatever else is installed since, and however it is called."""
    small, big = tenfold_packs()
    program = Program()
    block = program.global_block()
    for v in ("x", "y"):
        block.create_var(v, dtype="float32", shape=[-1])
    block.append_op("scaled", {"X": ["x"]}, {"Out": ["y"]})
    with use_manager(PackManager([small], environ={})):
        saved = inference_program(program, ["x"], ["y"]).serialize()
    assert ProgramDesc.parse(saved).op_sources["scaled"] == ("oprack-small", "1.0")

    manager = PackManager([big, small], environ={})
    with pytest.warns(PackWarning, match="that of small is used, with which a model was saved"):
        ran = oprack.Executor(manager=manager).run(Program.parse(saved), {"x": X}, ["y"], oprack.Scope())
    np.testing.assert_array_equal(ran[0], 2 * X)
    np.testing.assert_array_equal(run(manager, X), 2 * X)  # decided now, for this process
    other = Program.parse(saved)
    other.desc.op_sources["scaled"] = ("oprack-big", "1.0")
    with pytest.raises(DuplicateOpError, match=r"was saved with that of oprack-big, but one that ran .*small"):
        oprack.Executor(manager=manager).run(other, {"x": X}, ["y"], oprack.Scope())
    manager.prefer("big")  # the user's word counts first
    for any_program in (other, Program.parse(saved)):
        ran = oprack.Executor(manager=manager).run(any_program, {"x": X}, ["y"], oprack.Scope())
        np.testing.assert_array_equal(ran[0], 10 * X)


def test_a_model_names_the_distributions_that_it_lacks():
    program = Program()
    program.global_block().append_op("snaky", {"X": ["x"]}, {"Out": ["y"]})
    program.desc.op_sources |= {"snaky": ("oprack-snake", "0.1"), "gone": ("oprack-gone", "1")}
    again = Program.parse(program.serialize())
    assert again.desc.op_sources == program.desc.op_sources == again.desc.clone().op_sources
    with pytest.raises(MissingPackError, match=r'with oprack-snake 0.1: `pip install "oprack-snake>=0.1"` adds'):
        oprack.Executor(manager=PackManager([], environ={})).prepare(again, oprack.Scope())


@pytest.mark.parametrize("name", ["a; rm -rf ~", "--index-url=http://x", "a\x1b[2J", "", "x" * 200, "\udcff"])
def test_a_model_can_not_put_words_into_the_command(name):
    """Whoever made the model chose them, and who loads it may copy the command into a shell."""
    program = Program()
    program.global_block().append_op("snaky", {"X": ["x"]}, {"Out": ["y"]})
    message = framework_pb2.ProgramDesc.FromString(program.serialize())
    message.op_sources.add(distribution=name.encode("utf-8", "surrogateescape"), version=b"1", op_types=[b"snaky"])
    message.op_sources.add(distribution=b"oprack-b", version=b"1' ; x", op_types=[b"other"])
    again = ProgramDesc.parse(message.SerializeToString())
    assert again.op_sources == {"other": ("oprack-b", "")}


def test_what_this_process_defines_beside_a_pack_is_refused():
    manager = PackManager([own_pack()], environ={})
    with pytest.raises(DuplicateOpError, match=r"'scaled' is defined by scaling .* and by here .*OPRACK_BLOCK=scaling"):
        manager.register_operator(Scaled)
    np.testing.assert_array_equal(run(manager, X), 2 * X)


def test_ops_that_two_packs_define_are_listed_in_one_order_in_every_process():
    names = [f"shared_{letter}" for letter in "qwertyuiop"]
    ops = [new_class(name.title(), (OpDef,), {"type": name}) for name in names]

    def shared(register):
        for op in ops:
            register.op(op)

    manager = PackManager([entry_point("one", oprack_ops=shared), entry_point("two", oprack_ops=shared)], environ={})
    assert [p.conflicts for p in manager.packs()[1:]] == [tuple(sorted(names))] * 2


def test_a_name_that_a_kernel_does_not_have_is_no_matter_of_shapes():
    def slip(X):
        return X * facter  # noqa: F821

    slip.__name__ = "slip"
    with pytest.raises(OpError, match=r"NameError: name 'facter'") as caught:
        run(PackManager([own_pack(kernel("scaled")(slip))], environ={}), X)
    line = slip.__code__.co_firstlineno + 1
    assert f"No input causes that: mend the code at {__file__}:{line}, in slip." in str(caught.value)
    assert "Check the shapes" not in str(caught.value)

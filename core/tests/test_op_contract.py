"""The op contract: definitions, facets in any order, attributes."""

from __future__ import annotations

import dataclasses
import keyword
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.desc import OpDesc
from oprack.errors import (
    AlreadyExistsError,
    AttributeValueError,
    DefinitionError,
    InvalidArgumentError,
    NotDifferentiableError,
)
from oprack.kernel import kernel
from oprack.op import (
    REQUIRED,
    Attr,
    DefaultGradOpMaker,
    GradOp,
    GradOpMaker,
    IdentityFacet,
    InferShapeFacet,
    InplaceFacet,
    Input,
    NoNeedBufferVarsFacet,
    OpDef,
    OpInfo,
    OpMaker,
    Output,
    build_op_info,
    empty_grad,
    param_name,
    slot_name,
)
from oprack.op.desc_rules import grad_op_descs, make_grad_ops
from oprack.op.facets import FACETS, facet_kind
from oprack.op.info import set_facets
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import Scope
from oprack.types import AttrType


class Mul(OpDef, type="mul2"):
    """Out = X * Y."""

    X = Input("Left.")
    Y = Input("Right.", dispensable=True)
    Out = Output("Product.")
    axis = Attr(-1, "Axis.").between(-1, 5)
    mode = Attr("fast", "Mode.").in_set(["fast", "exact"])
    sizes = Attr([], "Sizes.", type=AttrType.INTS).each(lambda v: v > 0, "positive").size(0, 2)
    lambda_ = Attr(0.5, "A name that Python can't spell.")
    needed = Attr(REQUIRED, "No default.", type=AttrType.LONG)


def checker() -> Any:
    return build_op_info(Mul, "here").checker


def test_slots_attributes_and_names_come_from_the_class() -> None:
    proto = build_op_info(Mul, "here").proto
    assert [*proto.inputs] == ["X", "Y"] and proto.inputs["Y"].dispensable
    assert [*proto.attrs] == ["axis", "mode", "sizes", "lambda", "needed"]
    assert proto.attrs["lambda"].param == "lambda_"
    assert proto.doc == "Out = X * Y."
    assert (param_name("Out@GRAD@GRAD"), slot_name("Out_grad_grad", grads=True)) == ("Out_grad_grad", "Out@GRAD@GRAD")
    assert slot_name("Out_grad", grads=False) == "Out_grad"
    for odd in ("F1-Score", "x=print(1), y", "1st", "a\nb", "a\0", "class"):  # code and stubs are written with them
        assert param_name(odd).isidentifier() and not keyword.iskeyword(param_name(odd))


def test_defaults_are_filled_and_copied() -> None:
    first = checker().check({"needed": 1})
    assert first == {"axis": -1, "mode": "fast", "sizes": [], "lambda": 0.5, "needed": 1}
    first["sizes"].append(3)
    assert checker().check({"needed": 1})["sizes"] == []
    assert checker().check({"needed": 1, "op_role": 2})["op_role"] == 2


@pytest.mark.parametrize(
    ("attrs", "text"),
    [
        ({}, r"attribute 'needed' is missing; expected an int of 64 bits"),
        ({"needed": 1, "axis": 6}, r"attribute 'axis' is 6; expected a value between -1 and 5"),
        ({"needed": 1, "axis": 1.5}, r"attribute 'axis' is 1.5; expected an int of 32 bits"),
        ({"needed": 1, "axis": 2**40}, r"expected an int of 32 bits"),
        ({"needed": 1, "mode": "slow"}, r"attribute 'mode' is 'slow'; expected one of 'fast', 'exact'"),
        ({"needed": 1, "sizes": [1, -2]}, r"expected a list whose elements are each positive"),
        ({"needed": 1, "sizes": [1]}, r"expected a list of 0 or 2 elements"),
        ({"needed": 1, "sizes": 3}, r"expected a list of ints of 32 bits"),
        ({"needed": "1"}, r"op mul2: attribute 'needed' is '1'"),
    ],
)
def test_attributes_are_checked(attrs: dict[str, Any], text: str) -> None:
    with pytest.raises(AttributeValueError, match=text):
        checker().check(attrs)


def test_bounds_of_a_float_are_compared_as_its_32_bits_hold_them() -> None:
    class Bounds(OpDef, type="bounds"):
        """Floats of 32 bits, one of 64 bits, and a list."""

        epsilon = Attr(0.0, "Closed.").between(0.1, 0.3)
        ratio = Attr(1.0, "Open.").greater_than(0.1)
        choice = Attr(0.1, "One of a set.").in_set([0.1, 0.7])
        wide = Attr(0.1, "64 bits.", type=AttrType.FLOAT64).at_least(0.1)
        sizes = Attr([], "A list.", type=AttrType.FLOATS).each(lambda v: v > 0, "greater than 0")

    def accepts(**attrs: Any) -> bool:
        try:
            build_op_info(Bounds, "here").checker.check(attrs)
        except AttributeValueError:
            return False
        return True

    # float32 of 0.1, of 0.3, and the next one
    low, high, above = 0.10000000149011612, 0.30000001192092896, 0.3000000417232513
    assert all(accepts(epsilon=v) for v in (0.1, low, 0.3, high))
    assert not accepts(epsilon=above)
    assert not accepts(epsilon=0.09999999403953552)
    assert not accepts(ratio=0.1) and not accepts(ratio=low) and accepts(ratio=0.10000000894069672)
    assert accepts(choice=0.1) and accepts(choice=low) and accepts(choice=0.699999988079071) and not accepts(choice=0.2)
    assert accepts(wide=low) and accepts(wide=0.1) and not accepts(wide=0.09999999999999999)
    assert accepts(sizes=[0.1]) and not accepts(sizes=[1e-60])  # which 32 bits hold as 0


def test_a_variable_is_refused_where_the_attribute_takes_no_tensor() -> None:
    with pytest.raises(AttributeValueError, match="attribute 'axis' is given as variable 'a'"):
        checker().check({"needed": 1, "axis": "a"}, ["axis"])


def test_a_member_that_is_no_facet_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"definition of op 'odd': infer_shapes = .* is no facet"):

        class Odd(OpDef, type="odd"):
            def infer_shapes(ctx: Any) -> None:
                """A typo."""


def test_inplace_and_no_need_buffer_must_name_slots() -> None:
    class A(OpDef, type="a"):
        X = Input("x")
        Out = Output("o")
        inplace = {"Z": "Out"}

    with pytest.raises(DefinitionError, match="inplace pairs 'Z' with 'Out'"):
        build_op_info(A, "here")


def test_an_attribute_needs_a_type_when_its_default_does_not_tell() -> None:
    with pytest.raises(DefinitionError, match=r"pass it, for example type=AttrType\.INTS"):
        Attr([], "Empty.")


class Maker(OpMaker):
    """Documentation."""

    X = Input("x")
    Out = Output("o")
    scale = Attr(1.0, "s")


class Shape(InferShapeFacet):
    def __call__(self, ctx: Any) -> None:
        ctx.set_dim("Out", ctx.dim("X"))


class Inplace(InplaceFacet):
    pairs = {"X": "Out"}


class NoNeed(NoNeedBufferVarsFacet):
    slots = ("X",)


class Grad(GradOpMaker):
    def __call__(self, fwd: Any) -> GradOp:
        return GradOp("g", Out_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X"))


class Identity(IdentityFacet):
    def __call__(self, ctx: Any) -> bool:
        return ctx.attr("scale") == 1


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0), (2, 0, 4, 1, 5, 3)])
def test_facets_are_told_by_their_base_class_in_any_order(order: tuple[int, ...]) -> None:
    facets = (Maker, Shape, Inplace, NoNeed, Grad(), Identity)
    info = OpInfo("thing")
    set_facets(info, [facets[i] for i in order], "pack-a")
    assert info.proto.doc == "Documentation." and [*info.proto.attrs] == ["scale"]
    assert info.inplace == {"X": "Out"} and info.no_need_buffer_vars == ("X",)
    assert isinstance(info.infer_shape, Shape) and isinstance(info.grad_op_maker, Grad)
    assert isinstance(info.identity, Identity) and set(info.owners.values()) == {"pack-a"}


def test_a_second_setter_is_an_error_that_names_both() -> None:
    info = OpInfo("thing")
    set_facets(info, [Maker, Shape], "pack-a")
    with pytest.raises(AlreadyExistsError, match="op thing: facet 'infer_shape' is set by pack-b, but pack-a"):
        set_facets(info, [Shape], "pack-b")


def test_something_that_is_no_facet_is_refused() -> None:
    with pytest.raises(DefinitionError, match="is no facet; expected classes derived from OpMaker") as error:
        set_facets(OpInfo("thing"), [int], "pack-a")
    assert all(kind.base is None or kind.base.__name__ in str(error.value) for kind in FACETS)


def test_every_facet_is_a_field_of_op_info_and_a_member_of_definitions() -> None:
    fields = {field.name for field in dataclasses.fields(OpInfo)}
    assert {kind.name for kind in FACETS} == fields - {"type", "checker", "owners"}
    members = {n for n in vars(OpDef) if not n.startswith("_")} - {"op_type", "grads", "declared", "members"}
    assert {kind.member for kind in FACETS if kind.member} == members - {"grad_op_maker"}
    for kind in FACETS:
        assert kind.base is None or facet_kind(kind.base) is kind


def _info(maker: Any) -> OpInfo:
    info = OpInfo("thing")
    set_facets(info, [Maker], "pack-a")
    if maker is not None:
        info.set_facet("grad_op_maker", maker, "pack-a")
    return info


def test_kinds_of_grad_makers() -> None:
    op = OpDesc("thing", {"X": "x"}, {"Out": "y"}, {"scale": 3.0})
    assert make_grad_ops(_info(empty_grad), op) == []
    (default,) = make_grad_ops(_info(DefaultGradOpMaker()), op)
    assert default.type == "thing_grad" and set(default.inputs) == {"X", "Out", "Out@GRAD"}
    assert default.attrs == {"scale": 3.0} and set(default.outputs) == {"X@GRAD"}
    with pytest.raises(NotDifferentiableError, match=r"op thing \(pack pack-a\) has no gradient"):
        make_grad_ops(_info(None), op)


def test_gradient_ops_as_descs() -> None:
    op = OpDesc("thing", {"X": "x"}, {"Out": "y"}, {"scale": 3.0})
    (desc,) = grad_op_descs(_info(Grad()), op)
    assert (desc.inputs, desc.outputs) == ({"Out@GRAD": ["y@GRAD"]}, {"X@GRAD": ["x@GRAD"]})
    # nothing is left when nobody wants the gradient
    assert grad_op_descs(_info(Grad()), op, no_grad=["x"]) == []


def test_a_grad_maker_that_names_no_slot_is_told() -> None:
    info = _info(None)
    info.set_facet("grad_op_maker", lambda fwd: GradOp("g", A=fwd.input("Nope")), "pack-a")
    with pytest.raises(DefinitionError, match=r"grad maker of thing: input\('Nope'\), but its inputs are X"):
        make_grad_ops(info, OpDesc("thing", {"X": "x"}, {"Out": "y"}))


class Pair(OpDef, type="pair"):
    """The sum of all X, of which there are two or more."""

    X = Input("Tensors of one shape.", duplicable=True, minimum=2)
    Out = Output("Their shape.")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", ctx.dim("X"))


@pytest.mark.parametrize("prepared", [False, True])
def test_a_list_has_at_least_its_minimum(rack: PackManager, prepared: bool) -> None:
    rack.register_op(Pair)
    rack.register_kernel(kernel("pair")(lambda X: sum(X)))
    ones = oprack.to_tensor(np.ones(2))
    np.testing.assert_array_equal(oprack.functional.pair([ones, ones]).numpy(), [2.0, 2.0])
    with pytest.raises(InvalidArgumentError, match="op pair: input X has 1 variable; expected at least 2"):
        oprack.functional.pair([ones])
    program = Program()
    block = program.global_block()
    for name in "xy":
        block.create_var(name, dtype="float64", shape=[2])
    block.append_op("pair", {"X": ["x"]}, {"Out": "y"})
    with pytest.raises(InvalidArgumentError, match="expected at least 2"):
        Executor(prepared=prepared).run(program, {"x": np.ones(2)}, ["y"], Scope())

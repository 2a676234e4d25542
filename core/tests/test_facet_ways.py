"""Every facet by every way of registering it: each counts, and programs, plans and eager calls agree.

A class that can't be read alike everywhere is refused; facets that several packs bring for one op are settled.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.errors import AlreadyExistsError, DefinitionError, OprackError
from oprack.kernel import kernel
from oprack.op import (
    Attr,
    ExpectedKernelTypeFacet,
    GradOp,
    GradOpMaker,
    IdentityFacet,
    InferShapeFacet,
    InferVarTypeFacet,
    InplaceFacet,
    Input,
    KernelTypeForVarFacet,
    NoNeedBufferVarsFacet,
    OpDef,
    OpFacets,
    OpMaker,
    OpVersion,
    Output,
    SbpFacet,
    op,
)
from oprack.op.facets import FACETS, MEMBERS
from oprack.op.sbp import factors
from oprack.packs import PackWarning
from oprack.packs.checks import orphans
from oprack.packs.manager import PackManager, use_manager
from oprack.program import Program
from oprack.runtime import Executor, OperatorBase, OperatorWithKernel
from oprack.tensor import Scope
from plain_packs import manager_of


class Maker(OpMaker):
    """$$Out = scale \\cdot X$$, as many bits as Out has; Like is read for its shape."""

    X = Input("Any tensor.")
    Like = Input("Its shape.", dispensable=True)
    Out = Output("As X.")
    scale = Attr(2.0, "Factor.")


def shape(ctx: Any) -> None:
    ctx.set_dim("Out", ctx.dim("X"))


def var_type(ctx: Any) -> None:
    ctx.set_dtype("Out", "float64")


def grad(fwd: Any) -> GradOp:
    # three times the true gradient, so that it can be told from any other
    return GradOp(fwd.type, X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs={"scale": 3 * fwd.attrs["scale"]})


def kernel_type(ctx: Any) -> Any:
    return ctx.kernel_type(dtype="float64")


def type_for_var(slot: str, actual: Any, expected: Any) -> Any:
    return expected


def identity(ctx: Any) -> bool:
    return bool(ctx.attr("scale") == 1.0)


def sbp(ctx: Any) -> Any:
    return factors({"X": "a"}, {"Out": "a"})


RULES: dict[str, tuple[Callable[..., Any], type]] = {
    "infer_shape": (shape, InferShapeFacet),
    "infer_var_type": (var_type, InferVarTypeFacet),
    "make_grad": (grad, GradOpMaker),
    "expected_kernel_type": (kernel_type, ExpectedKernelTypeFacet),
    "kernel_type_for_var": (type_for_var, KernelTypeForVarFacet),
    "identity": (identity, IdentityFacet),
    "sbp": (sbp, SbpFacet),
}
VALUES: dict[str, tuple[Any, Any]] = {
    "inplace": ({"X": "Out"}, (InplaceFacet, "pairs")),
    "no_need_buffer_vars": (("Like",), (NoNeedBufferVarsFacet, "slots")),
    "versions": (OpVersion("ways").checkpoint("a", ("new_attr", "scale", 2.0)), None),
}


def with_self(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args: rule(*args)


def facet_classes() -> list[Any]:
    found: list[Any] = [
        type(base.__name__ + "Of", (base,), {"__call__": with_self(rule)}) for rule, base in RULES.values()
    ]
    for value, (base, member) in ((v, of) for v, of in VALUES.values() if of is not None):
        found.append(type(base.__name__ + "Of", (base,), {member: value}))
    return [*found, VALUES["versions"][0]]


def members(*, bound: bool) -> dict[str, Any]:
    rules = {name: with_self(rule) if bound else rule for name, (rule, _) in RULES.items()}
    return rules | {name: value for name, (value, _) in VALUES.items()}


def by_definition(manager: PackManager) -> None:
    slots = {n: v for n, v in vars(Maker).items() if isinstance(v, Input | Output | Attr)}
    cls: Any = type(OpDef)("Ways", (OpDef,), {**slots, **members(bound=False)}, type="ways")
    manager.register_operator(cls)


def by_facet_classes(manager: PackManager) -> None:
    manager.register_operator("ways", *facet_classes(), Maker)


def by_facet_instances(manager: PackManager) -> None:
    manager.register_operator("ways", Maker(), *(f() if isinstance(f, type) else f for f in reversed(facet_classes())))


def by_operator_class(manager: PackManager) -> None:
    manager.register_operator("ways", type("WaysOp", (OperatorWithKernel,), members(bound=True)), Maker)


def by_mixin(manager: PackManager) -> None:
    mixin = type("Rules", (), members(bound=True))
    manager.register_operator("ways", Maker, type("WaysOp", (mixin, OperatorWithKernel), {}))


def by_op_facets(manager: PackManager) -> None:
    manager.register_operator(OpFacets("ways", Maker, *facet_classes()))


def by_builder(manager: PackManager) -> None:
    made = op("ways").input("X").optional_input("Like").output("Out").attr("scale", 2.0)
    made = made.infer_shape(shape).infer_dtype(var_type).grad(grad).expected_kernel_type(kernel_type).sbp(sbp)
    made = made.kernel_type_for_var(type_for_var).identity(identity)
    made = made.inplace({"X": "Out"}).no_need_buffer("Like").versions(VALUES["versions"][0])
    manager.register_operator(made.definition())


WAYS = (
    by_definition,
    by_facet_classes,
    by_facet_instances,
    by_operator_class,
    by_mixin,
    by_op_facets,
    by_builder,
)


@kernel("ways", dtypes={"float64"})
def ways(X: Any, *, scale: float) -> Any:
    return X * scale


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def registered(request: Any, rack: PackManager) -> PackManager:
    request.param(rack)
    rack.register_kernel(ways)
    return rack


def test_every_facet_is_there(registered: PackManager) -> None:
    info = registered.op_info("ways")
    assert {kind.name for kind in FACETS} - {"creator"} <= info.owners.keys()
    assert info.inplace == {"X": "Out"} and tuple(info.no_need_buffer_vars) == ("Like",) and info.version == 1
    assert set(RULES) | set(VALUES) == set(MEMBERS)


@pytest.mark.parametrize("prepared", [False, True])
def test_rules_count_in_programs(registered: PackManager, prepared: bool) -> None:
    program, x = Program(), np.arange(6, dtype="float32").reshape(2, 3)
    with oprack.program_guard(program, Program()):
        y = oprack.functional.ways(oprack.layers.data("x", [-1, 3], dtype="float32"))
    assert (y.shape, y.dtype) == ((-1, 3), "float64")  # infer_shape, infer_var_type
    exe, scope = Executor(prepared=prepared), Scope()
    for _ in range(3):  # recorded, compiled, again: the input is cast for the kernel each time
        (out,) = exe.run(program, {"x": x}, [y.name], scope)
        assert out.dtype == np.float64
        np.testing.assert_array_equal(out, 2.0 * x)


def test_rules_count_eagerly(registered: PackManager) -> None:
    for _ in range(3):
        x = oprack.to_tensor(np.ones((2, 2), "float64"), requires_grad=True)
        y = oprack.functional.ways(x)
        np.testing.assert_array_equal(y.numpy(), 2.0 * np.ones((2, 2)))
        y.backward(oprack.to_tensor(np.ones((2, 2))))
        np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 2), 6.0))  # make_grad, 3 * scale


# What no fast path would ask is refused ------------------------------------------------------------------------------
REFUSED = [
    ("run_impl", "OperatorWithKernel does with every op"),
    ("run", "OperatorWithKernel does with every op"),
    ("choose_kernel", "OperatorWithKernel does with every op"),
    ("runs_itself", "derive from OperatorBase"),
    ("_compute", "OperatorWithKernel does with every op"),
    ("InferShape", "did you mean infer_shape?"),
    ("GetExpectedKernelType", "did you mean expected_kernel_type?"),
    ("get_expected_kernel_type", "did you mean expected_kernel_type?"),
    ("GetKernelTypeForVar", "did you mean kernel_type_for_var?"),
    ("infer_shapes", "did you mean infer_shape"),
    ("table", "is no rule of an op; expected one of infer_shape"),
]


@pytest.mark.parametrize(("name", "text"), REFUSED)
def test_members_that_nobody_asks_are_refused(name: str, text: str) -> None:
    def method(self: Any, *args: Any) -> None: ...

    with pytest.raises(DefinitionError, match=re.escape(text)):
        type("Odd", (OperatorWithKernel,), {name: method})
    mixin = type("Mixin", (), {name: method})
    with pytest.raises(DefinitionError, match=re.escape(text)):
        type("Odd", (mixin, OperatorWithKernel), {})


@pytest.mark.parametrize("name", ["InferShape", "infer_shapes", "GetExpectedKernelType"])
def test_misspelt_rules_are_refused_everywhere(name: str) -> None:
    for base in (OperatorBase, OpDef):
        with pytest.raises(DefinitionError, match="did you mean"):
            type(base)("Odd", (base,), {name: lambda self, ctx: None})
    with pytest.raises(DefinitionError, match=rf"does not say its infer_shape.*__call__.*got {name}"):
        OpFacets("odd", type("Odd", (InferShapeFacet,), {name: lambda self, ctx: None}))


@pytest.mark.parametrize("kind", [k for k in FACETS if k.base is not None and k.own], ids=lambda k: k.name)
def test_a_facet_that_says_nothing_is_refused(kind: Any, rack: PackManager) -> None:
    for facet in (kind.base, type("Empty", (kind.base,), {})):
        with pytest.raises(DefinitionError, match=f"does not say its {kind.name}"):
            rack.register_operator("odd", Maker, facet)


def test_rules_with_other_arguments_are_refused(rack: PackManager) -> None:
    class Odd(OperatorWithKernel):
        def infer_shape(ctx: Any) -> None: ...

    with pytest.raises(
        DefinitionError, match=r"infer_shape can't be called with \(ctx\).*def infer_shape\(self, ctx\)"
    ):
        rack.register_operator("odd", Odd, Maker)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("inplace", ("X", "Out"), "expected a dict of slots"),
        ("inplace", {"X": "Y"}, "pairs 'X' with 'Y'"),
        ("no_need_buffer_vars", "X", "expected names of slots"),
        ("versions", 3, "expected OpVersion('odd')"),
        ("versions", OpVersion("other"), "its versions are those of op 'other'"),
    ],
)
def test_values_that_do_not_fit_are_refused(rack: PackManager, name: str, value: Any, text: str) -> None:
    slots = {n: v for n, v in vars(Maker).items() if isinstance(v, Input | Output | Attr)}
    with pytest.raises(DefinitionError, match=re.escape(text)):
        rack.register_operator(type(OpDef)("Odd", (OpDef,), {**slots, "infer_shape": shape, name: value}, type="odd"))
    operator = type("OddOp", (OperatorWithKernel,), {"infer_shape": with_self(shape), name: value})
    with pytest.raises(DefinitionError, match=re.escape(text)):
        rack.register_operator("odd", operator, Maker)


def test_slots_of_a_base_maker_count(rack: PackManager) -> None:
    class More(Maker):
        Mask = Output("As X.", intermediate=True)

    rack.register_operator("more", More, by_name("infer_shape"))
    proto = rack.op_info("more").proto
    assert (list(proto.inputs), list(proto.outputs), list(proto.attrs)) == (["X", "Like"], ["Out", "Mask"], ["scale"])
    with pytest.raises(DefinitionError, match="is no slot and no attribute"):
        rack.register_operator("odd", type("Odd", (Maker,), {"Make": lambda self: None}), by_name("infer_shape"))


# Several packs --------------------------------------------------------------------------------------------------------
def by_name(member: str) -> Any:
    if member in RULES:
        rule, base = RULES[member]
        return type("Rule", (base,), {"__call__": with_self(rule)})
    value, of = VALUES[member]
    return value if of is None else type("Value", (of[0],), {of[1]: value})


FACET_OF = {kind.member: kind.name for kind in FACETS if kind.member}


@pytest.mark.parametrize("member", MEMBERS)
def test_a_facet_of_two_packs_is_settled_and_stops_no_op(pack: Any, member: str) -> None:
    name = FACET_OF[member]
    facets = [f for m in dict.fromkeys(["infer_shape", member]) for f in [by_name(m)]]
    own = pack("own", oprack_ops=lambda register: register.operator("ways", Maker, *facets))
    rogue = pack("rogue", oprack_ops=lambda register: register.operator("ways", by_name(member)))
    for packs in itertools.permutations((own, rogue)):
        manager = manager_of(*packs)
        text = (
            rf"facet '{name} of op ways' is brought by own .* and by rogue .*: that of own is used, which brings the op"
        )
        with pytest.warns(PackWarning, match=text):
            info = manager.op_info("ways")
        assert info.owners[name] == "oprack-own"
        manager = manager_of(*packs, OPRACK_PREFER="rogue")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert manager.op_info("ways").owners[name] == "oprack-rogue"


def test_of_strangers_the_one_whose_name_sorts_first_is_used(pack: Any) -> None:
    own = pack("own", oprack_ops=lambda register: register.operator("ways", Maker, by_name("infer_shape")))
    b, c = (pack(n, oprack_ops=lambda register: register.operator("ways", by_name("make_grad"))) for n in "bc")
    with pytest.warns(PackWarning, match="that of b is used, whose name sorts first"):
        assert manager_of(own, c, b).op_info("ways").owners["grad_op_maker"] == "oprack-b"


def test_a_stranger_that_is_wrong_is_left_out(pack: Any) -> None:
    bad = type("Bad", (InplaceFacet,), {"pairs": {"X": "Nothing"}})
    own = pack("own", oprack_ops=lambda register: register.operator("ways", Maker, by_name("infer_shape")))
    rogue = pack("rogue", oprack_ops=lambda register: register.operator("ways", bad, by_name("make_grad")))
    manager = manager_of(own, rogue)
    with pytest.warns(PackWarning, match=r"rogue .*: what it adds to op ways is left out.*'Nothing'"):
        assert set(manager.op_info("ways").owners.values()) == {"oprack-own"}


def test_an_operator_of_a_stranger_does_not_replace_kernels(pack: Any) -> None:
    class Runs(OperatorBase):
        """Would run itself."""

    def brings(register: Any) -> None:
        register.operator("ways", Maker, by_name("infer_shape"))
        register.kernel(ways)

    own = pack("own", oprack_ops=brings)
    rogue = pack("rogue", oprack_ops=lambda register: register.operator("ways", Runs))
    manager = manager_of(own, rogue)
    with pytest.warns(PackWarning, match="facet 'creator of op ways'"):
        assert manager.operator_class("ways") is None
    assert manager_of(own, rogue, OPRACK_PREFER="rogue").operator_class("ways") is Runs
    alone = pack("alone", oprack_ops=lambda register: register.operator("ways", Maker, by_name("infer_shape")))
    assert manager_of(alone, rogue).operator_class("ways") is Runs  # nobody else says how it runs


def test_in_this_process_a_facet_that_is_set_is_refused(pack: Any) -> None:
    own = pack("own", oprack_ops=lambda register: register.operator("ways", Maker, by_name("infer_shape")))
    manager = manager_of(own)
    with pytest.raises(AlreadyExistsError, match="'infer_shape' is set by this process, but oprack-own already set it"):
        manager.register_operator("ways", by_name("infer_shape"))
    assert manager.op_info("ways").owners["infer_shape"] == "oprack-own"


def test_what_is_brought_for_no_op_is_told(pack: Any) -> None:
    def brings(register: Any) -> None:
        register.operator("wayss", by_name("make_grad"))
        register.op_version(OpVersion("gone"))

    own = pack("own", oprack_ops=lambda register: register.operator("ways", Maker, by_name("infer_shape")))
    told = orphans(manager_of(own, pack("rogue", oprack_ops=brings)))
    assert told == [
        "rogue (oprack-rogue 1.0) brings facets of op 'wayss', which no pack in use defines (did you mean ways?)",
        "rogue (oprack-rogue 1.0) brings versions of op 'gone', which no pack in use defines",
    ]


# Who raised -----------------------------------------------------------------------------------------------------------
class Fails(RuntimeError):
    """Raised by code of a pack."""


def failing(*args: Any) -> Any:
    return helper_that_fails()


def helper_that_fails() -> Any:
    raise Fails("no good")


HELPER = rf"{re.escape(__file__)}:{helper_that_fails.__code__.co_firstlineno + 1}"


@kernel("ways", priority=99)
def failing_kernel(X: Any, *, scale: float) -> Any:
    if X.flat[0] < 0:
        helper_that_fails()
    return X * scale


def racks(pack: Any, brings: Callable[[Any], None], op_brings: Callable[[Any], None] = lambda register: None) -> Any:
    """A manager of the pack own, which has the op with a kernel, and of rogue."""

    def own(register: Any) -> None:
        register.operator("ways", Maker, by_name("infer_shape"))
        register.kernel(ways)
        op_brings(register)

    return manager_of(pack("own", oprack_ops=own), pack("rogue", oprack_ops=brings))


@pytest.mark.parametrize("path", ["reference", "plan", "eager", "first eager call"])
def test_an_error_of_a_kernel_names_the_pack_of_the_kernel(pack: Any, path: str) -> None:
    good, bad = np.ones((2, 2)), np.full((2, 2), -1.0)
    with use_manager(racks(pack, lambda register: register.kernel(failing_kernel))):
        text = rf"op ways .* failed: Fails: no good\nraised in kernel .*failing_kernel of oprack-rogue \({HELPER}\)\n"
        if "eager" in path:
            calls = [good, good, bad] if path == "eager" else [bad]
            with pytest.raises(oprack.errors.OpError, match=text):
                for x in calls:
                    oprack.functional.ways(oprack.to_tensor(x))
            return
        program = Program()
        with oprack.program_guard(program, Program()):
            y = oprack.functional.ways(oprack.layers.data("x", [-1, 2], dtype="float64"))
        exe, scope = Executor(prepared=path == "plan"), Scope()
        for _ in range(2):
            exe.run(program, {"x": good}, [y.name], scope)
        with pytest.raises(oprack.errors.OpError, match=text):
            exe.run(program, {"x": bad}, [y.name], scope)


@pytest.mark.parametrize("member", ["infer_var_type", "make_grad", "expected_kernel_type", "kernel_type_for_var"])
@pytest.mark.parametrize("error", [Fails, oprack.errors.InvalidArgumentError])
def test_an_error_of_a_facet_names_the_pack_of_the_facet(pack: Any, member: str, error: Any) -> None:
    def rule(self: Any, *args: Any) -> Any:
        raise error("no good")

    def own(register: Any) -> None:
        if member == "kernel_type_for_var":
            register.operator("ways", by_name("expected_kernel_type"))

    facet, program = type("Rule", (RULES[member][1],), {"__call__": rule}), Program()
    with (
        use_manager(racks(pack, lambda register: register.operator("ways", facet), own)),
        pytest.raises(OprackError, match=rf"{member} of oprack-rogue \(.*test_facet_ways.py:\d+\)"),
    ):
        if member == "infer_var_type":
            with oprack.program_guard(program, Program()):
                oprack.functional.ways(oprack.layers.data("x", [1], dtype="float64"))
        elif member == "make_grad":
            oprack.functional.ways(oprack.to_tensor([1.0, 2.0], "float64", requires_grad=True)).backward(
                oprack.to_tensor([1.0, 1.0])
            )
        else:
            oprack.functional.ways(oprack.to_tensor(np.ones((2, 2), "float32")))


# Histories ------------------------------------------------------------------------------------------------------------
def test_a_change_of_no_kind_is_refused() -> None:
    with pytest.raises(OprackError, match=r"expected \(kind, name, value\).*new_attr"):
        OpVersion("ways").checkpoint("x", ("new_atr", "scale", 2.0))
    history = OpVersion("ways").checkpoint("x", ("new_attr", "scal", 2.0), ("delete_attr", "gone", None))
    assert history.unknown_names(["scale"], ["X"], ["Out"]) == ["new_attr 'scal' (did you mean scale?)"]

"""The kernel contract: signatures, the choice by OpKernelType, predicate and priority, and its explanation."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from oprack.errors import DefinitionError, DuplicateKernelError, KernelNotFoundError
from oprack.kernel import (
    PLAIN_KERNELS,
    KernelQuery,
    OpKernelMap,
    OpKernelType,
    attr,
    bind_signature,
    dtype,
    has_input,
    kernel,
    kind,
)
from oprack.kernel.decorator import KernelSpec, kernel_specs
from oprack.op import Attr, Input, OpDef, OpInfo, Output, build_op_info
from oprack.tensor import LoDTensorArray, SelectedRows


class Thing(OpDef, type="thing"):
    """A thing."""

    X = Input("x")
    L = Input("list", duplicable=True, dispensable=True)
    Y = Input("y", dispensable=True)
    Out = Output("o")
    groups = Attr(1, "groups")


INFO: OpInfo = build_op_info(Thing, "here")
FLOAT32 = OpKernelType("cpu", "float32")


def kernels(*functions: Any) -> OpKernelMap:
    found = OpKernelMap(INFO.proto)
    for i, function in enumerate(functions):
        for spec in function.__oprack_kernels__:
            found.add(spec, f"pack-{i}")
    return found


def query(**attrs: Any) -> KernelQuery:
    return KernelQuery("thing", attrs, {"X": "float32"}, {"X": "LoDTensor"})


def chosen(found: OpKernelMap, expected: OpKernelType = FLOAT32, q: KernelQuery | None = None) -> str:
    spec: KernelSpec = found.choose(expected, q or query()).spec
    return spec.function.__name__


@kernel("thing", dtypes={"float32", "float64"})
def plain(X: Any) -> Any: ...


@kernel("thing", dtypes={"float32"}, priority=1, when=attr("groups") == 1)
def one_group(X: Any, *, groups: int) -> Any: ...


@kernel("thing", dtypes={"float32"}, library="onednn", priority=5)
def library(X: Any) -> Any: ...


@kernel("thing", dtypes={"float32"})
def rows(X: SelectedRows) -> Any: ...


@kernel("thing", place="cuda")
def gpu(X: Any, *, xp: Any) -> Any: ...


def test_priority_then_predicate_then_dtype() -> None:
    found = kernels(plain, one_group)
    assert chosen(found, q=query(groups=1)) == "one_group"
    assert chosen(found, q=query(groups=2)) == "plain"
    assert chosen(found, OpKernelType("cpu", "float64"), query(groups=1)) == "plain"


def test_plain_rules_take_the_kernel_of_the_ops_own_pack() -> None:
    def taken(owner: str, *functions: Any) -> str:
        found = OpKernelMap(INFO.proto, owner)
        for i, function in enumerate(functions):
            found.add(function.__oprack_kernels__[0], f"pack-{i}")
        spec: KernelSpec = found.choose(FLOAT32, query(groups=1), rules=PLAIN_KERNELS).spec
        return spec.function.__name__

    assert taken("pack-0", plain, one_group, library) == "plain", "the one of another pack has a higher priority"
    assert taken("none of these", plain, one_group, library) == "one_group"
    assert taken("none of these", library) == "library", "where there is no other"


def test_library_can_be_forced_or_switched_off() -> None:
    found = kernels(plain, library)
    assert chosen(found) == "library"
    assert found.choose(FLOAT32, query(), excluded=["onednn"]).spec.function is plain
    assert chosen(found, OpKernelType("cpu", "float32", "onednn")) == "library"


def test_the_kind_of_variable_selects() -> None:
    found = kernels(plain, rows)
    assert chosen(found) == "plain"
    selected = KernelQuery("thing", {}, {"X": "float32"}, {"X": "SelectedRows"})
    assert chosen(found, q=selected) == "rows"


def test_no_kernel_lists_every_candidate_with_its_reason() -> None:
    found = kernels(plain, one_group, library, rows, gpu)
    with pytest.raises(KernelNotFoundError) as error:
        found.choose(OpKernelType("cpu", "int32"), KernelQuery("thing", {}, {"X": "int32"}, {"X": "LoDTensor"}))
    text = str(error.value)
    assert "op thing: no kernel for (cpu, int32) with X: LoDTensor int32" in text
    assert text.count("of pack-") == 5
    assert "dtype int32 is not among float32, float64" in text
    assert "runs at cuda, not at cpu" in text
    with pytest.raises(KernelNotFoundError, match="needs attribute groups == 1"):
        kernels(one_group).choose(FLOAT32, query(groups=3))
    with pytest.raises(KernelNotFoundError, match="X is a LoDTensor, but this kernel takes a SelectedRows"):
        kernels(rows).choose(FLOAT32, query())


def test_a_tie_is_an_error_that_names_both() -> None:
    @kernel("thing", dtypes={"float64", "int32"})
    def twin(X: Any) -> Any: ...

    with pytest.raises(DuplicateKernelError, match=r"dtype float64.*plain of pack-0.*twin of pack-1.*higher priority"):
        kernels(plain, twin)


def test_predicates_compose_and_print() -> None:
    p = (
        (attr("groups") == 1)
        & (dtype("X").isin("float32", "float64") | ~has_input("Y"))
        & (kind("X") != "SelectedRows")
    )
    assert p.text == (
        "attribute groups == 1 and (dtype of X in ('float32', 'float64') or not (Y is given)) and kind of X != "
        "'SelectedRows'"
    )
    assert p(query(groups=1)) and not p(query(groups=2))
    assert (attr("groups") < 3)(query(groups=2)) and (attr("groups") > 3)(query(groups=4))


def test_signature_binds_slots_attributes_and_what_is_injected() -> None:
    def f(X: SelectedRows, L: list[Any], Y: Any = None, *, groups: int, out: Any, ctx: Any, xp: Any) -> Any: ...

    bound = bind_signature(f, INFO.proto)
    assert bound.inputs == (("X", False, "SelectedRows"), ("L", True, ""), ("Y", False, ""))
    assert bound.attrs == (("groups", "groups"),) and bound.injected == ("out", "ctx", "xp")


def _wrong_slot(Z: Any) -> Any: ...
def _wrong_attr(X: Any, *, size: int) -> Any: ...
def _no_default(X: Any, Y: Any) -> Any: ...
def _starred(*X: Any) -> Any: ...


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (_wrong_slot, "positional parameter 'Z' is no input slot; expected one of X, L, Y"),
        (_wrong_attr, "keyword-only parameter 'size' is no attribute; expected one of groups, or out, ctx, xp"),
        (_no_default, "'Y' may be absent .* write Y=None"),
        (_starred, r"\*X is not allowed"),
    ],
)
def test_signatures_that_do_not_match_the_op(function: Any, text: str) -> None:
    with pytest.raises(DefinitionError, match=text):
        bind_signature(function, INFO.proto)


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"dtypes has \['float31'\]"):
        kernel("thing", dtypes={"float31"})


def test_one_function_may_be_declared_more_than_once_at_a_place() -> None:
    @kernel("thing", dtypes={"int32"})
    @kernel("thing", dtypes={"float64"}, priority=3)
    def twofold(X: Any) -> Any: ...

    found = kernels(plain, twofold)
    for dtype_, name in (("int32", "twofold"), ("float64", "twofold"), ("float32", "plain")):
        assert chosen(found, OpKernelType("cpu", dtype_)) == name
    (spec, _) = twofold.__oprack_kernels__
    count = len(found)
    found.add(spec, "pack-1")  # reached by a second way
    assert len(found) == count


def test_a_function_that_several_ops_share_is_declared_by_the_module_of_each() -> None:
    modules = {name: ModuleType(name) for name in ("shared", "conv2d", "conv3d", "user")}
    sources = {
        "shared": "from oprack.kernel import kernel\n@kernel('conv1d')\ndef convolution(Input, Filter): ...",
        "conv2d": "conv2d = kernel('conv2d')(convolution)",
        "conv3d": "conv3d = also_known_as = kernel('conv3d', place=('cpu', 'cuda'))(convolution)",
    }
    for name, source in sources.items():
        vars(modules[name]).update(vars(modules["shared"]), __name__=name)
        exec(source, vars(modules[name]))
    vars(modules["user"]).update(vars(modules["conv3d"]), __name__="user")  # as `from conv3d import *` does
    declared = {name: [(s.op_type, s.place) for s in kernel_specs(module)] for name, module in modules.items()}
    assert declared == {
        "shared": [("conv1d", "cpu")],
        "conv2d": [("conv2d", "cpu")],
        "conv3d": [("conv3d", "cpu"), ("conv3d", "cuda")],
        "user": [],
    }
    (spec,) = kernel_specs(modules["conv2d"])
    assert spec.function is modules["shared"].convolution and spec.name == "shared.convolution"


def test_a_view_needs_something_to_be_a_view_of() -> None:
    @kernel("thing", view=True)
    def nothing(*, groups: int) -> Any: ...

    with pytest.raises(DefinitionError, match=r"nothing .*: view=True, but no parameter to be a view of"):
        kernels(nothing)


def test_predicates_compare_both_ways() -> None:
    for p, text, yes, no in (
        (attr("groups") <= 2, "attribute groups <= 2", 2, 3),
        (attr("groups") >= 2, "attribute groups >= 2", 2, 1),
        (attr("groups") != 2, "attribute groups != 2", 1, 2),
    ):
        assert p.text == text and p(query(groups=yes)) and not p(query(groups=no))
    assert repr(attr("groups") > 1) == "<predicate: attribute groups > 1>"


def test_kernels_of_different_containers_do_not_tie_where_the_input_is_absent() -> None:
    @kernel("thing", dtypes={"float32"})
    def array(X: LoDTensorArray) -> Any: ...

    absent = KernelQuery("thing", {}, {"Y": "float32"}, {"Y": "LoDTensor"})
    assert chosen(kernels(plain, rows, array), q=absent) == "plain", "a container of nothing prefers no kernel"

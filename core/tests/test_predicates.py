"""Predicates: what they compare, what they say, and that nothing falls back to Python's own answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from oprack.errors import DefinitionError
from oprack.kernel import (
    KernelQuery,
    OpKernelMap,
    Predicate,
    attr,
    dtype,
    has_input,
    kernel,
    kind,
    place,
    predicate,
)
from oprack.op import Attr, Input, OpDef, Output, build_op_info


class Pair(OpDef, type="pair"):
    """Two inputs."""

    X = Input("x")
    Y = Input("y", dispensable=True)
    Out = Output("o")
    groups = Attr(1, "groups")


def query(x: str = "float32", y: str | None = "float32", at: str = "cpu", **attrs: Any) -> KernelQuery:
    dtypes = {"X": x} | ({} if y is None else {"Y": y})
    return KernelQuery("pair", attrs, dtypes, dict.fromkeys(dtypes, "LoDTensor"), at)


def test_two_values_of_the_query_compare() -> None:
    same = dtype("X") == dtype("Y")
    assert same.text == "dtype of X == dtype of Y"
    assert same(query()) and not same(query(y="int32"))
    other = kind("X") != dtype("X")
    assert other.text == "kind of X != dtype of X" and other(query())


def test_a_predicate_compares_with_truth_and_with_a_predicate() -> None:
    given = has_input("Y")
    assert (given == True)(query()) and not (given == True)(query(y=None))  # noqa: E712
    assert (given == False)(query(y=None)) and (given != True)(query(y=None))  # noqa: E712
    both = given == (attr("groups") == 2)
    assert both.text == "((Y is given) == (attribute groups == 2))"
    assert both(query(groups=2)) and both(query(y=None, groups=1)) and not both(query(groups=1))
    differ = given != (attr("groups") == 2)
    assert differ(query(groups=1)) and not differ(query(groups=2))


def test_the_place_is_a_term() -> None:
    on_gpu = place() == "cuda"
    assert on_gpu.text == "place == 'cuda'" and on_gpu(query(at="cuda")) and not on_gpu(query())


def test_isin_takes_values_or_one_list_of_them() -> None:
    for p in (dtype("X").isin("float32", "float64"), dtype("X").isin(["float32", "float64"])):
        assert p.text == "dtype of X in ('float32', 'float64')"
        assert p(query()) and not p(query("int32"))


@pytest.mark.parametrize(
    "build",
    [
        lambda: has_input("X") and has_input("Y"),
        lambda: has_input("X") or has_input("Y"),
        lambda: not has_input("X"),
        lambda: bool(attr("groups")),
        lambda: 1 < attr("groups") < 3,
        lambda: attr("groups") in (1, 2),
        lambda: 1 in attr("groups"),
        lambda: has_input("X") & True,
        lambda: has_input("X") | attr("groups"),
        lambda: attr("groups") & has_input("X"),
        lambda: attr("groups") == 1 & has_input("X"),
        lambda: ~attr("groups"),
        lambda: has_input("X") == 1,
        lambda: has_input("X") == None,  # noqa: E711
        lambda: has_input("X") < has_input("Y"),
        lambda: attr("groups") == has_input("X"),
        lambda: attr("groups").isin(1, attr("groups")),
        lambda: predicate(lambda q: True),
        lambda: predicate("  "),
        lambda: kernel("pair", when=attr("groups")),
        lambda: kernel("pair", when=True),
    ],
)
def test_what_python_would_answer_by_itself_is_refused(build: Callable[[], Any]) -> None:
    with pytest.raises(DefinitionError) as error:
        build()
    assert any(advice in str(error.value) for advice in ("& |", "expected", "compare it first"))


def test_values_have_no_hash_and_predicates_have() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(attr("groups"))
    p = has_input("X")
    assert {p: 1}[p] == 1


def test_an_order_with_an_absent_value_says_so() -> None:
    with pytest.raises(DefinitionError, match=r"`attribute groups < 3` can't compare None with 3"):
        (attr("groups") < 3)(query())


@pytest.mark.parametrize(
    ("when", "text"),
    [
        (attr("gruops") == 1, "attribute 'gruops', which the op does not have; expected one of groups"),
        (has_input("Z") & has_input("X"), "input 'Z', which the op does not have; expected one of X, Y"),
        (~(kind("A") == "SelectedRows"), "input 'A'"),
        (dtype("X") == dtype("B"), "input 'B'"),
    ],
)
def test_a_predicate_of_a_misspelt_name_is_refused(when: Predicate, text: str) -> None:
    @kernel("pair", when=when)
    def misspelt(X: Any) -> Any: ...

    found = OpKernelMap(build_op_info(Pair, "here").proto)
    with pytest.raises(DefinitionError, match=text):
        found.add(misspelt.__oprack_kernels__[0], "here")

"""Rules of splitting: names of dims, and the signatures that follow from them."""

import math

import numpy as np
import pytest
from oprack.errors import InvalidArgumentError
from oprack.op.sbp import (
    Sbp,
    SbpContext,
    binary,
    broadcast,
    factors,
    leading,
    merged_names,
    partial_sum,
    product_names,
    sbp_of,
    split,
)


def test_names_of_a_product_give_its_four_signatures():
    found = factors({"X": "m k", "Y": "k n"}, {"Out": "m n"}, linear=(("X",), ("Y",)))
    rows = [(s.inputs["X"], s.inputs["Y"], s.outputs["Out"]) for s in found]
    assert rows == [
        (split(0), broadcast, split(0)),
        (split(1), split(0), partial_sum),
        (broadcast, split(1), split(1)),
        (partial_sum, broadcast, partial_sum),
        (broadcast, partial_sum, partial_sum),
    ]


def test_a_name_that_a_tensor_has_twice_is_not_split():
    assert factors({"X": "a a"}, {"Out": "a"}) == []


@pytest.mark.parametrize(
    ("source", "target", "pairs"),
    [
        ((6, 4), (24,), {(0, 0): 6}),
        ((6, 4), (6, 2, 2), {(0, 0): 0, (1, 1): 2}),
        ((8, 2, 3), (8, 6), {(0, 0): 0, (1, 1): 2}),
        ((2, 3, 4), (2, 12), {(0, 0): 0, (1, 1): 3}),
        ((1, 5), (5,), {(1, 0): 0}),
        ((9, 4), (4, 9), {}),
        ((8, 16), (8, 4, 4), {(0, 0): 0, (1, 1): 4}),
    ],
)
def test_a_reshape_keeps_the_dims_that_stay_first_of_their_group(source, target, pairs):
    before, after, shared = merged_names(source, target)
    named = {n: (before.index(n), after.index(n)) for n in before if n}
    assert {at: shared.get(n, 0) for n, at in named.items()} == pairs
    # Wherever both have a name, splitting the one splits the other alike.
    whole = np.arange(math.prod(source))
    for name, (i, j) in named.items():
        for ranks in range(2, source[i] + 1):
            if source[i] % ranks or shared.get(name, 0) % ranks:
                continue
            parts = zip(
                np.split(whole.reshape(source), ranks, i), np.split(whole.reshape(target), ranks, j), strict=True
            )
            assert all(np.array_equal(a.ravel(), b.ravel()) for a, b in parts)


def test_a_dim_that_is_broadcast_stays_whole():
    context = SbpContext("add", {"axis": -1}, {"X": [(4, 3)], "Y": [(1, 3)], "Out": [(4, 3)]})
    by_dim = {s.inputs["X"]: s.inputs["Y"] for s in binary()(context)}
    assert by_dim == {split(0): broadcast, split(1): split(1)}


def test_axis_aligns_the_smaller_input():
    context = SbpContext("add", {"axis": 0}, {"X": [(4, 3)], "Y": [(4,)], "Out": [(4, 3)]})
    by_dim = {s.inputs["X"]: s.inputs["Y"] for s in binary()(context)}
    assert by_dim == {split(0): split(0), split(1): broadcast}


def test_rows_are_the_dims_that_all_share():
    context = SbpContext("norm", {}, {"X": [(4, 3, 2)], "Y": [(4, 3, 2)], "Mean": [(4,)]})
    found = leading(("X",), ("Y", "Mean"), 2)(context)
    assert [s.inputs["X"] for s in found] == [split(0)]


def test_batch_dims_of_a_product_may_be_broadcast():
    x, y, out = product_names((5, 1, 2, 3), (4, 3, 6), (5, 4, 2, 6), False, False)
    assert (x, y, out) == (["a", None, "m", "k"], ["b", "k", "n"], ["a", "b", "m", "n"])


@pytest.mark.parametrize("text", ["S(0)", "split(0)"])
def test_text_of_a_split(text):
    assert sbp_of(text) == split(0) == Sbp("S", 0)


@pytest.mark.parametrize("value", ["S(-1)", "s0", None, 3])
def test_what_is_no_sbp_is_refused(value):
    with pytest.raises(InvalidArgumentError, match=r"expected oprack\.parallel\.split"):
        sbp_of(value)

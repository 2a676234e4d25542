"""write_to_array, read_from_array and lod_array_length."""

from __future__ import annotations

import contextlib

import pytest
from oprack import Profiler
from oprack.errors import OprackError
from oprack.types import VarType


def test_arrays_grow_and_are_overwritten(builder):
    b = builder().arrays([(0, 5), (2, 7), (0, 6), (1, 1)])
    b.op("lod_array_length", X="array", Out="length")
    b.op("read_from_array", X="array", I="i1", Out="read")
    array, length, read = b.run({}, ["array", "length", "read"])
    assert [t.array[0, 0] for t in array] == [6, 1, 7]
    assert length.array.tolist() == [3] and length.dtype == "int64"
    assert read.array.tolist() == [[7], [7]]


def test_what_was_written_does_not_follow_the_variable(builder):
    b = builder().arrays([(0, 5)])
    b.op("scale", X="v0", Out="v0", scale=2.0)
    array, v = b.run({}, ["array", "v0"])
    assert array[0].array[0, 0] == 5 and v.array[0, 0] == 10


def test_a_place_that_was_never_written_is_refused(builder):
    b = builder().arrays([(2, 7)])
    b.constant("zero", 0, VarType.INT64)
    b.op("read_from_array", X="array", I="zero", Out="read")
    with pytest.raises(OprackError, match="place 0 of array 'array' was never written"):
        b.run({}, ["read"])


@pytest.mark.parametrize("watch", [contextlib.nullcontext, Profiler])
def test_as_a_gradient_it_is_zero(builder, watch):
    b = builder().arrays([(2, 7)])
    b.constant("zero", 0, VarType.INT64)
    b.op("read_from_array", X="array", I="zero", X_W="v0", Out="read")  # the values of v0 are freed before it
    with watch():
        assert b.run({}, ["read"])[0].array.tolist() == [[0], [0]]


@pytest.mark.parametrize("place", [-1, 1 << 40])
def test_a_wild_place_is_refused(builder, place):
    with pytest.raises(OprackError, match="I is"):
        builder().arrays([(place, 1)]).run({}, ["array"])

"""Ops that make little of much move to where what they read is made."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.testing import PassCase, check_passes

PASS = "onednn_read_early"
MEAN = {"global_pooling": True, "pooling_type": "avg", "ksize": [1, 1]}


def normal(*shape):
    return np.random.default_rng(shape).standard_normal(shape, dtype=np.float32)


def conv(x, y, w):
    return ("conv2d", {"Input": x, "Filter": w}, {"Output": y}, {})


def relu(x, y):
    return ("relu", {"X": x}, {"Out": y})


def made(ops, fetch, **params):
    optimized = check_passes(PassCase({"x": normal(2, 16, 5, 6)}, params, ops, fetch), PASS)
    return [op.output_arg_names()[0] for op in optimized.program.blocks[0].ops]


def test_laterals_of_a_pyramid():
    ops = [relu("x", "a"), conv("a", "b", "w"), conv("b", "c", "w"), conv("c", "d", "w"), conv("a", "e", "v")]
    ops += [conv("b", "f", "v"), ("pool2d", {"X": "b"}, {"Out": "g"}, MEAN)]
    order = made(ops, ["d", "e", "f", "g"], w=normal(16, 16, 1, 1), v=normal(4, 16, 1, 1))
    assert order == ["a", "e", "b", "g", "f", "c", "d"]


def test_one_after_the_other():
    ops = [relu("x", "a"), conv("a", "b", "w"), conv("b", "c", "w"), conv("a", "d", "v"), conv("d", "e", "u")]
    order = made(ops, ["c", "e"], w=normal(16, 16, 1, 1), v=normal(4, 16, 1, 1), u=normal(2, 4, 1, 1))
    assert order == ["a", "d", "e", "b", "c"]


@pytest.mark.parametrize("outputs", [16, 20])
def test_what_makes_no_less_stays(outputs):
    ops = [relu("x", "a"), conv("a", "b", "w"), conv("b", "c", "w"), conv("a", "d", "v")]
    assert made(ops, ["c", "d"], w=normal(16, 16, 1, 1), v=normal(outputs, 16, 1, 1)) == ["a", "b", "c", "d"]


def test_what_is_written_again_stays():
    """In place: b is another value before, and a is another one behind."""
    w, v = normal(16, 16, 1, 1), normal(4, 16, 1, 1)
    ops = [relu("x", "a"), conv("a", "b", "w"), relu("b", "c"), conv("a", "b", "v")]
    assert made(ops, ["b", "c"], w=w, v=v) == ["a", "b", "c", "b"]
    ops = [relu("x", "a"), relu("a", "c"), conv("a", "b", "v"), conv("c", "a", "w")]
    assert made(ops, ["a", "b"], w=w, v=v) == ["a", "c", "b", "a"]


def test_an_input_of_the_program_is_not_waited_for():
    ops = [relu("x", "a"), conv("x", "b", "v")]
    assert made(ops, ["a", "b"], v=normal(4, 16, 1, 1)) == ["a", "b"]

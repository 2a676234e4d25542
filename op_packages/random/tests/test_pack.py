"""The random pack against the conformance suite, and the distributions that it draws from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oprack import Executor
from oprack.desc import OpDesc
from oprack.errors import OprackError
from oprack.program import Program
from oprack.testing import Conformance, Limitation, collect_cases
from oprack.types import AttrType

DRAWN = "a draw, of which no gradient flows back: test_draws.py"


class TestRandom(Conformance):
    pack = "random"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    limitations = (
        Limitation("class_center_sample.0000", "a fixed seed draws other classes here: the generator is Philox"),
        Limitation("legacy.random_crop.0000", "a fixed seed draws other places here: the generator is Philox"),
    )
    cases = collect_cases(Path(__file__).parent / "cases")
    without_gradients = {
        **dict.fromkeys(("exponential", "gaussian_inplace", "poisson", "uniform_random_inplace"), DRAWN),
        "gumbel_softmax": "a draw; a record of its gradient op is in cases/gumbel_softmax.py",
        "shuffle_batch": "a draw; a record of its gradient op is in cases/shuffle_batch.py",
    }


def draw(op, attrs, feed=None, executor=None, runs=1):
    """Out of `op`, from each run."""
    program = Program()
    block = program.global_block()
    for name in feed or {}:
        block.create_var(name)
    block.create_var("out")
    types = {k: AttrType.LONGS for k in attrs if k == "shape"}
    block.append_op(OpDesc(op, {k: [k] for k in feed or {}}, {"Out": ["out"]}, attrs, types))
    executor = executor or Executor(seed=3)
    return [executor.run(program, feed or {}, ["out"])[0] for _ in range(runs)]


@pytest.mark.parametrize(
    ("op", "attrs", "mean", "std", "low", "high"),
    [
        ("gaussian_random", {"mean": 1.0, "std": 2.0}, 1, 2, -np.inf, np.inf),
        ("uniform_random", {"min": -1.0, "max": 3.0}, 1, 4 / 12**0.5, -1, 3),
        # the standard deviation of a normal distribution cut at two of its own
        ("truncated_gaussian_random", {"mean": 1.0, "std": 2.0}, 1, 2 * 0.8796, -3, 5),
        ("randint", {"low": 0, "high": 10}, 4.5, 8.25**0.5, 0, 9),
    ],
)
def test_moments(op, attrs, mean, std, low, high):
    (values,) = draw(op, {"shape": [200, 200], **attrs})
    assert values.shape == (200, 200)
    assert abs(values.mean() - mean) < 5 * std / 200
    assert abs(values.std() - std) < 0.02 * std
    assert low <= values.min() and values.max() <= high


def test_same_seed_same_numbers_and_each_run_its_own():
    attrs = {"shape": [5]}
    first, second = draw("uniform_random", attrs, runs=2)
    again = draw("uniform_random", attrs, runs=2)
    assert np.array_equal([first, second], again)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, draw("uniform_random", attrs, executor=Executor(seed=4))[0])


def test_own_seed_gives_the_same_draw_on_every_run():
    first, second = draw("uniform_random", {"shape": [5], "seed": 7}, runs=2)
    assert np.array_equal(first, second)


def test_uniform_random_puts_the_diagonal():
    attrs = {"shape": [4, 5], "min": 0.0, "max": 0.5, "diag_num": 3, "diag_step": 5, "diag_val": 9.0}
    (values,) = draw("uniform_random", attrs)
    assert np.flatnonzero(values == 9).tolist() == [0, 6, 12]


def test_randperm_is_a_permutation():
    (values,) = draw("randperm", {"n": 50})
    assert values.tolist() != list(range(50)) and sorted(values.tolist()) == list(range(50))


def test_bernoulli_follows_its_probabilities():
    p = np.repeat([[0.0], [0.3], [1.0]], 20000, axis=1).astype(np.float32)
    (values,) = draw("bernoulli", {}, {"X": p})
    assert values[0].max() == 0 and values[2].min() == 1 and abs(values[1].mean() - 0.3) < 0.02


def test_multinomial_with_replacement_follows_the_weights():
    weights = np.array([[1, 0, 3], [2, 2, 0]], np.float32)
    (drawn,) = draw("multinomial", {"num_samples": 20000, "replacement": True}, {"X": weights})
    shares = [np.bincount(row, minlength=3) / 20000 for row in drawn]
    assert np.allclose(shares, weights / weights.sum(axis=1, keepdims=True), atol=0.02)
    assert shares[0][1] == shares[1][2] == 0


def test_multinomial_without_replacement_draws_each_class_once():
    weights = np.tile(np.array([5, 1, 1, 0], np.float32), (4000, 1))
    (drawn,) = draw("multinomial", {"num_samples": 3}, {"X": weights})
    assert (np.sort(drawn, axis=1) == [0, 1, 2]).all()
    assert abs((drawn[:, 0] == 0).mean() - 5 / 7) < 0.03


@pytest.mark.parametrize("weights", [[1, -1, 1], [0, 0, 0], [np.inf, 1, 1], [1, 0, 0]])
def test_multinomial_refuses_weights(weights):
    with pytest.raises(OprackError, match="op multinomial"):
        draw("multinomial", {"num_samples": 2}, {"X": np.array(weights, np.float32)})


def test_bernoulli_refuses_what_is_no_probability():
    with pytest.raises(OprackError, match="probabilities"):
        draw("bernoulli", {}, {"X": np.array([0.5, 1.5], np.float32)})

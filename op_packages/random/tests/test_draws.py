"""The distributions of draws in the shape of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack.errors import OprackError

N = 40000


def tensor(values: Any, dtype: str = "float64") -> Any:
    """A tensor of these numbers."""
    return oprack.to_tensor(np.asarray(values, dtype))


@pytest.mark.parametrize(
    ("draw", "mean", "std"),
    [
        (lambda x: F.exponential(x, lambda_=2.0), 0.5, 0.5),
        (lambda x: F.gaussian_inplace(x, mean=3.0, std=2.0), 3, 2),
        (lambda x: F.uniform_random_inplace(x, min=1.0, max=4.0), 2.5, 3 / 12**0.5),
        (F.poisson, 4, 2),
    ],
    ids=["exponential", "gaussian", "uniform", "poisson"],
)
def test_moments(draw: Any, mean: float, std: float) -> None:
    values = draw(tensor(np.full(N, 4.0))).numpy()
    assert abs(values.mean() - mean) < 5 * std / N**0.5
    assert abs(values.std() - std) < 0.03 * std


def test_draws_pass_a_gradient_of_zero_back() -> None:
    for draw in (F.exponential, F.gaussian_inplace, F.uniform_random_inplace, F.poisson):
        x = oprack.to_tensor(np.ones(3), requires_grad=True)
        draw(x).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.zeros(3))


def test_dirichlet_has_its_means_and_tiny_weights() -> None:
    shares = F.dirichlet(tensor(np.tile([1.0, 2, 5], (N, 1)))).numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares.mean(axis=0), np.array([1, 2, 5]) / 8, atol=0.01)
    tiny = F.dirichlet(tensor(np.full((100, 3), 1e-4))).numpy()
    np.testing.assert_allclose(tiny.sum(axis=1), 1)
    with pytest.raises(OprackError, match="finite numbers above 0"):
        F.dirichlet(tensor([0.0, 1]))


def test_gumbel_softmax_chooses_as_softmax_weighs() -> None:
    logits = tensor(np.tile(np.log([1.0, 3, 6]), (N, 1)))
    chosen = F.gumbel_softmax(logits, hard=True).numpy()
    assert set(np.unique(chosen)) == {0.0, 1.0} and (chosen.sum(axis=1) == 1).all()
    np.testing.assert_allclose(chosen.mean(axis=0), [0.1, 0.3, 0.6], atol=0.02)
    soft = F.gumbel_softmax(logits, temperature=0.5).numpy()
    np.testing.assert_allclose(soft.sum(axis=1), 1)
    greatest = np.bincount(soft.argmax(axis=1), minlength=3) / N
    np.testing.assert_allclose(greatest, [0.1, 0.3, 0.6], atol=0.02)


def test_sampling_id_follows_the_rows() -> None:
    ids = F.sampling_id(tensor(np.tile([0.2, 0.0, 0.8], (N, 1)))).numpy()
    np.testing.assert_allclose(np.bincount(ids, minlength=3) / N, [0.2, 0, 0.8], atol=0.02)
    np.testing.assert_array_equal(F.sampling_id(tensor(np.tile([0.2, 0.3, 0.5], (9, 1))), min=0.3, max=0.4).numpy(), 1)


def test_shuffle_batch_moves_whole_rows() -> None:
    x = oprack.to_tensor(np.arange(60.0).reshape(4, 5, 3), requires_grad=True)
    seed = tensor([3], "int64")
    out, places, following = F.shuffle_batch(x, seed)
    rows = out.numpy().reshape(20, 3)
    np.testing.assert_array_equal(rows[places.numpy()], np.arange(60.0).reshape(20, 3))
    assert not np.array_equal(places.numpy(), np.arange(20)) and following.numpy()[0] > 0
    np.testing.assert_array_equal(F.shuffle_batch(x, seed)[1].numpy(), places.numpy())
    (out * out).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * x.numpy())


def test_seed_is_what_is_asked_for_or_drawn() -> None:
    assert F.seed(seed=5).numpy().tolist() == [5]
    assert F.seed().numpy()[0] > 0

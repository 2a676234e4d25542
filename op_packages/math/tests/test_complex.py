"""Complex numbers from end to end: fed, kept as parameters, saved, read, cast, differentiated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oprack
import pytest
from oprack import Executor, Program, Scope, inference, layers, program_guard
from oprack import functional as F
from oprack.io import save_inference_model

RNG = np.random.default_rng(3)


def draw(*shape: int, dtype: str = "complex64") -> np.ndarray:
    """Complex numbers with normal parts."""
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_program_with_a_complex_parameter_is_saved_and_served(dtype: str, tmp_path: Path) -> None:
    x, w = draw(2, 3, dtype=dtype), draw(2, 3, dtype=dtype)
    main, scope = Program(), Scope()
    with program_guard(main, Program()):
        fed = layers.data("x", [None, 3], dtype)
        weight = layers.create_parameter([2, 3], dtype, name="w")
        out = layers.real(layers.conj(fed * weight))
    assert out.dtype == {"complex64": "float32", "complex128": "float64"}[dtype]
    scope.var("w").set(oprack.LoDTensor(w))
    (got,) = Executor().run(main, {"x": x}, [out], scope)
    np.testing.assert_allclose(got, (x * w).real, rtol=1e-5)
    save_inference_model(tmp_path / "model", main, ["x"], [out.name], scope)
    (file,) = tmp_path.glob("model*/*.pdmodel") if (tmp_path / "model").is_dir() else tmp_path.glob("*.pdmodel")
    predictor = inference.create_predictor(inference.Config(str(file), str(file.with_suffix(".pdiparams"))))
    predictor.get_input_handle("x").copy_from_cpu(x)
    predictor.run()
    served = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
    assert served.dtype == got.dtype
    np.testing.assert_array_equal(served, got)


def test_states_and_feeds_keep_complex_dtypes(tmp_path: Path) -> None:
    x = draw(2, 2)
    oprack.io.save_state(tmp_path / "state.npz", {"w": oprack.to_tensor(x)})
    assert oprack.io.load_state(tmp_path / "state.npz")["w"].dtype == "complex64"
    np.testing.assert_array_equal(F.cast(oprack.to_tensor(x), in_dtype=23, out_dtype=24).numpy(), x.astype(complex))
    np.testing.assert_array_equal(F.cast(oprack.to_tensor(x), in_dtype=23, out_dtype=5).numpy(), x.real)


@pytest.mark.parametrize(
    ("function", "by_x", "by_y"),
    [
        (F.elementwise_add, lambda g, x, y: g, lambda g, x, y: g),
        (F.elementwise_sub, lambda g, x, y: g, lambda g, x, y: -g),
        (F.elementwise_mul, lambda g, x, y: g * y.conj(), lambda g, x, y: g * x.conj()),
        (F.elementwise_div, lambda g, x, y: g / y.conj(), lambda g, x, y: -g * (x / y / y).conj()),
    ],
)
def test_gradients_are_those_of_the_conjugate(function, by_x, by_y) -> None:
    """Paddle's convention: the gradient is twice the derivative by the conjugate, so that descent goes against it."""
    values = draw(2, 3), draw(2, 3)
    x, y = (oprack.to_tensor(v, requires_grad=True) for v in values)
    g = draw(2, 3)
    function(x, y).backward(oprack.to_tensor(g))
    np.testing.assert_allclose(x.grad.numpy(), by_x(g, *values), rtol=1e-4)
    np.testing.assert_allclose(y.grad.numpy(), by_y(g, *values), rtol=1e-4)


def test_descent_on_the_squared_size_of_a_complex_number_reaches_zero() -> None:
    z = oprack.to_tensor(draw(4), requires_grad=True)
    for _ in range(60):
        loss = F.reduce_sum(F.real(z * F.conj(z)), reduce_all=True)
        (g,) = oprack.grad(loss, [z])
        z = oprack.to_tensor(z.numpy() - 0.1 * g.numpy(), requires_grad=True)
    assert np.abs(z.numpy()).max() < 1e-4


def test_the_second_gradients_of_parts_are_the_parts() -> None:
    x = oprack.to_tensor(draw(3), requires_grad=True)
    for part, want in ((F.real, lambda v: v.real), (F.imag, lambda v: v.imag)):
        weights = oprack.to_tensor(np.ones(3, np.float32), requires_grad=True)
        (g,) = oprack.grad(part(x), [x], [weights], create_graph=True)
        probe = draw(3)
        (back,) = oprack.grad(g, [weights], [oprack.to_tensor(probe)])
        np.testing.assert_array_equal(back.numpy(), want(probe))


def test_a_matrix_without_pairs_is_refused() -> None:
    with pytest.raises(oprack.errors.InvalidArgumentError, match=r"as_complex: X has shape \[2, 3\]; expected a last"):
        F.as_complex(oprack.to_tensor(np.zeros((2, 3), np.float32)))

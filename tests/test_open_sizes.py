"""Sizes of open dims in captured functions: ops compute with them, and Python does not get the number -1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import InputSpec, nn, to_tensor
from oprack import functional as F
from oprack.errors import PreconditionNotMetError
from oprack.inference import Config, create_predictor

SIZES = (1, 2, 5, 7)
FN = nn.functional
FORMS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda x: x.sum(axis=0) / x.shape[0],
    "product": lambda x: x * x.shape[0],
    "slice": lambda x: x[: x.shape[0] - 1],
    "expand": lambda x: oprack.expand(x[0:1], [x.shape[0], 3]),
    "method expand": lambda x: x[0:1].expand([x.shape[0], 3]),
    "expand_as": lambda x: x[0:1].expand_as(x),
    "reshape": lambda x: x.reshape([x.shape[0], 3, 1]),
    "reshape of two": lambda x: x.T.reshape([x.shape[1], x.shape[0]]),
    "product of sizes": lambda x: x.reshape([x.shape[0] * x.shape[1]]),
    "op with an attribute": lambda x: F.reshape2(x, shape=[3, x.shape[0]]),
    "full": lambda x: oprack.full([x.shape[0], 2], 2.5),
    "zeros": lambda x: oprack.zeros(x.shape) + x,
    "ones of one size": lambda x: oprack.ones(x.shape[0]),
    "arange": lambda x: oprack.arange(x.shape[0]),
    "arange from": lambda x: oprack.arange(1, x.shape[0] + 1, 1),
    "linspace": lambda x: oprack.linspace(0.0, 1.0, x.shape[0]),
    "tile": lambda x: x.tile([x.shape[0], 1]),
    "last row": lambda x: x[x.shape[0] - 1],
    "middle row": lambda x: x[x.shape[0] // 2],
    "square root": lambda x: x / x.shape[0] ** 0.5,
    "true division": lambda x: x * (1 / x.shape[0]),
    "number first": lambda x: (10 - x.shape[0]) / x,
    "modulo": lambda x: x + x.shape[0] % 2,
    "negative": lambda x: x * -x.shape[0],
    "float": lambda x: x * (x.shape[0] * 0.5),
    "size": lambda x: x / x.size,
    "half": lambda x: (x.astype("float16") * x.shape[0]).astype("float32"),
    "integers": lambda x: x.astype("int64") * x.shape[0],
    "compared with a tensor": lambda x: (x > x.shape[0]).astype("float32"),
    "of a result": lambda x: (h := x @ x.T) / h.shape[1],
    "used twice": lambda x: (x * x.shape[0])[: x.shape[0]] + x.shape[0],
    "variance": lambda x: x.var(axis=0, unbiased=False),
    "shape is that of itself": lambda x: x * 2.0 if x.shape == x.shape else x,
    "as the spec writes it": lambda x: x if x.shape[1] == 3 and len(x.shape) == 2 else -x,
}


@pytest.mark.parametrize("name", FORMS)
def test_programs_and_jit_compute_as_eager_calls(name: str, tmp_path: Path) -> None:
    f = FORMS[name]
    traced = oprack.to_program(f, [InputSpec([None, 3], "float32", "x")])
    path = str(tmp_path / "model")
    oprack.io.save_inference_model(path, traced.program, traced.feed_names, traced.fetch_names, traced.scope)
    predictor = create_predictor(Config(f"{path}.pdmodel", f"{path}.pdiparams"))
    fast = oprack.jit(f, specs=[InputSpec([None, 3])])
    for n in (*SIZES, *SIZES):
        a = np.arange(1, 3 * n + 1, dtype=np.float32).reshape(n, 3)
        expected = f(to_tensor(a))
        for found in (predictor.run([a])[0], fast(a).numpy()):
            assert found.shape == expected.shape
            assert found.dtype == expected.numpy().dtype
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2.0 if x.shape[0] > 2 else x,
        lambda x: x * 2.0 if x.shape[0] == 4 else x,
        lambda x: x * 2.0 if x.shape[0] else x,
        lambda x: x * 2.0 if x.shape == (4, 3) else x,
        lambda x: sum((x[i] for i in range(x.shape[0])), x[0]),
        lambda x: x * int(x.shape[0]),
        lambda x: x * float(x.shape[0] - 1),
        lambda x: x * max(x.shape[0], 2),
        lambda x: x * [1.0, 2.0, 3.0][x.shape[0]],
        lambda x: x * len(range(x.shape[0])),
        lambda x: x * np.ones(3)[: x.shape[0]].sum(),
        lambda x: oprack.eye(x.shape[0]),
        lambda x: oprack.chunk(x, 2)[0],
    ],
)
def test_what_python_would_have_to_know_is_refused(f: Any) -> None:
    for capture in (oprack.to_program, lambda f, specs: oprack.jit(f, specs=specs)(np.ones((4, 3), np.float32))):
        with pytest.raises(
            PreconditionNotMetError, match=r"is open \(None in an InputSpec or .*give a dim that is None"
        ):
            capture(f, [InputSpec([None, 3])])


def test_gradients_flow_beside_open_sizes() -> None:
    def f(x: Any, w: Any) -> Any:
        return ((x * w).sum(axis=0) / x.shape[0]).sum()

    fast = oprack.jit(f, specs=[InputSpec([None, 3]), InputSpec([3])])
    for n in SIZES:
        a = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
        w = to_tensor(np.ones(3, np.float32), requires_grad=True)
        fast(to_tensor(a), w).backward()
        np.testing.assert_allclose(w.grad.numpy(), a.mean(axis=0), rtol=1e-6)


def test_functions_of_packs_with_open_sizes() -> None:
    nets = {
        "interpolate": (lambda x: FN.interpolate(x, scale_factor=2), [None, 3, None, None]),
        "adaptive pool": (lambda x: FN.adaptive_avg_pool2d(x, 1), [None, 3, None, None]),
        "inner": (lambda x: oprack.inner(x[:, 0, 0], x[:, 0, 0]), [None, 3, 4, None]),
        "cross entropy": (lambda x: FN.cross_entropy(x[:, :, 0, 0], x[:, :, 0, 0].argmax(1)), [None, 3, 4, 4]),
        "mse": (lambda x: FN.mse_loss(x, x * 2.0), [None, None, None, None]),
        "where": (lambda x: oprack.where(x > 0, x, -x), [None, None, 4, 4]),
        "std": (lambda x: oprack.std(x, axis=0), [None, 3, 4, 4]),
    }
    rng = np.random.default_rng(0)
    for name, (f, spec) in nets.items():
        fast = oprack.jit(f, specs=[InputSpec(spec)])
        for n in (2, 3, 5):
            x = to_tensor(rng.standard_normal((n, 3, 4, 4)).astype(np.float32))
            np.testing.assert_allclose(fast(x).numpy(), f(x).numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "numbers",
    [
        *((5,), (2, 7), (7, 2, -2), (0,), (0, 1, 0.25), (0.0, 0.3, 0.1), (1.0, 0.0, -0.3)),
        *((3, 3), (2.0,), (0, 10, 3)),
    ],
)
def test_the_length_of_what_is_made_of_numbers_is_known(numbers: tuple[float, ...]) -> None:
    def f(x: Any) -> Any:
        n = oprack.arange(*numbers).shape[0]
        m = oprack.linspace(0, 1, 4).shape[0]
        return x * 2.0 if n + m > 4 else x

    x = to_tensor([1.0])
    jitted = oprack.jit(f)
    assert jitted(x).item() == f(x).item()
    made = oprack.jit(lambda x: (oprack.arange(*numbers), oprack.zeros([oprack.arange(*numbers).shape[0]]) + x))
    np.testing.assert_allclose(made(x)[0].numpy(), oprack.arange(*numbers).numpy())
    assert made(x)[1].shape == oprack.arange(*numbers).shape


def test_a_static_program_keeps_the_number() -> None:
    from oprack import layers

    with oprack.program_guard(oprack.Program(), oprack.Program()):
        x = layers.data("x", [None, 3])
        assert x.shape == (-1, 3)
        assert F.relu(x).shape[0] + 1 == 0


def test_a_size_says_what_it_is() -> None:
    said: list[str] = []

    def f(x: Any) -> Any:
        said.append(f"{x.shape[0]} {x.shape} {x.shape[0] * 2 + 1}")
        return x

    oprack.to_program(f, [InputSpec([None, 3], "float32", "x")])
    assert said == ["dim 0 of 'x' (dim 0 of 'x', 3) ((dim 0 of 'x' * 2) + 1)"]

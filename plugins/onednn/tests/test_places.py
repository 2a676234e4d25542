"""Products, softmax and layer_norm as chains call them: at one place of a program again and again."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy_kernels import numpy_result
from oprack.kernel import KernelContext, KernelSpecialization
from oprack.packs.manager import default_manager
from oprack_onednn.chain.memory import rows_of
from oprack_onednn.kernels import fused_matmul, layer_norm, matmul, softmax


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def constant(array):
    array.flags.writeable = False
    return array


def with_gaps(array):
    return np.concatenate([array, array], axis=-1)[..., : array.shape[-1]]


def agree(got, want):
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * max(1.0, float(np.abs(want).max(initial=0))))


SLICES = {
    "rows": lambda a: a,
    "first token": lambda a: np.concatenate([a, a], axis=1)[:, : a.shape[1]],
    "gaps": with_gaps,
}


@pytest.mark.parametrize("slices", SLICES)
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("k, n", [(40, 30), (520, 510)])
def test_a_product_and_what_follows_of_rows_that_are_apart(any_size, slices, fixed, k, n):
    """A large filter over a few rows that lie together is a convolution."""
    x, residual = (SLICES[slices](a) for a in (normal(6, 1, k), normal(6, 1, n, seed=1)))
    w, b = normal(k, n, seed=2), normal(n, seed=3)
    args = (x, constant(w) if fixed else w, b, residual)
    call = KernelSpecialization(
        "matmul_post_ops",
        {"x_num_col_dims": -1, "trans_x": False, "post_ops": ["residual", "relu"]},
        {"Residual": (1,)},
        np,
    )
    want = np.maximum(x @ w + b + residual, 0)
    site = fused_matmul._specialize_fused(call)
    for run in (site, site, lambda *a: fused_matmul._run_fused(*a, call.attrs)):
        agree(run(*args), want)


def test_rows_of_arrays():
    x = normal(4, 6, 8)
    assert rows_of(x) == (24, 8, 8) and rows_of(x, 1) == (4, 48, 48)
    assert rows_of(x[:, :3]) is None and rows_of(x[:, :1]) == (4, 8, 48) and rows_of(x[:, 2:3], 1) == (4, 8, 48)
    assert rows_of(x[..., :5]) == (24, 5, 8) and rows_of(x[..., ::2]) is None and rows_of(x[:, ::-1]) is None
    assert rows_of(np.broadcast_to(normal(1, 8), (4, 8))) is None


@pytest.mark.parametrize("op", ["matmul_v2", "mul", "softmax", "layer_norm", "matmul_post_ops"])
def test_places_of_a_program_take_every_shape_and_parameter(any_size, op):
    """What was prepared for one place gives what the kernel gives, for arrays and parameters that come and go."""
    module = {"softmax": softmax, "layer_norm": layer_norm, "matmul_post_ops": fused_matmul}.get(op, matmul)
    attrs = {a.name: a.default for a in default_manager().op_info(op).proto.attrs.values()}
    attrs |= {"post_ops": ["relu"]} if op == "matmul_post_ops" else {}
    prepare = module._specialize_fused if op == "matmul_post_ops" else module._specialize
    site = prepare(KernelSpecialization(op, attrs, {}, np))
    width = 24
    parameters = {
        "softmax": [()],
        "layer_norm": [
            (constant(normal(width)), constant(normal(width, seed=1))),
            (constant(normal(width)), None),
            (None, None),
        ],
    }.get(op, [(normal(width, width),), (constant(normal(width, width)),), (constant(normal(width, width, seed=1)),)])
    for shape in [(20, width), (30, width), (20, width), (0, width)]:
        for given in parameters * 2:
            x = normal(*shape)
            names = [p for p in inspect.signature(getattr(module, op)).parameters][: 1 + len(given)]
            context = KernelContext(op, attrs, packs=default_manager())
            want, got = numpy_result(op, dict(zip(names, (x, *given), strict=True)), context), site(x, *given)
            assert got is not NotImplemented or not x.size
            if got is NotImplemented:
                continue
            for g, w in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want)), strict=True):
                agree(g, w)


def test_small_products_with_packed_weights_stay_here():
    """What follows makes them faster than NumPy's, whatever their size."""
    x, w, b = normal(1, 3), constant(normal(3, 2)), normal(2)
    attrs = {"x_num_col_dims": -1, "trans_x": False, "post_ops": ["relu"]}
    agree(fused_matmul._run_fused(x, w, b, None, attrs), np.maximum(x @ w + b, 0))

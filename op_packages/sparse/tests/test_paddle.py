"""The functions of oprack.sparse give what Paddle 2.6.2 gives, and so do gradients and programs that Paddle wrote."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import numpy as np
import oprack
import pytest
from oprack import Executor, Program
from sparse_calls import CALLS, COO, cotangent, given, parts

DATA = Path(__file__).parent / "data"
# Call -> why its result, or its gradient, is not Paddle's.
OTHER_RESULTS = {
    "sum_coo_all_drop": "Paddle's indices and values lack a dim",
    "sum_hybrid_all_drop": "Paddle's indices and values lack a dim",
    "sum_batch_6_drop": "Paddle's crows and cols are those of a batch, its shape that of a matrix",
}
OTHER_GRADIENTS = {
    "subtract_coo": "Paddle's gradient of y is out of place where x and y list other elements",
    "subtract_csr": "Paddle's gradient of y is out of place where x and y list other elements",
    "sum_csr_6_drop": "Paddle gives each row the gradient of the last one",
    "sum_csr_6_keep": "Paddle gives each row the gradient of the last one",
}


@cache
def recorded(file: str) -> dict[str, dict[str, np.ndarray]]:
    found: dict[str, dict[str, np.ndarray]] = {}
    with np.load(DATA / file) as arrays:
        for key in arrays:
            name, _, part = key.partition("/")
            found.setdefault(name, {})[part] = arrays[key]
    return found


@pytest.mark.parametrize("name", [n for n in CALLS if n in recorded("paddle.npz")])
def test_call(name: str) -> None:
    call, inputs = CALLS[name]
    want = recorded("paddle.npz")[name]
    tensors = [given(oprack.sparse, oprack.to_tensor, value, False) for value in inputs]
    for tensor in tensors:
        tensor.stop_gradient = False
    out = call(oprack.sparse, *tensors)
    got = parts(out)
    for part in got if name not in OTHER_RESULTS else ():
        assert got[part].dtype == want[part].dtype or part in ("indices", "shape"), part
        np.testing.assert_allclose(got[part], want[part], rtol=2e-5, atol=2e-6, err_msg=part)
    if name in OTHER_GRADIENTS or not any(part.startswith("grad") for part in want):
        return
    whole = out if "dense" in got else out.to_dense()
    (whole * oprack.to_tensor(cotangent(whole.shape).astype(whole.dtype))).sum().backward()
    for i, tensor in enumerate(tensors):
        if f"grad{i}" in want:
            np.testing.assert_allclose(tensor.grad.numpy(), want[f"grad{i}"], rtol=1e-4, atol=1e-5, err_msg=f"{i}")


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("name", sorted(recorded("programs.npz")))
def test_program_that_paddle_wrote(name: str, prepared: bool) -> None:
    want = recorded("programs.npz")[name]
    program = Program.parse(want["program"].tobytes())
    indices, values, _ = COO.arrays
    executor = Executor(prepared=prepared)
    for _ in range(2):
        got = executor.run(program, {"indices": indices, "values": values}, want["fetch"].tolist())
        for array, part in zip(got, ("dense", "indices", "values"), strict=True):
            np.testing.assert_allclose(array, want[part], rtol=2e-5, atol=2e-6)
    assert Program.parse(program.serialize()).serialize() == program.serialize()


def test_every_function_of_paddle_sparse_is_here() -> None:
    names = {name for name in CALLS if name not in recorded("paddle.npz")}
    assert names == {"transpose_hybrid", "matmul_csr", "matmul_coo", "mv_csr"}, "Paddle has no kernel for the others"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {"addmm", "masked_matmul", "is_same_shape", "nn"} <= set(dir(oprack.sparse))

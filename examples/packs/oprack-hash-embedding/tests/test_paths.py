"""The loops of numba and of CUDA give what NumPy's kernels give."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from oprack_hash_embedding.kernels import hash_embedding as by_numpy
from oprack_hash_embedding.kernels.hash_embedding_cuda import source

random = np.random.default_rng(0)
IDS = random.integers(-(2**63), 2**63 - 1, (50, 3))

# One thread after another, as a host runs it.
HOST = """
#define __device__
#define __global__
static struct { long long x; } blockIdx, blockDim = {1}, threadIdx;
static void atomicAdd(%(T)s* to, %(T)s value) { *to += value; }
"""
RUN = """
extern "C" void run_%(name)s(const i64* a, const T* b, T* c, i64 size, i64 rows, i64 width, i64 hashes) {
    for (blockIdx.x = 0; blockIdx.x < size; ++blockIdx.x) %(name)s(a, b, c, size, rows, width, hashes);
}
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numba(dtype: str) -> None:
    pytest.importorskip("numba")
    w, grad = random.normal(size=(17, 6)).astype(dtype), random.normal(size=(50, 3, 6)).astype(dtype)
    np.testing.assert_allclose(
        by_numpy.hash_embedding_compiled(IDS, w, hashes=3), by_numpy.hash_embedding(IDS, w, hashes=3), rtol=1e-5
    )
    np.testing.assert_allclose(
        by_numpy.hash_embedding_grad_compiled(IDS, w, grad, hashes=3),
        by_numpy.hash_embedding_grad(IDS, w, grad, hashes=3),
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.skipif(shutil.which("g++") is None, reason="the CUDA source is run on the host by g++")
def test_cuda_source_on_the_host(tmp_path: Path) -> None:
    """The very text that CuPy compiles, with one thread at a time."""
    runs = "".join(RUN % {"name": name} for name in ("gather", "scatter"))
    (tmp_path / "host.cpp").write_text(HOST % {"T": "double"} + source("float64") + runs)
    library = tmp_path / "host.so"
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", library, tmp_path / "host.cpp"], check=True)
    host = ctypes.CDLL(str(library))
    w, grad = random.normal(size=(17, 6)), random.normal(size=(50, 3, 6))
    out, table = np.empty((50, 3, 6)), np.zeros((17, 6))

    def run(name: str, *arrays: np.ndarray) -> None:
        numbers = (ctypes.c_longlong(n) for n in (grad.size, 17, 6, 3))
        getattr(host, f"run_{name}")(*(ctypes.c_void_p(a.ctypes.data) for a in arrays), *numbers)

    run("gather", IDS, w, out)
    run("scatter", IDS, grad, table)
    np.testing.assert_allclose(out, by_numpy.hash_embedding(IDS, w, hashes=3), rtol=1e-12)
    np.testing.assert_allclose(table, by_numpy.hash_embedding_grad(IDS, w, grad, hashes=3), rtol=1e-9, atol=1e-12)

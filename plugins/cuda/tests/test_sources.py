"""CUDA sources: they compile for a GPU, and the stand-in that runs them on the host is strict."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from oprack.errors import InvalidArgumentError
from oprack_cuda import raw
from oprack_cuda.testing import emulator, xp

FILES = sorted(f.name for f in raw.SOURCES.glob("*.cu"))
FLOATS = ("float32", "float64", "float16", "bfloat16")
ARCHITECTURE = "compute_90"


def _nvrtc() -> ctypes.CDLL | None:
    """NVRTC of an installed wheel of NVIDIA's."""
    spec = find_spec("nvidia")
    folders = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    for path in (p for folder in folders for p in folder.rglob("libnvrtc.so.*")):
        return ctypes.CDLL(str(path))
    return None


def _compile_with_nvcc(text: str, folder: Path) -> str:
    (folder / "source.cu").write_text(text)
    command = ["nvcc", "-std=c++17", f"-arch={ARCHITECTURE}", "-ptx", "-o", "source.ptx", "source.cu"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    return "" if done.returncode == 0 else done.stderr or "failed"


def _compile_with_nvrtc(library: ctypes.CDLL, text: str) -> str:
    program = ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"source.cu", 0, None, None) == 0
    options = (ctypes.c_char_p * 2)(b"-std=c++17", f"--gpu-architecture={ARCHITECTURE}".encode())
    if library.nvrtcCompileProgram(program, 2, options) == 0:
        return ""
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    return log.value.decode()


@pytest.mark.parametrize("file", FILES)
def test_sources_compile_for_a_gpu(file: str, tmp_path: Path) -> None:
    nvrtc = _nvrtc()
    if nvrtc is None and shutil.which("nvcc") is None:
        pytest.skip("neither nvcc nor NVRTC (pip install nvidia-cuda-nvrtc) is here")
    # NVRTC takes all dtypes but those whose headers come with the toolkit; nvcc is slower, so it takes the hardest one
    for dtype in FLOATS[:2] if nvrtc is not None else ("float16",):
        text = raw.source_of(file, dtype)
        problem = _compile_with_nvcc(text, tmp_path) if nvrtc is None else _compile_with_nvrtc(nvrtc, text)
        assert not problem, f"{file} for {dtype}: {problem}"


@pytest.mark.parametrize("file", FILES)
def test_every_kernel_of_a_source_is_found(file: str) -> None:
    text = (raw.SOURCES / file).read_text("utf-8")
    macros = text.count("#define UNARY")
    declared = text.count('extern "C" __global__') - macros + text.count("\nUNARY(") + text.count("\nUNARY_GRAD(")
    assert len(emulator.kernels_of(text)) == declared > 0


def test_arguments_of_a_launch_are_checked(emulated: None) -> None:
    softmax = raw.function(xp, "normalize.cu", "softmax", "float32")
    x, y, sizes = xp.ones((2, 3), "float32"), xp.empty((2, 3), "float32"), (np.int64(2), np.int64(3))
    with pytest.raises(InvalidArgumentError, match="int64"):
        softmax(2, 32, x, y, 2, np.int64(3))
    with pytest.raises(InvalidArgumentError, match="an array of float64 for y; expected float32"):
        softmax(2, 32, x, xp.empty((2, 3), "float64"), *sizes)
    with pytest.raises(InvalidArgumentError, match="with gaps"):
        softmax(2, 32, xp.ones((3, 2), "float32").T, y, *sizes)
    with pytest.raises(TypeError, match="got a ndarray"):
        softmax(2, 32, np.ones((2, 3), np.float32), y, *sizes)
    with pytest.raises(InvalidArgumentError, match="got 3 arguments"):
        softmax(2, 32, x, y, np.int64(2))
    with pytest.raises(ValueError, match="no device can launch it"):
        softmax(0, 32, x, y, *sizes)
    softmax(2, 32, x, y, *sizes)
    assert np.allclose(y._host, 1 / 3)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_halves_of_the_stand_in_round_as_numpy_does(name: str, emulated: None) -> None:
    dtype = np.dtype(pytest.importorskip("ml_dtypes").bfloat16 if name == "bfloat16" else name)
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(4096) * 2.0 ** np.arange(-28, 36, 1 / 64)
    numbers = np.concatenate([numbers, [0, -0.0, np.inf, -np.inf, -65504, -65519, -65520, -6e-8, -2.9e-8]])
    alpha = np.float32(1.7)
    with np.errstate(over="ignore", under="ignore"):
        x = numbers.astype(np.float32).astype(dtype)
        expected = (x.astype(np.float32) * alpha).astype(dtype)
    out, zero = xp.empty(x.shape, dtype), np.float64(0)
    # leaky_relu multiplies negative numbers by alpha
    launch = raw.function(xp, "pointwise.cu", "leaky_relu", dtype)
    launch(1, 32, xp.asarray(x), out, np.int64(x.size), np.float64(alpha), zero, zero)
    negative = x.astype(np.float32) < 0
    assert np.array_equal(out._host[negative], expected[negative])


def test_uniform_numbers_are_those_of_philox(emulated: None) -> None:
    """Known answer of Random123: philox4x32-10 with counter and key 0."""
    words = (0x6627E8D5, 0xE169C58D)
    out = xp.empty(1, "float64")
    launch = raw.function(xp, "random.cu", "uniform", "float64")
    launch(1, 32, out, np.int64(1), np.uint64(0), np.float64(0), np.float64(1))
    assert out._host[0] == ((words[0] >> 5) * 2**26 + (words[1] >> 6)) / 2**53


def test_gaussian_numbers_have_their_moments(emulated: None) -> None:
    many = xp.empty(100_000, "float32")
    launch = raw.function(xp, "random.cu", "gaussian", "float32")
    launch(7, 256, many, np.int64(100_000), np.uint64(5), np.float64(1), np.float64(2))
    assert abs(many._host.mean() - 1) < 0.03 and abs(many._host.std() - 2) < 0.03

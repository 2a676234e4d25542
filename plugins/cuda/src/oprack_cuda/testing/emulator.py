"""Runs the CUDA sources on the host: compiled as C++ and run block after block with one thread each.

It shows that a source computes the right numbers, not that its threads work together; those of a block meet nowhere
here. Needs a C++ compiler.
"""

from __future__ import annotations

import ctypes
import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oprack_cuda import raw
from oprack_cuda.parameters import kernels_of
from oprack_cuda.testing.strict import StrictArray

_SHIM = """
#include <cmath>
#include <cstdint>
using std::sqrt; using std::exp; using std::log; using std::log1p; using std::expm1; using std::tanh; using std::fabs;
using std::erfc; using std::cos;
struct Index { unsigned x = 0, y = 0, z = 0; };
static thread_local Index blockIdx, threadIdx, gridDim, blockDim;
#define __global__ static
#define __device__
#define __shared__ static thread_local
#define __syncthreads()
template <class V> static V atomicAdd(V* at, V value) { V old = *at; *at = old + value; return old; }
"""
# 16-bit floats: stored as their bits, computed as float, rounded to nearest even
_HALVES = """
static inline uint32_t bits_of(float f) { uint32_t u; __builtin_memcpy(&u, &f, 4); return u; }
static inline float float_of(uint32_t u) { float f; __builtin_memcpy(&f, &u, 4); return f; }
struct __nv_bfloat16 {
    uint16_t raw;
    __nv_bfloat16() = default;
    __nv_bfloat16(float f) {
        uint32_t u = bits_of(f);
        raw = f != f ? 0x7fc0 : (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
    }
    operator float() const { return float_of((uint32_t)raw << 16); }
};
struct __half {
    uint16_t raw;
    __half() = default;
    __half(float f) {
        uint32_t u = bits_of(f), sign = (u >> 16) & 0x8000;
        float a = std::fabs(f);
        if (f != f) raw = (uint16_t)(sign | 0x7e00);
        else if (a >= 65520.f) raw = (uint16_t)(sign | 0x7c00);
        else if (a < 6.103515625e-05f) raw = (uint16_t)(sign | (uint32_t)std::nearbyint(a * 16777216.f));
        else { u = bits_of(a); raw = (uint16_t)(sign | ((u + 0xfff + ((u >> 13) & 1) - 0x38000000) >> 13)); }
    }
    operator float() const {
        uint32_t sign = (uint32_t)(raw & 0x8000) << 16, e = (raw >> 10) & 31, m = raw & 0x3ff;
        if (e == 31) return float_of(sign | 0x7f800000 | m << 13);
        if (!e) return sign ? -(m / 16777216.f) : m / 16777216.f;
        return float_of(sign | (e + 112) << 23 | m << 13);
    }
};
"""
_C_TYPES = {"i64": ctypes.c_longlong, "u64": ctypes.c_ulonglong, "int": ctypes.c_int, "double": ctypes.c_double}


def compiler() -> str | None:
    """A C++ compiler of this machine; None when there is none."""
    return next((path for name in ("c++", "g++", "clang++") if (path := shutil.which(name))), None)


@functools.cache
def _library(file: str, dtype: str) -> tuple[ctypes.CDLL, dict[str, list[str]]]:
    found = compiler()
    if found is None:
        raise RuntimeError("no C++ compiler (c++, g++, clang++) to run CUDA sources on the host with")
    source = raw.source_of(file, dtype)
    kernels = {name: [p.type for p in parameters] for name, parameters in kernels_of(source).items()}
    launchers = []
    for name, types in kernels.items():
        parameters = ", ".join(f"{t} p{i}" for i, t in enumerate(types))
        arguments = ", ".join(f"p{i}" for i in range(len(types)))
        launchers.append(
            f'extern "C" void run_{name}(unsigned blocks, {parameters}) {{ gridDim.x = blocks; blockDim.x = 1; '
            f"for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {name}({arguments}); }}"
        )
    with tempfile.TemporaryDirectory(prefix="oprack_cuda_") as folder:
        text, library = Path(folder, "source.cpp"), Path(folder, "source.so")
        body = re.sub(r"#include <cuda_\w+.h>", _HALVES, source.replace('extern "C" __global__', "__global__"))
        text.write_text(_SHIM + body + "\n" + "\n".join(launchers))
        command = [found, "-std=c++17", "-O1", "-shared", "-fPIC", "-w", "-o", str(library), str(text)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{file} for {dtype} does not compile as C++:\n{done.stderr}")
        return ctypes.CDLL(str(library)), kernels


def find(file: str, name: str, dtype: str) -> Callable[..., None]:
    """The backend for strict arrays (see oprack_cuda.raw.set_backend)."""
    library, kernels = _library(file, dtype)
    types, entry = kernels[name], getattr(library, f"run_{name}")
    entry.restype = None

    def launch(blocks: int, threads: int, *arguments: Any) -> None:
        if not 1 <= blocks < 1 << 31 or not 1 <= threads <= 1024:
            raise ValueError(f"{name}: a grid of {blocks} blocks of {threads} threads; no device can launch it")
        given = [_argument(name, t, a) for t, a in zip(types, arguments, strict=True)]
        entry(ctypes.c_uint(blocks), *given)

    return launch


def _argument(kernel: str, declared: str, value: Any) -> Any:
    """A checked argument (see oprack_cuda.parameters) as ctypes passes it."""
    if not declared.endswith("*"):
        return _C_TYPES[declared](value.item())
    if value is None:
        return ctypes.c_void_p(0)
    if not isinstance(value, StrictArray):
        raise TypeError(f"{kernel}: got a {type(value).__name__} for {declared}; expected an array of the device")
    if "const" not in declared and not value._host.flags.writeable:
        raise ValueError(f"{kernel}: it writes into a constant")
    return ctypes.c_void_p(value._host.ctypes.data)

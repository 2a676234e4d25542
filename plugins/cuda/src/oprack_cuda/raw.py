"""Kernels written in CUDA C++: compiled per dtype on first use, launched on the current stream.

Each source in cuda/ defines `extern "C" __global__` functions over the types T (elements) and A (of sums). Loops over
elements stride over the grid and reductions work for any block size, so that a stand-in may run a source with one
thread per block (oprack_cuda.testing.emulator).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from oprack.errors import PreconditionNotMetError
from oprack.kernel import Array, ArrayModule
from oprack.python.interruption import let_interruptions_pass

from oprack_cuda.parameters import Check, kernels_of

SOURCES = Path(__file__).parent / "cuda"
BLOCK = 256
_MOST_BLOCKS = 1 << 16

# dtype -> (T, A, header)
TYPES = {
    "float32": ("float", "float", ""),
    "float64": ("double", "double", ""),
    "float16": ("__half", "float", "cuda_fp16.h"),
    "bfloat16": ("__nv_bfloat16", "float", "cuda_bf16.h"),
    "int32": ("int", "int", ""),
    "int64": ("long long", "long long", ""),
}

Launch = Callable[..., None]
Argument: TypeAlias = "Array | np.generic | None"
"""Of a launch: an array, a NumPy scalar of exactly the parameter's type, or None for a null pointer."""
_BACKENDS: dict[str, Callable[[str, str, str], Launch]] = {}


def source_of(file: str, dtype: str) -> str:
    """The text to compile: types, then common.cuh and the source itself."""
    element, accumulator, header = TYPES[dtype]
    include = f"#include <{header}>\n" if header else ""
    types = f"typedef {element} T;\ntypedef {accumulator} A;\n"
    return include + types + (SOURCES / "common.cuh").read_text("utf-8") + (SOURCES / file).read_text("utf-8")


def set_backend(library: str, find: Callable[[str, str, str], Launch]) -> None:
    """`find(file, function, dtype)` gives a function of (blocks, threads, *arguments) for arrays of a library."""
    _BACKENDS[library] = find


def function(xp: ArrayModule, file: str, name: str, dtype: np.dtype[Any]) -> Launch:
    """A kernel of a source for elements of a dtype: call it with (blocks, threads, *arguments).

    Arguments are arrays, None for a null pointer, and NumPy scalars of exactly the parameter's type. A launch raises
    InvalidArgumentError when they are not what the source declares (see oprack_cuda.parameters).
    """
    element = np.dtype(dtype).name
    run, check = _BACKENDS.get(xp.__name__, _cupy_function)(file, name, element), _check_of(file, name, element)

    def launch(blocks: int, threads: int, *arguments: Argument) -> None:
        check(arguments)
        run(blocks, threads, *arguments)

    return launch


@functools.cache
def _check_of(file: str, name: str, dtype: str) -> Check:
    return Check(name, kernels_of((SOURCES / file).read_text("utf-8"))[name], dtype)


def blocks_for(elements: int, threads: int = BLOCK) -> int:
    """Blocks of a loop over elements, which strides over the grid."""
    return max(1, min(-(-elements // threads), _MOST_BLOCKS))


def threads_for(width: int) -> int:
    """Threads of a block that reduces `width` elements: a power of two, as the reductions need it."""
    threads = 32
    while threads < width and threads < BLOCK:
        threads *= 2
    return threads


@functools.cache
def _module(file: str, dtype: str, device: int) -> Any:
    import cupy

    return cupy.RawModule(code=source_of(file, dtype), options=("-std=c++17",))


@functools.cache
def _compiled(file: str, name: str, dtype: str, device: int) -> Any:
    try:
        return _module(file, dtype, device).get_function(name)
    except Exception as error:  # NVRTC's log, or the driver's refusal
        let_interruptions_pass()
        raise PreconditionNotMetError(
            f"{file} can't be compiled for {dtype} on device {device}: {error}\nRun without the sources in CUDA C++: "
            "excluded_libraries=('cuda',)"
        ) from error


def _cupy_function(file: str, name: str, dtype: str) -> Launch:
    from cupy.cuda.runtime import getDevice

    compiled = _compiled(file, name, dtype, getDevice())

    def launch(blocks: int, threads: int, *arguments: Any) -> None:
        compiled((blocks,), (threads,), tuple(np.uintp(0) if a is None else a for a in arguments))

    return launch

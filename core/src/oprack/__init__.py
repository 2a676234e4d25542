"""oprack: a rack for deep-learning operators.

The core runs programs made of ops and knows no op; every op comes from a pack, a distribution found through entry
points. All names here are imported on first use, so `import oprack` imports neither packs nor an array library.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

# A library says nothing unless the program asks: logging.basicConfig(level=logging.INFO) shows what it has to say.
logging.getLogger("oprack").addHandler(logging.NullHandler())

__version__ = "0.1.0"

if TYPE_CHECKING:
    from oprack import amp, functional, inference, initializer, io, layers, metrics, nets, nn, optimizer, packs
    from oprack.autograd import grad
    from oprack.capture.jit import jit
    from oprack.capture.to_program import InputSpec, to_program
    from oprack.functional.tensor import Tensor, to_tensor
    from oprack.interpreter import (
        deterministic,
        enable_grad,
        is_grad_enabled,
        no_grad,
        seed,
        static_mode,
    )
    from oprack.layers import (
        ParamAttr,
        append_backward,
        data,
        default_main_program,
        default_startup_program,
        gradients,
        name_scope,
        program_guard,
        unique_name,
    )
    from oprack.nn.parameter import Parameter
    from oprack.packs import op_info, register_kernel, register_operator
    from oprack.packs.hookspecs import hookimpl, hookspec
    from oprack.packs.info import BrokenPackWarning, PackInfo
    from oprack.packs.manager import PackManager, default_manager, use_manager
    from oprack.program import Program
    from oprack.runtime import Executor, NaiveExecutor, Profiler, create_op
    from oprack.tensor import (
        CPUPlace,
        CUDAPinnedPlace,
        CUDAPlace,
        LoDTensor,
        LoDTensorArray,
        Scope,
        SelectedRows,
        lod_from_lengths,
    )
    from oprack.testing.gradcheck import gradcheck

# Modules; packs() can be called as well
_SUBMODULES = (
    "amp",
    "functional",
    "inference",
    "initializer",
    "io",
    "layers",
    "metrics",
    "nets",
    "nn",
    "optimizer",
    "packs",
)
_HOMES = {
    "oprack.autograd": ("grad",),
    "oprack.capture.jit": ("jit",),
    "oprack.capture.to_program": ("InputSpec", "to_program"),
    "oprack.functional.tensor": ("Tensor", "to_tensor"),
    "oprack.interpreter": (
        "deterministic",
        "enable_grad",
        "is_grad_enabled",
        "no_grad",
        "seed",
        "static_mode",
    ),
    "oprack.layers": (
        "ParamAttr",
        "append_backward",
        "data",
        "default_main_program",
        "default_startup_program",
        "gradients",
        "name_scope",
        "program_guard",
        "unique_name",
    ),
    "oprack.nn.parameter": ("Parameter",),
    "oprack.program": ("Program",),
    "oprack.packs": ("op_info", "register_kernel", "register_operator"),
    "oprack.packs.hookspecs": ("hookimpl", "hookspec"),
    "oprack.packs.info": ("BrokenPackWarning", "PackInfo"),
    "oprack.packs.manager": ("PackManager", "default_manager", "use_manager"),
    "oprack.runtime": ("Executor", "NaiveExecutor", "Profiler", "create_op"),
    "oprack.tensor": (
        "CPUPlace",
        "CUDAPinnedPlace",
        "CUDAPlace",
        "LoDTensor",
        "LoDTensorArray",
        "Scope",
        "SelectedRows",
        "lod_from_lengths",
    ),
    "oprack.testing.gradcheck": ("gradcheck",),
}
_MODULES = {name: home for home, names in _HOMES.items() for name in names}
__all__ = [
    "BrokenPackWarning",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "Executor",
    "InputSpec",
    "LoDTensor",
    "LoDTensorArray",
    "NaiveExecutor",
    "PackInfo",
    "PackManager",
    "ParamAttr",
    "Parameter",
    "Profiler",
    "Program",
    "Scope",
    "SelectedRows",
    "Tensor",
    "__version__",
    "amp",
    "append_backward",
    "create_op",
    "data",
    "default_main_program",
    "default_manager",
    "default_startup_program",
    "deterministic",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradients",
    "hookimpl",
    "hookspec",
    "inference",
    "initializer",
    "io",
    "is_grad_enabled",
    "jit",
    "layers",
    "lod_from_lengths",
    "metrics",
    "name_scope",
    "nets",
    "nn",
    "no_grad",
    "op_info",
    "optimizer",
    "packs",
    "program_guard",
    "register_kernel",
    "register_operator",
    "seed",
    "static_mode",
    "to_program",
    "to_tensor",
    "unique_name",
    "use_manager",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _SUBMODULES:
        return importlib.import_module(f"oprack.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'oprack' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

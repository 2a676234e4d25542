"""oprack: a rack for deep-learning operators.

The core runs programs made of ops and knows no op; every op comes from a pack, a distribution found through entry
points. All names here are imported on first use, so `import oprack` imports neither packs nor an array library. Besides
the names below, `oprack.<name>` is every function of tensors that packs bring: `oprack.zeros`, `oprack.concat` ...
"""

from __future__ import annotations

import sys

from oprack.python import rooms as _rooms

__path__ = _rooms.folders(__path__)
sys.meta_path.append(_rooms.AbsentRooms)

__version__ = "0.1.0"

TYPE_CHECKING = False  # type checkers know this name; `typing` takes longer to import than all that is here
if TYPE_CHECKING:  # what _SUBMODULES and _HOMES say, for editors and type checkers; a test compares
    # isort: off
    from typing import Any

    from oprack import (
        amp as amp,
        array_api as array_api,
        autograd as autograd,
        device as device,
        errors as errors,
        functional as functional,
        inference as inference,
        initializer as initializer,
        interpreter as interpreter,
        io as io,
        ir as ir,
        kernel as kernel,
        layers as layers,
        metrics as metrics,
        nets as nets,
        nn as nn,
        op as op,
        optimizer as optimizer,
        parallel as parallel,
        quantization as quantization,
        runtime as runtime,
        sequences as sequences,
        sparse as sparse,
        tensor as tensor,
        testing as testing,
        types as types,
    )
    from oprack.autograd import PyLayer as PyLayer, grad as grad
    from oprack.cache import cache_info as cache_info, set_cache_limit as set_cache_limit
    from oprack.capture.jit import jit as jit
    from oprack.capture.to_program import InputSpec as InputSpec, to_program as to_program
    from oprack.functional.tensor import Tensor as Tensor, to_tensor as to_tensor
    from oprack.interpreter import (
        deterministic as deterministic,
        enable_grad as enable_grad,
        is_grad_enabled as is_grad_enabled,
        no_grad as no_grad,
        reference as reference,
        seed as seed,
        set_grad_enabled as set_grad_enabled,
        source_of as source_of,
        static_mode as static_mode,
    )
    from oprack.io import load as load, save as save
    from oprack.layers import (
        ParamAttr as ParamAttr,
        append_backward as append_backward,
        data as data,
        default_main_program as default_main_program,
        default_startup_program as default_startup_program,
        gradients as gradients,
        name_scope as name_scope,
        program_guard as program_guard,
        unique_name as unique_name,
    )
    from oprack.nn.parameter import Parameter as Parameter
    from oprack.nn.summary import summary as summary
    from oprack.packs import (
        op_info as op_info,
        packs as packs,
        register_kernel as register_kernel,
        register_operator as register_operator,
    )
    from oprack.packs.hookspecs import hookimpl as hookimpl, hookspec as hookspec
    from oprack.packs.pack import BrokenPackWarning as BrokenPackWarning, PackInfo as PackInfo
    from oprack.packs.manager import (
        PackManager as PackManager,
        default_manager as default_manager,
        use_manager as use_manager,
    )
    from oprack.program import Program as Program
    from oprack.runtime import (
        Executor as Executor,
        NaiveExecutor as NaiveExecutor,
        Profiler as Profiler,
        create_op as create_op,
    )
    from oprack.tensor import (
        CPUPlace as CPUPlace,
        CUDAPinnedPlace as CUDAPinnedPlace,
        CUDAPlace as CUDAPlace,
        LoDTensor as LoDTensor,
        LoDTensorArray as LoDTensorArray,
        Scope as Scope,
        SelectedRows as SelectedRows,
        SparseCooTensor as SparseCooTensor,
        SparseCsrTensor as SparseCsrTensor,
        lod_from_lengths as lod_from_lengths,
    )
    from oprack.testing.gradcheck import gradcheck as gradcheck
    # isort: on

# Modules; packs() can be called as well
_SUBMODULES = (
    "amp array_api autograd device errors functional inference initializer interpreter io ir kernel layers "
    "metrics nets nn op optimizer packs parallel quantization runtime sequences sparse tensor testing types"
).split()
_HOMES = {
    "oprack.autograd": ("PyLayer", "grad"),
    "oprack.cache": ("cache_info", "set_cache_limit"),
    "oprack.capture.jit": ("jit",),
    "oprack.capture.to_program": ("InputSpec", "to_program"),
    "oprack.functional.tensor": ("Tensor", "to_tensor"),
    "oprack.interpreter": (
        "deterministic",
        "enable_grad",
        "is_grad_enabled",
        "no_grad",
        "reference",
        "seed",
        "set_grad_enabled",
        "source_of",
        "static_mode",
    ),
    "oprack.io": ("load", "save"),
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
    "oprack.nn.summary": ("summary",),
    "oprack.program": ("Program",),
    "oprack.packs": ("op_info", "register_kernel", "register_operator"),
    "oprack.packs.hookspecs": ("hookimpl", "hookspec"),
    "oprack.packs.pack": ("BrokenPackWarning", "PackInfo"),
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
        "SparseCooTensor",
        "SparseCsrTensor",
        "lod_from_lengths",
    ),
    "oprack.testing.gradcheck": ("gradcheck",),
}
_DTYPES = frozenset(
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
)  # `oprack.float32` is "float32", as the dtype of a tensor is
_MODULES = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted([*_SUBMODULES, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    try:
        if name in _SUBMODULES:
            return _imported(f"oprack.{name}")
        if name not in _MODULES:
            return _function(name)
        value = globals()[name] = getattr(_imported(_MODULES[name]), name)
    except _rooms.AbsentRoomError as error:  # hasattr is to be False
        raise AttributeError(f"module 'oprack' has no attribute {name!r}: {error}") from error
    return value


def _function(name: str) -> Any:
    """A function of tensors that packs bring; asked each time, since packs may change."""
    if name in _DTYPES:
        return name
    if name.startswith("_"):
        raise AttributeError(f"module 'oprack' has no attribute {name!r}")
    try:
        return _imported("oprack.functional.tensor").public(name)
    except _imported("oprack.errors").NotFoundError as error:
        spellings = _imported("oprack.names.spellings")
        found = spellings.same("oprack", name)
        if found is not spellings.ABSENT:
            return _imported("oprack.packs.changes").kept_names(globals()).keep(name, found)
        advice = _imported("oprack.packs.advice").no_such_name(name, error)
        raise AttributeError(f"module 'oprack' has no attribute {name!r}{advice}") from error


def _imported(module: str) -> Any:
    import importlib

    if module in sys.modules:
        return importlib.import_module(module)
    from oprack.python.implementation import without_collecting

    return without_collecting(importlib.import_module, module, stays=True)


def __dir__() -> list[str]:
    own = set(globals()) - {"TYPE_CHECKING", "annotations", "sys"}
    try:
        functions = _imported("oprack.functional.tensor").public_names()
    except _rooms.AbsentRoomError:
        functions = ()
    return sorted({*own, *__all__, *_DTYPES, *functions})

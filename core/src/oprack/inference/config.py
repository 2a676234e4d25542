"""Config: which model to load, and how to run it; paddle.inference.Config."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.inference.enums import PrecisionType
from oprack.inference.no_effect import NoEffectSettings, say_once
from oprack.inference.pass_builder import PassBuilder
from oprack.runtime.limits import Limits

_OPTIM_CACHE_BYTES = 2 << 30


class Config(NoEffectSettings):
    """Settings of a predictor.

    Config(model_dir): a folder with `__model__`. Config(model_file, params_file): a pair of files. Config(config): a
    copy. Config(): set the model later. Settings of Paddle that mean nothing here are accepted and said once.
    """

    Precision = PrecisionType
    Float32, Int8, Half, Bfloat16 = PrecisionType

    def __init__(self, model: str | Path | Config | None = None, params_file: str | Path | None = None) -> None:
        if isinstance(model, Config):
            self.__dict__.update(copy.deepcopy(model.__dict__))
            return
        self._model_dir = ""
        self._prog_file = ""
        self._params_file = ""
        self._buffers: tuple[bytes, bytes] | None = None
        self._use_gpu = False
        self._gpu_device_id = 0
        self._gpu_pool_mb = 100
        self._specify_input_name = False
        self._threads: int | None = None
        self._ir_optim = True
        self._ir_debug = False
        self._strict_sums = False
        self._deterministic = False
        self._library_attrs = False
        self._memory_optim = False
        self._memory_limit: int | None = None
        self._loop_limit: int | None = None
        self._profile = False
        self._log = True
        self._mkldnn = True
        self._mkldnn_cache_capacity = 10
        self._passes = PassBuilder()
        self._optim_cache_dir = ""
        self._optim_cache_bytes = _OPTIM_CACHE_BYTES
        if model is not None:
            self.set_model(model, params_file)

    # The model --------------------------------------------------------------------------------------------------------
    def set_model(self, model: str | Path, params_file: str | Path | None = None) -> None:
        """A folder, or a program file and a parameter file."""
        self._buffers = None
        if params_file is None:
            self._model_dir, self._prog_file, self._params_file = str(model), "", ""
        else:
            self._model_dir, self._prog_file, self._params_file = "", str(model), str(params_file)

    def set_prog_file(self, path: str | Path) -> None:
        self._buffers, self._prog_file = None, str(path)

    def set_params_file(self, path: str | Path) -> None:
        self._buffers, self._params_file = None, str(path)

    def set_model_buffer(
        self, prog_buffer: bytes, prog_buffer_size: int, params_buffer: bytes, params_buffer_size: int
    ) -> None:
        """The bytes of a program and of its combined parameters.

        Raises InvalidArgumentError when a size is larger than its buffer.
        """
        given = (("program", prog_buffer, prog_buffer_size), ("params", params_buffer, params_buffer_size))
        for what, buffer, size in given:
            if not isinstance(buffer, bytes | bytearray | memoryview):
                raise InvalidArgumentError(
                    f"set_model_buffer: the {what} buffer is a {type(buffer).__name__}; expected bytes, as "
                    "open(file, 'rb').read() gives them"
                )
            if not isinstance(size, int) or not 0 <= size <= len(buffer):
                raise InvalidArgumentError(
                    f"set_model_buffer: the size of the {what} buffer is given as {size!r}, but it has {len(buffer)} "
                    "bytes; expected at most that"
                )
        self._buffers = (bytes(prog_buffer[:prog_buffer_size]), bytes(params_buffer[:params_buffer_size]))
        self._model_dir = self._prog_file = self._params_file = ""

    def model_dir(self) -> str:
        return self._model_dir

    def prog_file(self) -> str:
        return self._prog_file

    def params_file(self) -> str:
        return self._params_file

    def model_from_memory(self) -> bool:
        return self._buffers is not None

    def buffers(self) -> tuple[bytes, bytes] | None:
        """Bytes of program and parameters, when set_model_buffer gave them."""
        return self._buffers

    # The device -------------------------------------------------------------------------------------------------------
    def enable_use_gpu(
        self, memory_pool_init_size_mb: int, device_id: int = 0, precision_mode: PrecisionType = PrecisionType.Float32
    ) -> None:
        """Run at CUDAPlace(device_id), which the plugin oprack-cuda serves."""
        self._use_gpu, self._gpu_pool_mb, self._gpu_device_id = True, int(memory_pool_init_size_mb), int(device_id)
        if precision_mode is not PrecisionType.Float32:
            say_once("Config.enable_use_gpu(precision_mode=...)", "models run in their own dtypes")

    def disable_gpu(self) -> None:
        self._use_gpu = False

    def use_gpu(self) -> bool:
        return self._use_gpu

    def gpu_device_id(self) -> int:
        return self._gpu_device_id

    def memory_pool_init_size_mb(self) -> int:
        """What enable_use_gpu was given; 100 before, as in Paddle."""
        return self._gpu_pool_mb

    def fraction_of_gpu_memory_for_pool(self) -> float:
        """Always 0: the pool of CuPy grows as needed."""
        return 0.0

    def xpu_device_id(self) -> int:
        return 0

    def enable_custom_device(self, device_type: str, device_id: int = 0, *_: Any) -> None:
        """Raises InvalidArgumentError: places come from plugins, and a predictor runs at CPU or CUDA."""
        raise InvalidArgumentError(
            f"enable_custom_device({device_type!r}): predictors run at the CPU or, with oprack-cuda, at CUDA; "
            "leave this call out"
        )

    def set_cpu_math_library_num_threads(self, threads: int) -> None:
        """Threads of the math library while a predictor runs; needs threadpoolctl, and says so once without it.

        Raises InvalidArgumentError for a number below 1.
        """
        if int(threads) < 1:
            raise InvalidArgumentError(f"set_cpu_math_library_num_threads({threads}): expected 1 or more")
        self._threads = int(threads)

    def cpu_math_library_num_threads(self) -> int:
        return self._threads or 1

    def has_thread_limit(self) -> bool:
        """Whether set_cpu_math_library_num_threads was called; else the math library decides."""
        return self._threads is not None

    # TensorRT's settings, as Paddle has them before anything is set; nothing changes them -----------------------------
    def tensorrt_optimization_level(self) -> int:
        return 3

    def tensorrt_precision_mode(self) -> PrecisionType:
        return PrecisionType.Float32

    def shape_range_info_path(self) -> str:
        return ""

    # Optimisation -----------------------------------------------------------------------------------------------------
    def switch_ir_optim(self, x: bool = True) -> None:
        """Whether passes may rewrite the program."""
        self._ir_optim = bool(x)

    def ir_optim(self) -> bool:
        return self._ir_optim

    def switch_ir_debug(self, x: bool = True) -> None:
        """Verify the program after every pass; a pass that breaks it then is an error."""
        self._ir_debug = bool(x)

    def ir_debug(self) -> bool:
        return self._ir_debug or self._passes.debug

    def switch_strict_sums(self, x: bool = True) -> None:
        """Leave out passes that change the order of float sums or rounding: numbers are those of the program as saved.

        Not a setting of Paddle.
        """
        self._strict_sums = bool(x)

    def strict_sums(self) -> bool:
        return self._strict_sums

    def switch_deterministic(self, x: bool = True) -> None:
        """Leave out kernels that can't promise the same bits on every run. Not a setting of Paddle."""
        self._deterministic = bool(x)

    def deterministic(self) -> bool:
        return self._deterministic

    def switch_library_attrs(self, x: bool = True) -> None:
        """Let kernels of a library run only in ops whose attribute asks for it: use_mkldnn, use_cudnn.

        Without it they run wherever they are the best, as in Paddle after enable_mkldnn(), which sets the attribute in
        every op; programs are saved with False. Not a setting of Paddle.
        """
        self._library_attrs = bool(x)

    def library_attrs(self) -> bool:
        return self._library_attrs

    def excluded_libraries(self) -> tuple[str, ...]:
        """Kernel libraries that may not run."""
        return () if self._mkldnn else ("onednn",)

    def libraries_by_attr(self) -> tuple[str, ...]:
        """Kernel libraries that run only where an op's attribute asks for them."""
        from oprack.packs.manager import default_manager

        return tuple(default_manager().library_attrs()) if self._library_attrs else ()

    def pass_builder(self) -> PassBuilder:
        """The passes that will run with the settings as they are now."""
        from oprack.ir import registered_passes, select_passes
        from oprack.tensor import CPUPlace, CUDAPlace

        selected = select_passes(
            CUDAPlace(self._gpu_device_id) if self._use_gpu else CPUPlace(),
            excluded_libraries=(*self.excluded_libraries(), *self.libraries_by_attr()),
            strict=self._strict_sums,
        )
        return self._passes.show([p.name for p in selected], [p.name for p in registered_passes()])

    def delete_pass(self, name: str) -> None:
        """Keep a pass from running."""
        self.pass_builder().delete_pass(name, stacklevel=5)

    def pass_changes(self) -> list[list[object]]:
        """What the client changed in the list of passes."""
        return self._passes.changes()

    def set_optim_cache_dir(self, path: str | Path, max_bytes: int = _OPTIM_CACHE_BYTES) -> None:
        """Keep the rewritten model in this directory, for the next process that loads the same model.

        What passes made of a model, the program and its parameters, is taken from there when the bytes of the model's
        files, the versions and code of oprack and of all packs, the place, the CPU and the settings are the same as
        then, and made anew otherwise. Results are the same with and without. The directory is made when there is none;
        several processes may use it at once. It need not be kept: `oprack cache DIR --clear` empties it.

        Args:
            path: The directory, of this user alone; "" = keep nothing.
            max_bytes: Of all that is kept there; what was not used for the longest time goes first. Not of Paddle.

        Raises:
            InvalidArgumentError: For a path that is none, or a size below 0.
        """
        if not isinstance(path, str | os.PathLike):
            raise InvalidArgumentError(f"set_optim_cache_dir({path!r}): expected the path of a directory, or ''")
        if not isinstance(max_bytes, int) or max_bytes < 0:
            raise InvalidArgumentError(f"set_optim_cache_dir(max_bytes={max_bytes!r}): expected a number of bytes")
        self._optim_cache_dir, self._optim_cache_bytes = os.fspath(path), max_bytes

    def optim_cache_dir(self) -> str:
        """The directory of set_optim_cache_dir, "" when nothing is kept."""
        return self._optim_cache_dir

    def optim_cache_bytes(self) -> int:
        return self._optim_cache_bytes

    def enable_memory_optim(self, x: bool = True) -> None:
        """What a predictor always does: each intermediate value is dropped after its last use."""
        self._memory_optim = bool(x)

    def memory_optim_enabled(self) -> bool:
        return self._memory_optim

    def enable_mkldnn(self) -> None:
        """Let kernels of library "onednn" run, where a plugin brings them."""
        self._mkldnn = True

    def disable_mkldnn(self) -> None:
        """Keep kernels of library "onednn" from running."""
        self._mkldnn = False

    def mkldnn_enabled(self) -> bool:
        return self._mkldnn

    def set_mkldnn_cache_capacity(self, capacity: int) -> None:
        """How many shapes a library's primitives are kept for."""
        self._mkldnn_cache_capacity = int(capacity)

    # Limits, which Paddle has not -------------------------------------------------------------------------------------
    def set_memory_limit(self, limit: int | None) -> None:
        """Bytes that the outputs of one op may take; None: as OPRACK_MEMORY_LIMIT says, else no limit.

        An op that wants more raises MemoryLimitError before it takes memory, if its shape rule can tell. Raises
        InvalidArgumentError for something else than a number of at least 0.
        """
        Limits.of(memory=limit)
        self._memory_limit = limit

    def memory_limit(self) -> int | None:
        return self._memory_limit

    def set_loop_limit(self, limit: int | None) -> None:
        """How often the blocks of loops and branches may run in one run; None: as OPRACK_LOOP_LIMIT says, else no end.

        One round more raises LoopLimitError. Raises InvalidArgumentError for something else than a number from 0.
        """
        Limits.of(rounds=limit)
        self._loop_limit = limit

    def loop_limit(self) -> int | None:
        return self._loop_limit

    # Reports ----------------------------------------------------------------------------------------------------------
    def enable_profile(self) -> None:
        """Print the time by op when the predictor is dropped."""
        self._profile = True

    def profile_enabled(self) -> bool:
        return self._profile

    def disable_glog_info(self) -> None:
        self._log = False

    def glog_info_disabled(self) -> bool:
        return not self._log

    def switch_use_feed_fetch_ops(self, x: bool = True) -> None:
        """Inputs and outputs are handles, whether or not the program has feed and fetch ops: True is said once."""
        if x:
            say_once("Config.switch_use_feed_fetch_ops(True)", "inputs and outputs are handles")

    def use_feed_fetch_ops_enabled(self) -> bool:
        return False

    def switch_specify_input_names(self, x: bool = True) -> None:
        """Inputs are found by name in any case."""
        self._specify_input_name = bool(x)

    def specify_input_name(self) -> bool:
        return self._specify_input_name

    def summary(self) -> str:
        """The settings as a table."""
        rows: list[tuple[str, str] | None] = [("Option", "Value"), None]
        rows += [("model_dir", self._model_dir)] if self._model_dir else []
        rows += [("model_file", self._prog_file), ("params_file", self._params_file)] if self._prog_file else []
        rows += [("model_from_memory", "true")] if self._buffers else []
        rows += [None, ("cpu_math_thread", str(self._threads or "library's own"))]
        rows += [("enable_mkldnn", _bool(self._mkldnn)), ("mkldnn_cache_capacity", str(self._mkldnn_cache_capacity))]
        rows += [None, ("use_gpu", _bool(self._use_gpu))]
        rows += [("gpu_device_id", str(self._gpu_device_id))] if self._use_gpu else []
        rows += [None, ("ir_optim", _bool(self._ir_optim)), ("ir_debug", _bool(self.ir_debug()))]
        rows += [("strict_sums", "true")] if self._strict_sums else []
        rows += [("deterministic", "true")] if self._deterministic else []
        rows += [("library_attrs", "true")] if self._library_attrs else []
        rows += [("deleted_passes", ", ".join(sorted(self._passes.deleted)))] if self._passes.deleted else []
        rows += [("optim_cache_dir", self._optim_cache_dir)] if self._optim_cache_dir else []
        rows += [("memory_limit", str(self._memory_limit))] if self._memory_limit is not None else []
        rows += [("loop_limit", str(self._loop_limit))] if self._loop_limit is not None else []
        rows += [("memory_optim", _bool(self._memory_optim)), ("enable_profile", _bool(self._profile))]
        rows += [("enable_log", _bool(self._log))]
        left = max(len(r[0]) for r in rows if r)
        right = max(len(r[1]) for r in rows if r)
        line = f"+-{'-' * left}-+-{'-' * right}-+"
        body = [line if r is None else f"| {r[0]:<{left}} | {r[1]:<{right}} |" for r in rows]
        return "\n".join([line, *body, line])


def _bool(value: bool) -> str:
    return "true" if value else "false"

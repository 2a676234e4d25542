"""Config: which model to load, and how to run it; paddle.inference.Config."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.inference.enums import PrecisionType
from oprack.inference.settings import PassBuilder, say_once, settings_table, with_no_effect
from oprack.kernel.kernel_map import switched_on
from oprack.runtime.checks import Limits

_OPTIM_CACHE_BYTES = 2 << 30
_ENGINES = "onnxruntime_subgraph"


@with_no_effect
class Config:
    """Settings of a predictor.

    Config(model_dir): a folder with `__model__`. Config(model_file, params_file): a pair of files. Config(config): a
    copy. Config(): set the model later. Settings of Paddle that have no effect here are accepted, and reported once.

    Args:
        model: A folder with `__model__`, a program file, or a Config to copy; None: set it later.
        params_file: The parameter file, beside a program file.
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
        self._threads: int | None = None
        self._bfloat16 = self._int8 = False
        self._bfloat16_ops: set[str] | None = None
        self._int8_ops: set[str] | None = None
        self._specify_input_name = False
        self._ir_optim = True
        self._ir_debug = False
        self._strict_sums = False
        self._deterministic = switched_on("OPRACK_DETERMINISTIC")
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

    # Model ------------------------------------------------------------------------------------------------------------
    def set_model(self, model: str | Path, params_file: str | Path | None = None) -> None:
        """A folder, or a program file and a parameter file."""
        self._buffers = None
        if params_file is None:
            self._model_dir, self._prog_file, self._params_file = str(model), "", ""
        else:
            self._model_dir, self._prog_file, self._params_file = "", str(model), str(params_file)

    def set_prog_file(self, path: str | Path) -> None:
        """Name the file of the program."""
        self._buffers, self._prog_file = None, str(path)

    def set_params_file(self, path: str | Path) -> None:
        """Name the file of the parameters."""
        self._buffers, self._params_file = None, str(path)

    def set_model_buffer(
        self, prog_buffer: bytes, prog_buffer_size: int, params_buffer: bytes, params_buffer_size: int
    ) -> None:
        """The bytes of a program and of its combined parameters.

        Args:
            prog_buffer: The bytes of the program.
            prog_buffer_size: How many of them count.
            params_buffer: The bytes of the parameters.
            params_buffer_size: How many of them count.

        Raises:
            InvalidArgumentError: A buffer holds no bytes, or a size is larger than its buffer.
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
        """The folder of the model; "" when files are named."""
        return self._model_dir

    def prog_file(self) -> str:
        """The file of the program; "" when there is none."""
        return self._prog_file

    def params_file(self) -> str:
        """The file of the parameters; "" when there is none."""
        return self._params_file

    def model_from_memory(self) -> bool:
        """Whether set_model_buffer gave the model."""
        return self._buffers is not None

    def buffers(self) -> tuple[bytes, bytes] | None:
        """Bytes of program and parameters, when set_model_buffer gave them."""
        return self._buffers

    # Device and threads -----------------------------------------------------------------------------------------------
    def enable_use_gpu(
        self, memory_pool_init_size_mb: int, device_id: int = 0, precision_mode: PrecisionType = PrecisionType.Float32
    ) -> None:
        """Run at CUDAPlace(device_id), which the plugin oprack-cuda serves."""
        self._use_gpu, self._gpu_pool_mb, self._gpu_device_id = True, int(memory_pool_init_size_mb), int(device_id)
        if precision_mode is not PrecisionType.Float32:
            say_once("Config.enable_use_gpu(precision_mode=...)", "models run in their own dtypes")

    def disable_gpu(self) -> None:
        """Run at the CPU."""
        self._use_gpu = False

    def use_gpu(self) -> bool:
        """Whether enable_use_gpu was called last."""
        return self._use_gpu

    def gpu_device_id(self) -> int:
        """Number of the GPU that enable_use_gpu named."""
        return self._gpu_device_id

    def memory_pool_init_size_mb(self) -> int:
        """What enable_use_gpu was given; 100 before, as in Paddle."""
        return self._gpu_pool_mb

    def fraction_of_gpu_memory_for_pool(self) -> float:
        """Always 0: the pool of CuPy grows as needed."""
        return 0.0

    def xpu_device_id(self) -> int:
        """Always 0: no plugin serves such a device."""
        return 0

    def enable_custom_device(self, device_type: str, device_id: int = 0, *_: Any) -> None:
        """Refuse another device: places come from plugins, and a predictor runs at CPU or CUDA.

        Args:
            device_type: Its name.
            device_id: Its number.

        Raises:
            InvalidArgumentError: In every case.
        """
        raise InvalidArgumentError(
            f"enable_custom_device({device_type!r}): predictors run at the CPU or, with oprack-cuda, at CUDA; "
            "leave this call out"
        )

    def set_cpu_math_library_num_threads(self, threads: int) -> None:
        """Threads of the math library while a predictor runs; needs threadpoolctl, and says so once without it.

        Args:
            threads: How many.

        Raises:
            InvalidArgumentError: It is a number below 1.
        """
        if int(threads) < 1:
            raise InvalidArgumentError(f"set_cpu_math_library_num_threads({threads}): expected 1 or more")
        self._threads = int(threads)

    def cpu_math_library_num_threads(self) -> int:
        """What set_cpu_math_library_num_threads was given; 1 before, as in Paddle."""
        return self._threads or 1

    def has_thread_limit(self) -> bool:
        """Whether set_cpu_math_library_num_threads was called; else the math library decides."""
        return self._threads is not None

    # Precision --------------------------------------------------------------------------------------------------------
    def enable_mkldnn_bfloat16(self) -> None:
        """Let convolutions and products with weights round their factors to bfloat16, and add up in float32.

        What only such convolutions read of each other is bfloat16 in memory, too. It takes half the time on CPUs that
        have such instructions, and has no effect on others.
        """
        self._bfloat16 = True

    def set_bfloat16_op(self, op_list: Iterable[str]) -> None:
        """Which op types may compute in bfloat16, instead of all that can."""
        self._bfloat16_ops = {*op_list}

    def mkldnn_bfloat16_enabled(self) -> bool:
        """Whether enable_mkldnn_bfloat16 was called."""
        return self._bfloat16

    def enable_mkldnn_int8(self, op_list: Iterable[str] = ()) -> None:
        """Let convolutions and products multiply bytes, and add up in 32 bits, where the model quantises both factors.

        Such models come from `oprack quantize`, PaddleSlim or paddle.static.quantization. Without this setting they
        run in floats, rounded as the model says. It has no effect on CPUs without VNNI. What stays float may be
        bfloat16: `enable_mkldnn_bfloat16` goes together with this.

        Args:
            op_list: Which op types may compute in int8; empty: all that can.
        """
        self._int8, self._int8_ops = True, {*op_list} or None

    def mkldnn_int8_enabled(self) -> bool:
        """Whether enable_mkldnn_int8 was called."""
        return self._int8

    def precisions(self) -> dict[str, list[str] | None]:
        """Dtypes that ops may compute in other than their own, each with the op types that may; None: all."""
        given = (("bfloat16", self._bfloat16, self._bfloat16_ops), ("int8", self._int8, self._int8_ops))
        return {name: None if ops is None else sorted(ops) for name, enabled, ops in given if enabled}

    # The names that Paddle 3 has for them
    enable_onednn_bfloat16 = enable_mkldnn_bfloat16
    onednn_bfloat16_enabled = mkldnn_bfloat16_enabled
    enable_onednn_int8 = enable_mkldnn_int8
    onednn_int8_enabled = mkldnn_int8_enabled

    # Optimisation -----------------------------------------------------------------------------------------------------
    def switch_ir_optim(self, x: bool = True) -> None:
        """Whether passes may rewrite the program."""
        self._ir_optim = bool(x)

    def ir_optim(self) -> bool:
        """Whether passes may rewrite the program."""
        return self._ir_optim

    def switch_ir_debug(self, x: bool = True) -> None:
        """Verify the program after every pass, so that a pass that breaks it raises an error."""
        self._ir_debug = bool(x)

    def ir_debug(self) -> bool:
        """Whether the program is verified after every pass."""
        return self._ir_debug or self._passes.debug

    def switch_strict_sums(self, x: bool = True) -> None:
        """Leave out passes that change rounding or the order of float sums; Paddle has no such setting.

        Results then equal those of the program as it was saved.
        """
        self._strict_sums = bool(x)

    def strict_sums(self) -> bool:
        """Whether passes that change the order of float sums are left out."""
        return self._strict_sums

    def switch_deterministic(self, x: bool = True) -> None:
        """Leave out kernels that can't promise the same bits on every run. Not a setting of Paddle."""
        self._deterministic = bool(x)

    def deterministic(self) -> bool:
        """Whether kernels that can't promise the same bits are left out."""
        return self._deterministic

    def switch_library_attrs(self, x: bool = True) -> None:
        """Use kernels of a library only for ops that request it by an attribute: use_mkldnn, use_cudnn.

        Otherwise they are used wherever they are preferred, as in Paddle after enable_mkldnn(), which sets the
        attribute of every op; saved programs have False. Paddle has no such setting.
        """
        self._library_attrs = bool(x)

    def library_attrs(self) -> bool:
        """Whether kernels of a library run only in ops whose attribute asks for it."""
        return self._library_attrs

    def excluded_libraries(self) -> tuple[str, ...]:
        """Kernel libraries that may not run: nobody counts the memory that ONNX Runtime takes."""
        limited = Limits.of(memory=self._memory_limit).memory is not None
        return (*(() if self._mkldnn else ("onednn",)), *(("onnxruntime",) if limited else ()))

    def libraries_by_attr(self) -> tuple[str, ...]:
        """Kernel libraries that run only where an op's attribute asks for them."""
        from oprack.packs.manager import default_manager

        return tuple(default_manager().extensions.library_attrs()) if self._library_attrs else ()

    def pass_builder(self) -> PassBuilder:
        """The passes that will run with the settings as they are now."""
        from oprack.ir import registered_passes, select_passes
        from oprack.tensor import CPUPlace, CUDAPlace

        selected = select_passes(
            CUDAPlace(self._gpu_device_id) if self._use_gpu else CPUPlace(),
            excluded_libraries=(*self.excluded_libraries(), *self.libraries_by_attr()),
            strict=self._strict_sums,
            precisions=self.precisions(),
            enabled=self._passes.enabled,
        )
        return self._passes.show([p.name for p in selected], [p.name for p in registered_passes()])

    def delete_pass(self, name: str) -> None:
        """Exclude a pass."""
        self.pass_builder().delete_pass(name, stacklevel=5)

    def enable_pass(self, name: str) -> None:
        """Include a pass that runs only for those who ask for it, such as `unpad`, at its place among the others.

        Not in Paddle.

        Args:
            name: The pass; `oprack.ir.registered_passes()` lists those there are.

        Raises:
            NotFoundError: No installed pack brings it; the message lists the passes.
        """
        from oprack.ir import find_pass

        find_pass(name)
        self._passes.enable_pass(name)

    def pass_changes(self) -> list[list[object]]:
        """The changes that the client made to the list of passes."""
        return self._passes.changes()

    def set_optim_cache_dir(self, path: str | Path, max_bytes: int = _OPTIM_CACHE_BYTES) -> None:
        """Cache the optimized model in a directory, for the next process that loads the same model.

        An entry, the program and parameters that passes produced, is reused only if the bytes of the model's files, the
        versions and code of oprack and all packs, the place, the CPU and the settings are unchanged. Results are the
        same with and without the cache. The directory is created if necessary; several processes may use it at once.
        It can be deleted at any time; `oprack cache DIR --clear` empties it.

        Args:
            path: The directory, which should belong to this user alone; "" turns the cache off.
            max_bytes: Limit on the size of all entries; the least recently used are removed first. Not in Paddle.

        Raises:
            InvalidArgumentError: `path` is not a path, or `max_bytes` is negative.
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
        """How many bytes all entries of the cache may take."""
        return self._optim_cache_bytes

    def enable_memory_optim(self, x: bool = True) -> None:
        """Keep large parameters in a file, so that they take no memory besides what kernels packed of them.

        The file has no name, and lies in the folder TMPDIR, else in /var/tmp. Where it can't be written, parameters
        stay in memory, as do those that a GPU reads. Each intermediate value is always freed after its last use.

        Args:
            x: Whether to.
        """
        self._memory_optim = bool(x)

    def memory_optim_enabled(self) -> bool:
        """The last argument of enable_memory_optim."""
        return self._memory_optim

    def enable_mkldnn(self) -> None:
        """Let kernels of library "onednn" run, where a plugin brings them."""
        self._mkldnn = True

    def disable_mkldnn(self) -> None:
        """Keep kernels of library "onednn" from running."""
        self._mkldnn = False

    def mkldnn_enabled(self) -> bool:
        """Whether kernels of oneDNN may run."""
        return self._mkldnn

    def set_mkldnn_cache_capacity(self, capacity: int) -> None:
        """Accepted for compatibility: shapes are kept while they fit into the budget of `oprack.set_cache_limit`."""
        self._mkldnn_cache_capacity = int(capacity)

    def enable_onnxruntime(self) -> None:
        """Let ONNX Runtime run what it can, by the plugin oprack-onnxruntime; it does so unasked where oneDNN can't."""
        from oprack.ir import registered_passes

        if not any(p.name == _ENGINES for p in registered_passes()):
            say_once("Config.enable_onnxruntime", "it needs the plugin oprack-onnxruntime (pip install it)")
        self._passes.enable_pass(_ENGINES)

    def disable_onnxruntime(self) -> None:
        """Keep ONNX Runtime from running what oneDNN can't."""
        self._passes.deleted.add(_ENGINES)

    def onnxruntime_enabled(self) -> bool:
        """Whether ONNX Runtime may run what it can of a model."""
        return _ENGINES in self.pass_builder().all_passes()

    # The names that Paddle 3 has for them
    enable_onednn = enable_mkldnn
    disable_onednn = disable_mkldnn
    onednn_enabled = mkldnn_enabled
    set_onednn_cache_capacity = set_mkldnn_cache_capacity

    # Limits, which Paddle has not -------------------------------------------------------------------------------------
    def set_memory_limit(self, limit: int | None) -> None:
        """Bytes that the outputs of one op may take; None: as OPRACK_MEMORY_LIMIT says, else no limit.

        An op that wants more raises MemoryLimitError before it takes memory, if its shape rule can tell. Raises
        InvalidArgumentError for something else than a number of at least 0.
        """
        Limits.of(memory=limit)
        self._memory_limit = limit

    def memory_limit(self) -> int | None:
        """What set_memory_limit was given."""
        return self._memory_limit

    def set_loop_limit(self, limit: int | None) -> None:
        """How often the blocks of loops and branches may run in one run; None: as OPRACK_LOOP_LIMIT says, else no end.

        One round more raises LoopLimitError. Raises InvalidArgumentError for something else than a number from 0.
        """
        Limits.of(rounds=limit)
        self._loop_limit = limit

    def loop_limit(self) -> int | None:
        """What set_loop_limit was given."""
        return self._loop_limit

    # Reports ----------------------------------------------------------------------------------------------------------
    def enable_profile(self) -> None:
        """Print the time by op when the predictor is dropped."""
        self._profile = True

    def profile_enabled(self) -> bool:
        """Whether enable_profile was called."""
        return self._profile

    def disable_glog_info(self) -> None:
        """Say nothing about what a predictor does while it loads a model."""
        self._log = False

    def glog_info_disabled(self) -> bool:
        """Whether disable_glog_info was called."""
        return not self._log

    def switch_use_feed_fetch_ops(self, x: bool = True) -> None:
        """Inputs and outputs are handles, whether or not the program has feed and fetch ops: True is said once."""
        if x:
            say_once("Config.switch_use_feed_fetch_ops(True)", "inputs and outputs are handles")

    def use_feed_fetch_ops_enabled(self) -> bool:
        """Always False: inputs and outputs are handles."""
        return False

    def switch_specify_input_names(self, x: bool = True) -> None:
        """Inputs are found by name in any case."""
        self._specify_input_name = bool(x)

    def specify_input_name(self) -> bool:
        """What switch_specify_input_names was given; inputs are found by name in any case."""
        return self._specify_input_name

    def summary(self) -> str:
        """The settings as a table."""
        return settings_table(vars(self) | {"_ir_debug": self.ir_debug()})

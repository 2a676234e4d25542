"""Predictor: runs a model again and again through handles; pools of them, and limits of threads."""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.cache import BUDGET, cache_info
from oprack.device import DeviceContextPool, host_array
from oprack.errors import (
    InvalidArgumentError,
    NotFoundError,
    OprackError,
    PreconditionNotMetError,
    UnimplementedError,
)
from oprack.inference.config import Config
from oprack.inference.loading import load_model
from oprack.inference.parameters import ParameterScope
from oprack.inference.settings import say_once
from oprack.inference.tensor_handle import Slot, Tensor
from oprack.io.inference_model import InferenceModel
from oprack.python.implementation import without_collecting, without_denormals
from oprack.python.process_limit import ProcessLimit
from oprack.runtime import NaiveExecutor, Profiler
from oprack.runtime.feed_fetch import blamed, fed_array
from oprack.runtime.prepared_function import PreparedFunction
from oprack.runtime.profiler import in_reference
from oprack.tensor import CPUPlace, CUDAPlace, LoDTensor, Place, Scope

if TYPE_CHECKING:
    from oprack.desc import VarDesc
    from oprack.ir import Optimized
    from oprack.packs.manager import PackManager
    from oprack.runtime.prepared import PreparedProgram

_NO_LIMIT = contextlib.nullcontext()


class _Together:
    """A few context managers as one; less than contextlib.ExitStack takes counts in runs of some ten microseconds."""

    __slots__ = ("_entered", "_given")

    def __init__(self, given: Sequence[AbstractContextManager[Any]]) -> None:
        self._given, self._entered = given, list[AbstractContextManager[Any]]()

    def __enter__(self) -> None:
        try:
            for manager in self._given:
                manager.__enter__()
                self._entered.append(manager)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def __exit__(self, *error: Any) -> None:
        while self._entered:
            self._entered.pop().__exit__(*error)


class ThreadLimits:
    """Calling it returns the context manager of one run.

    Args:
        threads: How many threads libraries may use; None limits nothing.
        manager: The packs, whose libraries are limited.
    """

    def __init__(self, threads: int | None, manager: PackManager) -> None:
        self._count, self._manager = threads, manager

    def __call__(self) -> AbstractContextManager[Any]:
        return _NO_LIMIT if self._count is None else _Together([limit(self._count) for limit in self._limits])

    @cached_property
    def _limits(self) -> list[Callable[[Any], AbstractContextManager[Any]]]:
        """Functions that limit the threads of NumPy and kernel libraries; cached, as a failing import is slow."""
        found = self._manager.extensions.libraries().values()
        libraries = [library for library in found if not isinstance(library, Exception)]
        limits = [library.limit_threads for library in libraries]
        # some ten microseconds are all that a small net takes, so those that limit nothing are not asked in each run
        limits = [limit for limit in limits if not isinstance(limit(self._count), contextlib.nullcontext)]
        try:
            import threadpoolctl
        except ImportError:
            reason = "for NumPy, it needs the package threadpoolctl (pip install it)"
            say_once("Config.set_cpu_math_library_num_threads", reason)
        else:
            numpy = _loaded_math_libraries(threadpoolctl.ThreadpoolController)
            sharing = [library for library in libraries if hasattr(library, "shares_products")]

            def limit(count: int) -> AbstractContextManager[Any]:
                # to limit them takes as long as a small net: that a library might share products is no reason
                for library in sharing:
                    if library.shares_products:  # such products run on the threads that ask for them
                        return numpy.limit({"blas": 1, "openmp": count})
                return numpy.limit(count)

            limits.append(limit)
        return limits


class _LoadedMathLibraries:
    """The libraries of the process that threadpoolctl knows. To look for them takes it longer than a small net runs.

    Args:
        controller: What finds those that are loaded, and limits their threads.
    """

    def __init__(self, controller: Callable[[], Any]) -> None:
        self._find, self._found, self._modules = controller, controller(), len(sys.modules)

    def limit(self, limits: int | dict[str, int]) -> AbstractContextManager[Any]:
        """The context manager that limits them to so many threads, all of them or by their kind."""
        if self._modules != len(sys.modules):  # an import may have loaded one
            self._found, self._modules = self._find(), len(sys.modules)
        # To set a number that is set already, and to take it back, takes a fifth of the time of a net of 0.1 ms
        for library in self._found.lib_controllers:
            wanted = limits if isinstance(limits, int) else limits.get(library.user_api)
            if wanted is not None and library.num_threads != wanted:
                return ProcessLimit(partial(self._found.limit, limits=limits))
        return _NO_LIMIT


# Those of the process are the same for all its predictors and their clones
_loaded_math_libraries = cache(_LoadedMathLibraries)


class _OutputHook:
    """Observer that passes each op's outputs to a client's hook."""

    def __init__(self, hook: Callable[[str, str, Tensor], None], pool: DeviceContextPool) -> None:
        self._hook, self._pool = hook, pool

    def before_op(self, op: Any, scope: Scope) -> None:
        """Do nothing: outputs exist only after the op."""

    def after_op(self, op: Any, scope: Scope) -> None:
        for name in dict.fromkeys(n for names in op.outputs.values() for n in names):
            var = scope.find_var(name)
            if var is not None and isinstance(var.value, LoDTensor):
                slot = Slot(name, None, False)
                slot.fill(host_array(var.value, self._pool))
                slot.lod = var.value.lod
                self._hook(op.type, name, Tensor(slot))


class Predictor:
    """Runs one model. Clones share its parameters; each predictor serves one thread at a time.

    Args:
        config: The model, and how to run it.
        shared: The predictor whose parameters it shares; see `clone`.

    Raises:
        ModelError: The model can't be used; subclasses say why.
        MissingPackError: No installed pack brings some of its ops.
    """

    def __init__(self, config: Config, shared: Predictor | None = None) -> None:
        # A copy, so that later changes of the client's Config do not affect this predictor.
        self._config = Config(config)
        in_files = config.memory_optim_enabled() and not config.use_gpu()
        self._parameters: ParameterScope = shared._parameters if shared else ParameterScope(in_files)
        self._executor: NaiveExecutor
        self._model: InferenceModel
        without_collecting(self._open, shared, stays=True)
        threads = self._config.cpu_math_library_num_threads() if self._config.has_thread_limit() else None
        self._threads = ThreadLimits(threads, self._executor.manager)
        names = self._model.feed_names, self._model.fetch_names
        self._function = PreparedFunction(self._executor, self._prepared, *names, checked=True)
        block = self._model.program.global_block()
        self._inputs = {n: Slot(n, block.find_var_recursive(n), True) for n in self._model.feed_names}
        self._outputs = {n: Slot(n, block.find_var_recursive(n), False) for n in self._model.fetch_names}
        # Guards the slots of inputs and outputs. `run` never waits for it: that would hide that two threads share a
        # predictor and overwrite each other's inputs.
        self._lock = threading.Lock()
        self._is_new = True
        self._profiler: Profiler | None = None
        self._hooks: list[_OutputHook] = []
        if self._config.profile_enabled():
            self._profiler = Profiler()
            # Unlike __del__, finalize is guaranteed to run at exit as well.
            weakref.finalize(self, _print_profile, self._profiler)

    def _open(self, shared: Predictor | None) -> None:
        """Load the model, or share that of another predictor."""
        self._executor = shared._executor.clone() if shared else self._make_executor()
        self._model, self._prepared = (shared._model, self._prepare(shared._model)) if shared else self._load()

    def _load(self) -> tuple[InferenceModel, PreparedProgram]:
        """Load the model and run the passes that the Config selects; parameters that become unused are freed."""
        if in_reference() or not self._config.ir_optim():
            model = load_model(self._config, self._parameters)
            self._parameters.freeze()
        elif not self._config.optim_cache_dir():
            model, _ = self._rewrite()
        else:
            from oprack.inference.optim_cache import load_optimized

            return load_optimized(self._config, self._parameters, self._executor, self._rewrite, self._prepare)
        return model, self._prepare(model)

    def _prepare(self, model: InferenceModel) -> PreparedProgram:
        """Prepare all blocks, so that a wrong attribute is reported when the model is loaded, not by the first run."""
        return self._executor.prepare(model.program.desc).complete()

    def _rewrite(self) -> tuple[InferenceModel, Optimized]:
        from oprack.ir import registered_passes
        from oprack.ir.models import optimize_model

        model = load_model(self._config, self._parameters)
        registered = {p.name: p for p in registered_passes(self._executor.manager)}
        passes = [registered[n] for n in self._config.pass_builder().all_passes() if n in registered]
        optimized = optimize_model(model, self._parameters, self._executor, passes, self._config.ir_debug() or None)
        model.program.desc.blocks.clear()  # which refer to the program, and so would stay until the collector comes
        self._parameters.freeze()
        return optimized

    def _make_executor(self) -> NaiveExecutor:
        place: Place = CUDAPlace(self._config.gpu_device_id()) if self._config.use_gpu() else CPUPlace()
        executor = NaiveExecutor(
            place,
            excluded_libraries=self._config.excluded_libraries(),
            libraries_by_attr=self._config.libraries_by_attr(),
            deterministic=self._config.deterministic(),
            memory_limit=self._config.memory_limit(),
            loop_limit=self._config.loop_limit(),
        )
        executor.pool.get(place)  # raises now, not in the first run, if no plugin serves the place
        return executor

    # Names and handles ------------------------------------------------------------------------------------------------
    def get_input_names(self) -> list[str]:
        """Names of the inputs, in the order of the model."""
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """Names of the outputs, in the order of the model."""
        return list(self._outputs)

    def get_input_handle(self, name: str) -> Tensor:
        """The handle of an input.

        Raises:
            NotFoundError: There is none; the message lists the inputs.
        """
        return Tensor(self._slot(name, self._inputs, "input"))

    def get_output_handle(self, name: str) -> Tensor:
        """The handle of an output.

        Raises:
            NotFoundError: There is none; the message lists the outputs.
        """
        return Tensor(self._slot(name, self._outputs, "output"))

    def declared(self, name: str) -> VarDesc | None:
        """What the model declares of an input or output.

        Args:
            name: Its name.

        Returns:
            Its shape, where -1 is a size that runs choose, dtype and LoD levels; None where the model declares nothing.

        Raises:
            NotFoundError: There is none; the message lists all.
        """
        return self._slot(name, self._inputs | self._outputs, "input or output").var

    def _slot(self, name: str, slots: dict[str, Slot], what: str) -> Slot:
        if name not in slots:
            raise NotFoundError(f"the model has no {what} {name!r}; it has {', '.join(map(repr, slots)) or 'none'}")
        return slots[name]

    # Running ----------------------------------------------------------------------------------------------------------
    def run(self, inputs: Sequence[Any] | None = None) -> list[np.ndarray] | None:
        """Run on the inputs' handles, or on a list of arrays.

        Args:
            inputs: Arrays in the order of the input names; default: what the handles hold.

        Returns:
            The outputs of a call with arrays; None without.

        Raises:
            PreconditionNotMetError: An input is not set, or another thread is running this predictor.
            FeedError: An input does not fit. Ops may raise other errors.
        """
        with self._alone():
            if inputs is not None:
                self._fill(inputs)
            self._run()
            # Copies: the next run may write its outputs to the same memory.
            return [np.array(s.array, copy=True) for s in self._outputs.values()] if inputs is not None else None

    def call(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        """Run on arrays past the handles, which hold what they held: for a net of some ten microseconds a third less.

        Args:
            inputs: Arrays in the order of the input names, without LoD.

        Returns:
            The outputs, arrays of the caller's own.

        Raises:
            As `run`.
        """
        with self._alone():
            self._expect_all(inputs)
            made = self._compute(inputs)
            return [
                v if type(v) is np.ndarray else self._array(n, v)[0].copy()
                for n, v in zip(self._outputs, made, strict=True)
            ]

    def _alone(self) -> AbstractContextManager[Any]:
        """The lock of the slots, which nobody has."""
        if self._lock.locked():
            raise PreconditionNotMetError(
                "this predictor is running in another thread; give each thread predictor.clone() of its own"
            )
        return self._lock

    def _expect_all(self, inputs: Sequence[Any]) -> None:
        if len(inputs) != len(self._inputs):
            raise InvalidArgumentError(
                f"run(inputs): got {len(inputs)} arrays; the model has {len(self._inputs)} inputs: "
                f"{', '.join(self._inputs)}"
            )

    def _fill(self, inputs: Sequence[Any]) -> None:
        self._expect_all(inputs)
        for slot, value in zip(self._inputs.values(), inputs, strict=True):
            array = value.array if isinstance(value, LoDTensor) else value
            slot.fill(fed_array(slot.name, array if hasattr(array, "dtype") else np.asarray(array)))
            slot.lod = value.lod if isinstance(value, LoDTensor) else []

    def _run(self) -> None:
        values = [slot.value() for slot in self._inputs.values()]
        for slot in self._outputs.values():
            slot.array = None  # this run's outputs may take the memory of the last one's
        made = self._compute(values)
        inputs = [slot.array for slot in self._inputs.values() if isinstance(slot.array, np.ndarray)]
        for slot, value in zip(self._outputs.values(), made, strict=True):
            array, slot.lod = (value, []) if type(value) is np.ndarray else self._array(slot.name, value)
            # a view of what was fed is the caller's memory, who may write to it once the run is over
            slot.fill(array.copy() if any([np.may_share_memory(x, array) for x in inputs]) else array)

    def _compute(self, values: Sequence[Any]) -> list[Any]:
        """The outputs, as a PreparedFunction gives them."""
        try:
            made = without_denormals(self._compute_limited, values)  # as Paddle's predictors compute
        except OprackError as error:
            block = self._model.program.desc.blocks[0]
            blame = blamed(error, block, dict(zip(self._inputs, values, strict=True)))
            if blame is error:
                raise
            raise blame from error
        if self._is_new:
            self._is_new = False
            BUDGET.give_back()  # its ops ran one by one, each with memory for its results; they will not again
        return made

    def _compute_limited(self, values: Sequence[Any]) -> list[Any]:
        with self._threads(), self._profiler or _NO_LIMIT:
            return self._function(values, None, self._parameters, self._hooks)

    def _array(self, name: str, value: Any) -> tuple[np.ndarray, list[list[int]]]:
        """The array and the LoD of an output that is no bare array."""
        if isinstance(value, LoDTensor):
            return host_array(value, self._executor.pool), value.lod
        if value is None:
            raise PreconditionNotMetError(f"output {name!r} holds no value: no op of the model set it")
        raise InvalidArgumentError(
            f"output {name!r} is a {type(value).__name__}; a predictor's outputs are tensors: fetch this "
            "one with oprack.Executor().run(..., return_numpy=False)"
        )

    def register_output_hook(self, hook: Callable[[str, str, Tensor], None]) -> None:
        """Call hook(op type, variable, tensor) for every output of every op from now on."""
        self._hooks.append(_OutputHook(hook, self._executor.pool))

    # Memory and copies ------------------------------------------------------------------------------------------------
    def clone(self) -> Predictor:
        """A predictor for another thread, with its own scope and the same parameters and prepared program."""
        return Predictor(self._config, shared=self)

    __copy__ = clone

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UnimplementedError(
            "a Predictor can't be pickled or deep-copied: it holds locks and prepared programs. Pickle its Config, "
            "which create_predictor takes in another process; take predictor.clone() for another thread"
        )

    def clear_intermediate_tensor(self) -> None:
        """Do nothing: intermediate values are freed after their last use."""

    def try_shrink_memory(self) -> int:
        """Give back memory that libraries keep for the next run; returns how many bytes of it there were."""
        before = cache_info()["used"]
        BUDGET.give_back()
        return max(0, int(before - cache_info()["used"]))

    def __repr__(self) -> str:
        return f"<Predictor {list(self._inputs)} -> {list(self._outputs)} at {self._executor.place!r}>"


def _print_profile(profiler: Profiler) -> None:
    if profiler.events:
        print(profiler.table(), file=sys.stderr)


def create_predictor(config: Config) -> Predictor:
    """Create a predictor for the model of a Config; raises as Predictor.

    Args:
        config: The model, and how to run it.

    Returns:
        The predictor.
    """
    return Predictor(config)


class PredictorPool:
    """A predictor and its clones: `PredictorPool(config, 4).retrive(2)`; Paddle's spelling.

    Args:
        config: What to load, and how to run it.
        size: How many predictors.

    Raises:
        InvalidArgumentError: The size is below 1.
    """

    def __init__(self, config: Config, size: int = 1) -> None:
        if size < 1:
            raise InvalidArgumentError(f"PredictorPool(config, {size}): expected a size of at least 1")
        first = create_predictor(config)
        self._predictors = [first, *(first.clone() for _ in range(size - 1))]

    def retrive(self, index: int) -> Predictor:
        """One of the predictors.

        Raises:
            InvalidArgumentError: There is none.
        """
        if not 0 <= index < len(self._predictors):
            raise InvalidArgumentError(f"retrive({index}): the pool has predictors 0 to {len(self._predictors) - 1}")
        return self._predictors[index]

    retrieve = retrive

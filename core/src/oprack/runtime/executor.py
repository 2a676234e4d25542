"""Executor: runs a program in a scope; NaiveExecutor: the same ops over one scope, for predictors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from oprack.cache import Cache
from oprack.desc import ProgramDesc
from oprack.device import transform_value
from oprack.errors import FeedError, FeedNameError, UnimplementedError
from oprack.kernel import KernelRules
from oprack.kernel.kernel_map import switched_on
from oprack.packs.manager import PackManager, default_manager
from oprack.runtime.checks import Checks, Limits
from oprack.runtime.feed_fetch import fetch_names, fetched, set_schedules, wrong_names
from oprack.runtime.prepared import PreparedCache, PreparedProgram, run_steps
from oprack.runtime.prepared_function import PreparedFunction
from oprack.runtime.profiler import PROFILERS, current_profiler, in_reference
from oprack.runtime.run_context import RandomState, RunContext
from oprack.tensor import CPUPlace, Place, Scope

if TYPE_CHECKING:
    from oprack.desc import BlockDesc
    from oprack.program import Program

_GLOBAL_SCOPE = Scope()
_FUNCTIONS = 64
"""Programs that an executor keeps as functions: one for each list of what is fed and fetched."""


def global_scope() -> Scope:
    """The scope that `Executor.run` uses when it is called without one.

    Returns:
        The scope.
    """
    return _GLOBAL_SCOPE


class NaiveExecutor:
    """Prepares a program once and runs block 0 over a scope that the caller owns. Feeds and fetches are variables.

    Args:
        place: Where kernels run; None means the CPU.
        checks: Checks of every run.
        seed: Seed of the random ops whose own seed is 0. The same seed gives the same numbers.
        manager: The packs; None means all that are installed.
        excluded_libraries: Libraries whose kernels may not run.
        libraries_by_attr: Libraries whose kernels run only in ops whose attribute asks for them (use_mkldnn for
            "onednn", use_cudnn for "cudnn"). Kernels of other libraries run wherever they are the best, since Paddle
            writes False into every op.
        deterministic: Whether to leave out kernels that can't promise the same bits on every run. None means what
            OPRACK_DETERMINISTIC says, or no.
        prepared: Whether blocks run through plans, in which all choices are made. Otherwise they run op by op on the
            reference path, made anew on every run. Checks, profilers and observers always see the ops one by one.
        memory_limit: How many bytes the outputs of one op may take, by its shape rule, before the kernel runs. None
            means what the environment variable OPRACK_MEMORY_LIMIT says, or no limit.
        loop_limit: How often the blocks of loops and branches may run in one run. None means what OPRACK_LOOP_LIMIT
            says, or no limit.

    Attributes:
        changes: How often an attribute was set; what a function knows of an executor goes with the number.
    """

    changes = 0

    def __init__(
        self,
        place: Place | None = None,
        *,
        checks: Checks | None = None,
        seed: int = 0,
        manager: PackManager | None = None,
        excluded_libraries: Sequence[str] = (),
        libraries_by_attr: Sequence[str] = (),
        deterministic: bool | None = None,
        prepared: bool = True,
        memory_limit: int | None = None,
        loop_limit: int | None = None,
    ) -> None:
        self.prepared = prepared
        self.place = place or CPUPlace()
        self.manager = manager or default_manager()
        self.checks = checks or Checks()
        self.limits = Limits.of(memory_limit, loop_limit)
        self.random = RandomState(seed)
        if deterministic is None:
            deterministic = switched_on("OPRACK_DETERMINISTIC")
        self.rules = KernelRules(excluded_libraries, libraries_by_attr, deterministic=deterministic)
        self._plain_rules = KernelRules(excluded_libraries, deterministic=deterministic, plain=True)
        self.pool = self.manager.device_contexts
        self._cache = PreparedCache()
        self._functions = Cache(_FUNCTIONS)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        super().__setattr__("changes", self.changes + 1)

    def clone(self) -> Self:
        """An executor for another thread: it shares what was prepared, but not the state of the random numbers."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.random = RandomState(self.random.seed)
        twin._functions = Cache(_FUNCTIONS)
        return twin

    __copy__ = clone

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UnimplementedError(
            f"{type(self).__name__} can't be pickled or deep-copied: it holds locks and prepared programs. Make "
            "one where it is needed, or take executor.clone() for another thread; programs and scopes can be pickled"
        )

    def prepare(
        self,
        program: Program | ProgramDesc,
        scope: Scope | None = None,
        block_id: int = 0,
        with_feed_fetch: bool = True,
    ) -> PreparedProgram:
        """Make the operators of a program, for `run_prepared`.

        Args:
            program: The program.
            scope: Gets the block's variables now, so that values can be set in it; None leaves that to the run.
            block_id: The block to run.
            with_feed_fetch: Whether its feed and fetch ops run. When they are left out, which is logged at debug level,
                a loaded model runs on values that are set as variables.

        Raises:
            MissingPackError: No pack brings some ops. The message lists all of them.
            AttributeValueError: An attribute of an op is missing or out of range.
            InvalidArgumentError: The program has no such block.
        """
        desc = program if isinstance(program, ProgramDesc) else program.desc
        prepared = self._cache.get(desc, self.manager, self.place, block_id, with_feed_fetch)
        if scope is not None:
            prepared.main.create_variables(scope)
        return prepared

    def check(self, desc: ProgramDesc) -> None:
        """Check that a program can be run, without running it.

        Raises:
            MissingPackError: No pack brings some ops.
            BlockCycleError: Blocks run each other in a circle.
            BlockDepthError: Blocks are nested too deep.
        """
        PreparedProgram(desc, self.manager, self.place)

    def run_prepared(
        self, program: PreparedProgram, scope: Scope, keep: Sequence[str] | None = None, observers: Sequence[Any] = ()
    ) -> None:
        """Run the ops of the prepared block.

        Args:
            program: What `prepare` returned.
            scope: Where they run. It has the persistable variables, which `prepare` creates.
            keep: Local variables that are read afterwards; the values of all others are freed after their last use.
                None keeps everything.
            observers: Observers of this run, besides those of packs.
        """
        context = self.context(program, observers)
        if not context.planned:
            program.main.create_variables(scope)
        # infinities and NaN are values like others; Checks(nan_inf=True) finds the op that makes them
        with np.errstate(all="ignore"), context.device.activate():
            if self.place.kind != "cpu":
                self._move_inputs(program, scope)
            run_steps(context, program.main, scope, keep)

    def context(self, program: PreparedProgram, observers: Sequence[Any] = ()) -> RunContext:
        """The state of one run of a program, with these observers besides those of packs."""
        context = RunContext(
            place=self.place,
            device=self.pool.get(self.place),
            pool=self.pool,
            program=program,
            random=self.random,
            checks=self.checks,
            profiler=current_profiler(),
            observers=[*self.manager.extensions.observers(), *observers],
            rules=self._plain_rules if in_reference() else self.rules,
            limits=self.limits,
        )
        context.planned = self.runs_plans and not (PROFILERS.stack or observers)
        return context

    @property
    def runs_plans(self) -> bool:
        """Whether runs take the plans of blocks where no profiler and no observer of their own sees the ops."""
        return self.prepared and not (self.checks or self.manager.extensions.observers())

    def _move_inputs(self, program: PreparedProgram, scope: Scope) -> None:
        """What the program reads from outside moves to the place for good: the first run copies the parameters.

        A clone in another thread, with a stream of its own, may read them next, so the copies are waited for.
        """
        moved = False
        for name in program.read_names:
            var = scope.find_var(name)
            if var is not None and var.value is not None:
                value = transform_value(var.value, self.place, self.pool)
                if value is not var.value:
                    var.value, moved = value, True
        if moved:
            self.pool.get(self.place).synchronize()


class Executor(NaiveExecutor):
    """Feeds, runs and fetches: `Executor(CPUPlace()).run(program, feed={"x": a}, fetch_list=["y"])`.

    Args:
        place: Where kernels run; None means the CPU.
        checks: Checks of every run.
        seed: Seed of the random ops whose own seed is 0. The same seed gives the same numbers.
        manager: The packs; None means all that are installed.
        excluded_libraries: Libraries whose kernels may not run.
        libraries_by_attr: Libraries whose kernels run only in ops whose attribute asks for them (use_mkldnn for
            "onednn", use_cudnn for "cudnn"). Kernels of other libraries run wherever they are the best, since Paddle
            writes False into every op.
        deterministic: Whether to leave out kernels that can't promise the same bits on every run.
        prepared: Whether blocks run through plans, in which all choices are made. Otherwise they run op by op on the
            reference path, made anew on every run. Checks, profilers and observers always see the ops one by one.
        memory_limit: How many bytes the outputs of one op may take, by its shape rule, before the kernel runs. None
            means what the environment variable OPRACK_MEMORY_LIMIT says, or no limit.
        loop_limit: How often the blocks of loops and branches may run in one run. None means what OPRACK_LOOP_LIMIT
            says, or no limit.
    """

    def run(
        self,
        program: Program | ProgramDesc,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Sequence[Any] | None = None,
        scope: Scope | None = None,
        return_numpy: bool = True,
    ) -> list[Any]:
        """Run block 0.

        Args:
            program: The program.
            feed: Values by variable: array, LoDTensor, SelectedRows or (array, LoD). A name that the program lacks is
                an error.
            fetch_list: Names of any variables of block 0, or objects with a `name`; None means the program's own fetch
                ops.
            scope: Holds the persistable variables; None means the global scope. Temporaries live in a child of it that
                is dropped afterwards.
            return_numpy: Whether to return NumPy arrays, which makes an output with LoD an error, instead of
                LoDTensors, SelectedRows and LoDTensorArrays.

        Returns:
            The fetched values, in order.

        Raises:
            FeedError: What is fed does not fit the program; a class derived from it says how.
            FetchNameError: A variable is unknown, or no op of the run set it.
            MissingPackError: No pack brings some ops.
            OpError: An op failed. Ops may raise other errors of oprack as well.
        """
        desc: ProgramDesc = program if isinstance(program, ProgramDesc) else program.desc
        if feed is None:
            feed = {}
        elif type(feed) is not dict and not isinstance(feed, Mapping):
            raise FeedError(f"feed is a {type(feed).__name__}; expected a mapping, such as {{'x': array}}")
        function = self._function(desc, feed, fetch_list)
        outer = scope if scope is not None else _GLOBAL_SCOPE
        if not isinstance(program, ProgramDesc) and program.schedules:
            set_schedules(desc.blocks[0], program.schedules, outer)
        made = function(list(feed.values()), None, outer)
        if return_numpy and all([type(value) is np.ndarray for value in made]):
            return made  # arrays of the caller's own
        block, names = desc.blocks[0], function.outputs
        return [self._fetched(v, name, return_numpy, block) for v, name in zip(made, names, strict=True)]

    def _fetched(self, value: Any, name: str, return_numpy: bool, block: BlockDesc) -> Any:
        return fetched(value, name, block, self.pool, return_numpy)

    def _function(
        self, desc: ProgramDesc, feed: Mapping[str, Any], fetch_list: Sequence[Any] | None
    ) -> PreparedFunction:
        """The program as a function of what is fed."""
        program = (
            self._cache.get(desc, self.manager, self.place)
            if self.prepared
            else PreparedProgram(desc, self.manager, self.place)
        )
        asked = fetch_list
        if asked is not None and type(asked) is not str:
            asked = tuple([n if type(n) is str else getattr(n, "name", n) for n in asked])
        key = id(desc), asked, *feed
        try:
            function: PreparedFunction | None = self._functions[key]
        except TypeError:  # something else than names, of which will be told
            function = None
        if function is None or function.program is not program:
            outputs = fetch_names(desc.blocks[0], fetch_list)
            _check_inputs(program, feed)
            function = PreparedFunction(self, program, list(feed), outputs, checked=True)
            if self.prepared:
                self._functions[key] = function
        return function


def _check_inputs(program: PreparedProgram, given: Collection[str]) -> None:
    """Raise FeedNameError unless what is given are the program's inputs, and variables."""
    feeds = program.block(0).feeds
    inputs = list(dict.fromkeys(name for _, name in feeds.columns))
    missing = [n for n in inputs if n not in given]
    unknown = [n for n in given if feeds.block.find_var_recursive(n) is None]
    if missing or unknown:
        raise FeedNameError(wrong_names(feeds.block, inputs, missing, unknown))

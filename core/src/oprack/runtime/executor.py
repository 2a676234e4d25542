"""Executor: runs a program in a scope; NaiveExecutor: the same ops over one scope, for predictors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from oprack.desc import ProgramDesc
from oprack.device import host_array, transform_rows, transform_value
from oprack.errors import FeedError, FeedNameError, FetchNameError, InvalidArgumentError, UnimplementedError
from oprack.kernel import KernelRules
from oprack.packs.manager import PackManager, default_manager
from oprack.runtime.feed_fetch import FeedOps, as_fed_value, fetch_columns, set_feeds
from oprack.runtime.limits import Limits
from oprack.runtime.prepared import PreparedCache, PreparedProgram
from oprack.runtime.profiler import current_profiler
from oprack.runtime.random import RandomState
from oprack.runtime.run_block import run_steps
from oprack.runtime.run_context import Checks, RunContext
from oprack.runtime.schedules import set_schedules
from oprack.tensor import CPUPlace, LoDTensor, LoDTensorArray, Place, Scope, SelectedRows

if TYPE_CHECKING:
    from oprack.desc import BlockDesc
    from oprack.program import Program

_GLOBAL_SCOPE = Scope()
Result = TypeVar("Result")


def global_scope() -> Scope:
    """The scope that `Executor.run` takes when none is given."""
    return _GLOBAL_SCOPE


class NaiveExecutor:
    """Prepares a program once and runs block 0 over a scope that the caller owns; feeds and fetches are variables.

    place: where kernels run. checks: see Checks. seed: of the random ops whose own seed is 0; the same seed gives the
    same numbers. manager: the packs; default: all that are installed. excluded_libraries: whose kernels may not run.
    libraries_by_attr: whose kernels run only in ops whose attribute asks for them (use_mkldnn for "onednn", use_cudnn
    for "cudnn"); those of other libraries run wherever they are the best, since Paddle writes False into every op.
    deterministic: leave out kernels that can't promise the same bits on every run.
    prepared: run blocks through plans, which keep every choice for the next run; False: op by op on the reference path,
    made anew on every run. Checks, profilers and observers always see the ops one by one. memory_limit: bytes that the
    outputs of one op may take, told from its shape rule before they are made; loop_limit: how often the blocks of loops
    and branches may run in one run. None: as the environment variables OPRACK_MEMORY_LIMIT and OPRACK_LOOP_LIMIT say,
    else no limit.
    """

    def __init__(
        self,
        place: Place | None = None,
        *,
        checks: Checks | None = None,
        seed: int = 0,
        manager: PackManager | None = None,
        excluded_libraries: Sequence[str] = (),
        libraries_by_attr: Sequence[str] = (),
        deterministic: bool = False,
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
        self.rules = KernelRules(excluded_libraries, libraries_by_attr, deterministic=deterministic)
        self.pool = self.manager.device_contexts
        self._cache = PreparedCache()

    def clone(self) -> Self:
        """An executor for another thread: it shares what was prepared, but not the state of the random numbers."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.random = RandomState(self.random.seed)
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
        """The program with its operators made, for run_prepared.

        scope: gets the block's variables now, so that values can be set in it. block_id: the block to run.
        with_feed_fetch: False leaves its feed and fetch ops out, and logs each at debug level: a loaded model then runs
        on values that are set as variables. Raises MissingPackError that lists every op type that no pack brings,
        AttributeValueError, InvalidArgumentError for a block that the program lacks.
        """
        desc = program if isinstance(program, ProgramDesc) else program.desc
        prepared = self._cache.get(desc, self.manager, self.place, block_id, with_feed_fetch)
        if scope is not None:
            prepared.main.create_variables(scope)
        return prepared

    def check(self, desc: ProgramDesc) -> None:
        """Raise as `prepare` when the program can't be run: ops that no pack brings, blocks in a circle or too deep."""
        PreparedProgram(desc, self.manager, self.place)

    def run_prepared(
        self,
        program: PreparedProgram,
        scope: Scope,
        keep: Sequence[str] | None = None,
        observers: Sequence[Any] = (),
    ) -> None:
        """Run the ops of the prepared block in `scope`, which has its persistable variables (`prepare` makes them).

        keep: variables to be read afterwards; the values of all other local ones are dropped after their last use.
        None keeps everything. observers: besides those of packs.
        """
        device = self.pool.get(self.place)
        context = RunContext(
            place=self.place,
            device=device,
            pool=self.pool,
            program=program,
            random=self.random,
            checks=self.checks,
            profiler=current_profiler(),
            observers=[*self.manager.observers(), *observers],
            rules=self.rules,
            limits=self.limits,
        )
        context.planned = self.prepared and not (context.checks or context.profiler or context.observers)
        if not context.planned:
            program.main.create_variables(scope)
        # infinities and NaN are values like others; Checks(nan_inf=True) finds the op that makes them
        with np.errstate(all="ignore"), device.activate():
            if self.place.kind != "cpu":
                self._move_inputs(program, scope)
            run_steps(context, program.main, scope, keep)

    def run_once(
        self,
        program: PreparedProgram,
        outer: Scope,
        feeds: dict[str, Any],
        keep: Sequence[str] | None,
        read: Callable[[Scope], Result],
        observers: Sequence[Any] = (),
    ) -> Result:
        """Run the prepared block in a scope of this run alone, a child of `outer`; return what `read` takes from it.

        Persistable variables live in `outer`; nothing else is left for the next run. feeds: values by variable, as
        as_fed_value returns them. keep, observers: see run_prepared.
        """
        local = outer.new_scope()
        try:
            block = program.main
            block.create_persistable(local)
            set_feeds(block.feeds, feeds, local)
            self.run_prepared(program, local, keep, observers)
            return read(local)
        finally:
            outer.delete_scope(local)

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
    """Feeds, runs and fetches: `Executor(CPUPlace()).run(program, feed={"x": a}, fetch_list=["y"])`."""

    def run(
        self,
        program: Program | ProgramDesc,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Sequence[Any] | None = None,
        scope: Scope | None = None,
        return_numpy: bool = True,
    ) -> list[Any]:
        """Run block 0 and return the fetched values, in order.

        feed: name -> array, LoDTensor, SelectedRows or (array, LoD); a name that the program lacks is an error.
        fetch_list: names (or objects with a `name`) of any variable of block 0; None = the program's own fetch ops.
        scope: holds the persistable variables; temporaries live in a child that is dropped afterwards.
        return_numpy: plain arrays; an output with LoD then is an error. False: LoDTensor, SelectedRows, LoDTensorArray.
        Raises FeedError of several kinds, FetchNameError, MissingPackError, and what ops raise.
        """
        desc: ProgramDesc = program if isinstance(program, ProgramDesc) else program.desc
        block = desc.blocks[0]
        names = self._fetch_names(block, fetch_list)
        prepared = self.prepare(desc) if self.prepared else PreparedProgram(desc, self.manager, self.place)
        outer = scope if scope is not None else global_scope()
        if not isinstance(program, ProgramDesc):
            set_schedules(block, program.schedules, outer)
        return self.run_once(
            prepared,
            outer,
            self._fed(prepared.block(0).feeds, feed),
            names if self.prepared else None,
            lambda local: [self._fetched(local, name, return_numpy, block) for name in names],
        )

    def _fetch_names(self, block: BlockDesc, fetch_list: Sequence[Any] | None) -> list[str]:
        if fetch_list is None:
            return [name for _, name in fetch_columns(block)]
        if isinstance(fetch_list, str):
            raise FetchNameError(f"fetch_list is the string {fetch_list!r}; expected a list of names: [{fetch_list!r}]")
        names = [n if isinstance(n, str) else getattr(n, "name", n) for n in fetch_list]
        for name in names:
            if not isinstance(name, str):
                raise FetchNameError(f"fetch_list has {name!r}; expected names of variables, or objects with a `name`")
            if block.find_var_recursive(name) is None:
                import difflib

                near = difflib.get_close_matches(name, block.vars, 3)
                raise FetchNameError(
                    f"fetch {name!r}: block 0 of the program has no such variable"
                    + (f"; did you mean {', '.join(map(repr, near))}?" if near else f" among its {len(block.vars)}")
                )
        return names

    def _fed(self, feeds: FeedOps, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """The values to feed, checked."""
        block = feeds.block
        feed = {} if given is None else given
        if not isinstance(feed, Mapping):
            raise FeedError(f"feed is a {type(feed).__name__}; expected a mapping, such as {{'x': array}}")
        inputs = list(dict.fromkeys(name for _, name in feeds.columns))
        missing = [n for n in inputs if n not in feed]
        unknown = [n for n in feed if block.find_var_recursive(n) is None]
        if missing or unknown:
            known = inputs or [v.name for v in block.vars.values() if v.need_check_feed]
            raise FeedNameError(
                (f"feed: {', '.join(map(repr, unknown))} is no variable of the program. " if unknown else "")
                + (f"feed: input {', '.join(map(repr, missing))} was not fed. " if missing else "")
                + (f"The program's inputs are {', '.join(map(repr, known))}." if known else "It has no feed ops.")
            )
        return {n: as_fed_value(n, v, block.find_var_recursive(n)) for n, v in feed.items()}

    def _fetched(self, scope: Scope, name: str, return_numpy: bool, block: BlockDesc) -> Any:
        var = scope.find_var(name)
        value = var.value if var is not None else None
        if value is None:
            raise FetchNameError(
                f"fetch {name!r}: no op of the run set it; it is declared in the program, but its op did not run or "
                "left this output out"
            )
        declared = block.find_var_recursive(name)
        if isinstance(value, LoDTensorArray):
            return [self._host(t, return_numpy, name, True) for t in value]
        return self._host(value, return_numpy, name, bool(declared and declared.persistable))

    def _host(self, value: Any, return_numpy: bool, name: str, copied: bool) -> Any:
        """The value in host memory; copied when the scope goes on using it."""
        if isinstance(value, SelectedRows):
            return transform_rows(value, CPUPlace(), self.pool)
        if not isinstance(value, LoDTensor):
            return value
        array = host_array(value, self.pool)
        if (copied or value.shared) and value.place.kind == "cpu":  # from a device it was copied already
            array = array.copy()
        if not return_numpy:
            return LoDTensor(array, value.lod, check=False)
        if value.lod:
            raise InvalidArgumentError(
                f"fetch {name!r}: it has LoD {value.lod if len(str(value.lod)) < 80 else '...'}, which a plain array "
                "can't hold; pass return_numpy=False to get LoDTensors"
            )
        return array

"""What the operators of a run share: RunContext, and the state of the random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from oprack.device import DeviceContext, DeviceContextPool
from oprack.errors import NotFoundError
from oprack.kernel import ANY_KERNEL, KernelRules
from oprack.python.records import dataclass
from oprack.runtime.checks import NO_LIMITS, Checks, Limits
from oprack.tensor import Place

if TYPE_CHECKING:
    from oprack.cache import Cache
    from oprack.desc import ProgramDesc
    from oprack.packs.manager import PackManager
    from oprack.runtime.profiler import Profiler


class RandomState:
    """Seed and how often each op has drawn; `state()` and `load_state()` make a checkpoint of it.

    The generator of draw k of an op is Philox keyed by (seed, op) with counter k: independent of other ops and of the
    order in which they run.

    Args:
        seed: The seed.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = int(seed)
        self._draws: dict[str, int] = {}

    def generator(self, op_key: str, seed: int = 0) -> np.random.Generator:
        """Generator of the next draw of op `op_key`; a seed other than 0 (the op's own) gives the same draw always.

        Args:
            op_key: Names the op in its program.
            seed: The op's own seed.

        Returns:
            A NumPy generator.
        """
        # Paddle's rule: an op's own seed gives the same numbers in every run, 0 those of the program's generator.
        if seed:
            return np.random.Generator(np.random.Philox(key=np.uint64(seed & 0xFFFFFFFFFFFFFFFF)))
        import hashlib  # most programs draw nothing, and its import opens a library

        draw = self._draws.get(op_key, 0)
        self._draws[op_key] = draw + 1
        op_hash = int.from_bytes(hashlib.blake2b(op_key.encode(), digest_size=8).digest(), "little")
        # The draw is the highest word of the counter: each draw has 2**192 numbers before it meets the next one's.
        key = np.array([self.seed & 0xFFFFFFFFFFFFFFFF, op_hash], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 0, 0, draw], dtype=np.uint64)))

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"seed": self.seed, "draws": dict(self._draws)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.seed, self._draws = int(state["seed"]), {str(k): int(v) for k, v in state["draws"].items()}


class RunProgram(Protocol):
    """What a run asks of its program.

    Attributes:
        manager: The packs.
        block_id: The block that the run starts with.
        source: The program as the caller has it.
        last_readers: For each type of op and variable that such an op reads, (block, position) of the last one.
    """

    manager: PackManager
    block_id: int

    @property
    def source(self) -> ProgramDesc: ...

    @property
    def last_readers(self) -> dict[tuple[str, str], tuple[int, int]]: ...

    def block(self, index: int) -> Any:
        """A block, with its operators."""


@dataclass
class RunContext:
    """Place, device, random state, checks and observers of one run.

    Attributes:
        place: Where kernels run.
        device: The context of that place.
        pool: The contexts of all places.
        program: What is run.
        random: The state of the random numbers.
        checks: Checks of every op.
        profiler: Measures ops; None: nobody does.
        observers: Told of every op.
        rules: Which kernels may run.
        limits: Bounds of memory and of rounds of loops.
        planned: Whether blocks run through their plans; otherwise they run op by op on the reference path.
        recorder: Called with what each op decided on the reference path, as `plan.record.OpRecord.of` takes it, while a
            plan is recorded.
        rounds: How often blocks of loops and branches have run so far.
        shapes_met: Number of this combination of input shapes of the segment; None when it is new, so that shape rules
            must run.
        shapes_after: New output shapes that only kernels know, as (table that numbers them, (preceding number,
            shapes)).
        shapes_settled: Whether the results of the shape rules depend on these shapes alone, so that they need not run
            again.
        made: What generated code returns, until it is in the scope; of a segment that writes to variables of scopes
            above.
    """

    place: Place
    device: DeviceContext
    pool: DeviceContextPool
    program: RunProgram
    random: RandomState = field(default_factory=RandomState)
    checks: Checks = Checks()
    profiler: Profiler | None = None
    observers: Sequence[Any] = ()
    rules: KernelRules = ANY_KERNEL
    limits: Limits = NO_LIMITS
    planned: bool = False
    recorder: Callable[..., None] | None = None
    rounds: int = 0
    shapes_met: int | None = None
    shapes_after: list[tuple[Cache, Any]] = field(default_factory=list)
    shapes_settled: bool = True
    made: list[Any] | None = None

    def note_new_shapes(self, numbers: Cache, key: tuple[Any, ...]) -> None:
        """Note that a kernel returned shapes for the first time behind the shapes that this segment has read so far."""
        self.shapes_after.append((numbers, key))

    def at_place(self, kind: str) -> RunContext:
        """The same run at the first device of another sort, for one op.

        Raises:
            NotFoundError: No class of places has this name.
        """
        for place_class in _subclasses(Place):
            if place_class.kind == kind:
                place = place_class()
                return replace(self, place=place, device=self.pool.get(place))
        raise NotFoundError(f"place {kind!r}: no class of places has this kind; import the plugin that brings it")


def _subclasses(base: type[Place]) -> list[type[Place]]:
    return [found for direct in base.__subclasses__() for found in (direct, *_subclasses(direct))]

"""What the operators of a run share: RunContext, the state of the random numbers, and the KernelContext of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.device import DeviceContext, DeviceContextPool
from oprack.errors import NotFoundError
from oprack.kernel import ANY_KERNEL, KernelContext, KernelRules
from oprack.records import dataclass
from oprack.runtime.checks import NO_LIMITS, Checks, Limits
from oprack.tensor import Place

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager
    from oprack.runtime.kernel_call import OpRecord
    from oprack.runtime.kernel_operator import OperatorWithKernel
    from oprack.runtime.prepared import PreparedProgram
    from oprack.runtime.profiler import Profiler
    from oprack.tensor.lod_tensor import LoD


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
        """What a checkpoint keeps.

        Returns:
            The state.
        """
        return {"seed": self.seed, "draws": dict(self._draws)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state.

        Args:
            state: What `state` gave.
        """
        self.seed, self._draws = int(state["seed"]), {str(k): int(v) for k, v in state["draws"].items()}


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
        recorder: Receives the decisions of each op on the reference path while a plan is recorded.
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
    program: PreparedProgram
    random: RandomState = field(default_factory=RandomState)
    checks: Checks = Checks()
    profiler: Profiler | None = None
    observers: Sequence[Any] = ()
    rules: KernelRules = ANY_KERNEL
    limits: Limits = NO_LIMITS
    planned: bool = False
    recorder: list[OpRecord] | None = None
    rounds: int = 0
    shapes_met: int | None = None
    shapes_after: list[tuple[dict[Any, int], Any]] = field(default_factory=list)
    shapes_settled: bool = True
    made: list[Any] | None = None

    def meet(self, numbers: dict[Any, int], key: tuple[Any, ...]) -> None:
        """Note output shapes that a kernel has not returned before for what this segment has read so far."""
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


class OperatorContext(KernelContext):
    """The KernelContext of an operator in a run.

    Args:
        op: The operator.
        lods: Offsets of the inputs by slot; slots without LoD may be left out.
        run: The run.
        attrs: All attributes, where the program takes some from variables; None means the operator's.
    """

    __slots__ = ("_op", "_run")

    def __init__(
        self,
        op: OperatorWithKernel,
        lods: Mapping[str, Sequence[LoD]],
        run: RunContext,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        # What the operator and the run know is asked of them: most kernels ask for none of it.
        self._op, self._run, self._lods = op, run, lods
        self._attrs = op.attrs if attrs is None else attrs

    @property
    def op_type(self) -> str:
        return self._op.type

    @property
    def rules(self) -> KernelRules:
        return self._run.rules

    @property
    def device(self) -> DeviceContext:
        return self._run.device

    @property
    def packs(self) -> PackManager:
        manager: PackManager = self._run.program.manager
        return manager

    def wants(self, slot: str, i: int = 0) -> bool:
        return self._op.wants(slot, i)

    def is_read(self, *slots: str) -> bool:
        return any(self._op.is_read(slot) for slot in slots)

    def input_count(self, slot: str) -> int:
        return len(self._op.inputs.get(slot, ()))

    def output_count(self, slot: str) -> int:
        return len(self._op.outputs.get(slot, ()))

    def output_dtype(self, slot: str) -> str | None:
        return self._op.output_dtype(slot)

    def generator(self, seed: int = 0) -> np.random.Generator:
        return self._run.random.generator(self._op.key, seed)

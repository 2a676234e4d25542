"""How a kernel specializes itself for one op of a plan, alone or together with its neighbours in a stretch.

`specialize` of a kernel is called once for each op of a plan and returns a function, which may have two attributes:

`stretches`: the library's StretchMaker. A stretch is a sequence of neighbouring ops that a library runs by one call of
its own. A plan offers the maker neighbouring ops whose functions all have it, and views between these ops, whichever
pack makes them.

`prepare`: called for shapes that are new, before the first of several neighbouring ops runs. It takes the arguments of
the function: the parameters, and arrays of the shapes and strides to come whose elements are not computed yet. It
prepares what takes long, perhaps in other threads, and returns arrays of the shapes and strides of the results, also
without computed elements, or None where it can't tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from oprack.python.records import dataclass


@dataclass(frozen=True)
class KernelSpecialization:
    """One op that a plan will run again and again, as the `specialize` of its kernel sees it.

    Attributes:
        op_type: The op.
        attrs: All attributes, defaults included.
        dtypes: For each present input slot the dtype of each of its inputs, None for an absent one.
        xp: NumPy or CuPy.
        has_lod: Whether an input has LoD.
    """

    op_type: str
    attrs: Mapping[str, Any]
    dtypes: Mapping[str, tuple[Any, ...]]
    xp: Any
    has_lod: bool = False

    def has_input(self, slot: str) -> bool:
        """Whether the op has an input in this slot."""
        return any(dtype is not None for dtype in self.dtypes.get(slot, ()))


Specialize = Callable[[KernelSpecialization], "Callable[..., Any] | None"]
"""What `@kernel(..., specialize=f)` takes."""

Argument: TypeAlias = "int | list[int | None] | None"
"""The number of an array, None for an absent one, or a list of these for a duplicable slot."""


@dataclass(frozen=True)
class StretchStep:
    """One op of a stretch.

    Arrays have numbers: first those that enter the stretch, then the results of one step after the other.

    Attributes:
        op_type: The op.
        variable: The name of the variable that it writes, for messages.
        function: What `specialize` of its kernel returned; for a view, the kernel with its attributes bound.
        arguments: Its positional arguments.
        results: How many arrays it returns, those of lists counted one by one.
        smallest: The kernel's `min_numel`: with fewer elements in its first argument, `otherwise` computes the op.
        is_view: Whether the kernel has view=True and no `stretches`: its results may be views of its first argument,
            copies, or anything else.
        otherwise: The kernels that take over where the function declines or its first argument is too small, as one
            function of the same arguments; None where there are none, or none that take such arguments alone.
    """

    op_type: str
    variable: str
    function: Callable[..., Any]
    arguments: Sequence[Argument]
    results: int
    smallest: int
    is_view: bool = False
    otherwise: Callable[..., Any] | None = None


JoinedSteps: TypeAlias = Callable[..., "Sequence[Any] | None"]
"""Takes the arrays that enter and returns those that leave, in the order of their numbers, or None when the steps have
to run one by one. In neither case it writes to an array that entered.

It may have an attribute `begin`, called with the arrays that enter before the first step is prepared for shapes that
are new. It returns a BegunSteps, or None."""


class BegunSteps(Protocol):
    """Steps that may run while those behind them are prepared. In the end it is called in the place of the joined
    function, with the same arrays, or closed."""

    def advance(self) -> None:
        """Take note that the next step is prepared, or another op behind the last one."""

    def __call__(self, *arrays: Any) -> Sequence[Any] | None:
        """What the joined function returns."""

    def close(self) -> Any:
        """Return when none of the steps runs any more."""


class StretchMaker(Protocol):
    """Makes stretches of a library's kernels."""

    def join(self, steps: Sequence[StretchStep], entering: int, leaving: Sequence[int]) -> JoinedSteps | None:
        """Make one function of several steps.

        Args:
            steps: At least two.
            entering: How many arrays enter.
            leaving: Numbers of the results that are read after the stretch.

        Returns:
            The function, or None where it would gain nothing. A plan calls it for shapes that it has met before, or
            after a dry run of all steps, and the kernels one by one otherwise.
        """

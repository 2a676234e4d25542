"""What is known of ops before their arrays are there, for kernels that specialize themselves, alone or in stretches.

A stretch is a row of ops in a plan that a kernel library runs by one call of its own. A function that a kernel's
`specialize` returned may have an attribute `stretches`, one object for all such functions of a library, which follows
the protocol StretchMaker. A plan then offers it ops in a row that all have it, with the views between them, whichever
pack makes these.

Such a function may also have an attribute `prepare`, which a plan calls with what the function takes, for shapes that
are new and before the first of the ops in a row runs: with arrays of the shapes and strides that will come, of which
`prepare` reads none but the parameters. It makes ready what takes long, or has it made by other threads, and returns
arrays like those that the function will return, whose elements nobody computed; None where it can't tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from oprack.records import dataclass


@dataclass(frozen=True)
class KernelSpecialization:
    """One op that a plan will run again and again, as the `specialize` of its kernel sees it.

    Attributes:
        op_type: The op.
        attrs: All attributes, defaults included.
        dtypes: For each present input slot the dtype of each of its inputs, None for an absent one.
        xp: NumPy or CuPy.
    """

    op_type: str
    attrs: Mapping[str, Any]
    dtypes: Mapping[str, tuple[Any, ...]]
    xp: Any

    def given(self, slot: str) -> bool:
        """Whether the op has an input in this slot.

        Args:
            slot: The slot.

        Returns:
            Whether it has.
        """
        return any(dtype is not None for dtype in self.dtypes.get(slot, ()))


Specialize = Callable[[KernelSpecialization], "Callable[..., Any] | None"]


Argument: TypeAlias = "int | list[int | None] | None"
"""The number of an array, None for an absent one, or a list of these for a duplicable slot."""


@dataclass(frozen=True)
class StretchStep:
    """One op of a stretch.

    Arrays have numbers: first those that enter the stretch, then the results of one step after the other.

    Attributes:
        op_type: The op.
        variable: What it writes, for messages.
        function: What `specialize` of its kernel returned; of a view the kernel, with its attributes.
        arguments: Its positional arguments.
        results: How many arrays it returns, those of lists counted one by one.
        smallest: Elements of its first argument below which another kernel computes the op.
        is_view: Whether the kernel is one with view=True that knows no stretches: its results may be views of its first
            argument, copies, or anything else.
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
"""Takes the arrays that enter and returns those that leave, in the order of their numbers; None when the steps have to
run one by one. It has written to nothing that entered, then or otherwise."""


class StretchMaker(Protocol):
    """What makes stretches of a library's kernels."""

    def join(self, steps: Sequence[StretchStep], entering: int, leaving: Sequence[int]) -> JoinedSteps | None:
        """Make one function of several steps.

        Args:
            steps: At least two.
            entering: How many arrays enter.
            leaving: Numbers of the results that are read after the stretch.

        Returns:
            The function, or None where it would gain nothing. A plan calls it for shapes that it has met before, and
            the kernels one by one otherwise.
        """

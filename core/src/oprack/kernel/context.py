"""What a kernel may ask about the op that is running, which kernels a run may choose among, and how one declines."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from oprack.device import DeviceContext
    from oprack.tensor import Place
    from oprack.tensor.lod_tensor import LoD

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
else:
    # whoever only names the type needs no array library for it
    Array: TypeAlias = Any
"""An array of the place: NumPy's on the host, CuPy's on a GPU. CuPy brings no types, so a type checker sees NumPy's."""

ArrayModule: TypeAlias = ModuleType
"""The array library of the place, NumPy or CuPy, as kernels get it in `xp`."""


def deterministic_by_default() -> bool:
    """Whether the environment variable OPRACK_DETERMINISTIC asks for kernels that give the same bits on every run."""
    return os.environ.get("OPRACK_DETERMINISTIC", "0").strip().lower() not in ("", "0", "off", "no", "false")


class KernelRules:
    """Which kernels a run may choose among, set once for an executor.

    Rules are compared by identity, since every look-up of a plan has them in its key.

    Args:
        excluded: Libraries whose kernels may not run.
        by_attr: Libraries whose kernels run only where an attribute of the op asks for them (Fluid's use_mkldnn,
            use_cudnn). Those of all others run wherever they are the best, whatever the attribute says, as in Fluid
            with the flag for the library set.
        deterministic: Whether to leave out kernels that can't promise the same bits on every run.
    """

    __slots__ = ("by_attr", "deterministic", "excluded")

    def __init__(
        self, excluded: Iterable[str] = (), by_attr: Iterable[str] = (), *, deterministic: bool = False
    ) -> None:
        self.excluded, self.by_attr = frozenset(excluded), frozenset(by_attr)
        self.deterministic = bool(deterministic)

    def libraries(self, switches: Mapping[str, str], attrs: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
        """What these rules say of libraries for one op.

        Args:
            switches: For each library, the attribute that switches it.
            attrs: The op's attributes.

        Returns:
            (the library that the op asks for, or "plain"; the libraries that may not run for it).
        """
        if not self.by_attr:
            return "plain", self.excluded
        asked = [n for n in sorted(self.by_attr - self.excluded) if attrs.get(switches.get(n, ""))]
        return (asked[0] if asked else "plain"), self.excluded | (self.by_attr - set(asked))

    def __repr__(self) -> str:
        return (
            f"KernelRules(excluded={sorted(self.excluded)}, by_attr={sorted(self.by_attr)}, "
            f"deterministic={self.deterministic})"
        )


ANY_KERNEL = KernelRules()
"""Every kernel may run."""
DETERMINISTIC_KERNELS = KernelRules(deterministic=True)
"""Those that give the same bits on every run."""


class KernelContext(Protocol):
    """Type of the parameter `ctx` that a kernel may have."""

    @property
    def op_type(self) -> str:
        """The op."""

    @property
    def attrs(self) -> Mapping[str, Any]:
        """All attributes of the op, those included that kernels rarely need."""

    @property
    def rules(self) -> KernelRules:
        """Which kernels the run may choose among."""

    @property
    def place(self) -> Place:
        """The place of the run."""

    @property
    def device(self) -> DeviceContext:
        """The DeviceContext of the place: streams and library handles."""

    def lod(self, slot: str, i: int = 0) -> LoD:
        """Offsets of input i of a slot; [] when it has none or is absent."""

    def wants(self, slot: str, i: int = 0) -> bool:
        """Whether output i of a slot is asked for; a gradient kernel may skip the others."""

    def is_read(self, *slots: str) -> bool:
        """Whether an op of the program reads one of these outputs, fetch ops counted."""

    def input_count(self, slot: str) -> int:
        """Number of variables of an input slot."""

    def output_count(self, slot: str) -> int:
        """Number of variables of an output slot."""

    def output_dtype(self, slot: str) -> str | None:
        """dtype that the program declares for the first output of a slot; None when it does not say."""

    def generator(self, seed: int = 0) -> np.random.Generator:
        """Random generator of this draw; a seed other than 0 gives the same numbers on every run."""

    def run_op(
        self,
        op_type: str,
        inputs: Mapping[str, Any],
        attrs: Mapping[str, Any] | None = None,
        lods: Mapping[str, Sequence[LoD]] | None = None,
    ) -> Any:
        """Compute another op on arrays, by the best kernel that the run may choose; for kernels of fused ops.

        Args:
            op_type: The op; its shape rule is not asked.
            inputs: Arrays by slot, a list for a duplicable one, None for an absent one.
            attrs: Those that differ from the op's defaults.
            lods: Offsets of the inputs by slot.

        Returns:
            What the kernel returned: an array, a tuple in the order of OpProto, or a dict by slot.

        Raises:
            KernelNotFoundError: No kernel fits.
        """


# a kernel returns NotImplemented and nothing else, so that a plan can compare by identity; the reason goes beside it,
# by thread, since kernels of several threads decline at once
_WHY = threading.local()


def decline(reason: str) -> Any:
    """Leave a call to the next kernel that fits: `return decline("X has gaps")`.

    Args:
        reason: Why, for logs and for the error that every kernel declined.

    Returns:
        NotImplemented.
    """
    _WHY.reason = reason
    return NotImplemented


def take_reason() -> str:
    """The reason of the last kernel that declined in this thread, or "" when it had none. It is cleared."""
    reason: str = getattr(_WHY, "reason", "")
    _WHY.reason = ""
    return reason

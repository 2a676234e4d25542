"""KernelRules: which kernels a run may choose among, beside what its ops ask for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any


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

"""Random numbers of a run: a counter per op, so that the same seed gives the same numbers and a run can be replayed."""

from __future__ import annotations

from typing import Any

import numpy as np


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

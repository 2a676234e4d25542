"""Costs: how long ops take on a rank, by what they compute and what they read and write."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oprack.errors import InvalidArgumentError
from oprack.tensor.shape_only import Ledger

_LARGE, _SMALL = 256 * 128, 64 * 64
"""Elements of a product's output that a unit of an accelerator computes at a time."""


@dataclass(frozen=True)
class Accelerator:
    """What an op takes: its start, its products, and what it moves, one after the other.

    A product's output is cut into tiles, of which each unit has one at a time, so the last round takes as long as a
    full one (NVIDIA, Matrix Multiplication Background User's Guide, "Dimension Quantization Effects").

    Attributes:
        flops: Operations a second that large products reach, by the dtype of what is multiplied; a dtype that is not
            named has the rate of "float32".
        bandwidth: Bytes a second between the accelerator and its memory.
        start: Seconds from one op's start to the next one's, where they have nothing else to do.
        units: How many tiles are computed at a time.
    """

    flops: Mapping[str, float]
    bandwidth: float
    start: float = 4e-6
    units: int = 1

    def seconds(self, products: Sequence[tuple[int, int]], moved: int, dtype: str) -> float:
        """Seconds that an op takes.

        Args:
            products: (operations, elements of the output) of each of its products.
            moved: Bytes that it reads and writes.
            dtype: Of what it reads.

        Returns:
            The seconds.
        """
        rate = self.flops.get(dtype, self.flops["float32"])
        return self.start + sum(n * self._rounded(out) for n, out in products) / rate + moved / self.bandwidth

    def _rounded(self, outputs: int) -> float:
        """What an output takes in place of its own size, relative to that."""
        if self.units == 1 or not outputs:
            return 1.0
        round_ = self.units * (_LARGE if outputs >= self.units * _LARGE else _SMALL)
        return math.ceil(outputs / round_) * round_ / outputs

    @staticmethod
    def of(text: str) -> Accelerator:
        """An accelerator by its name, or by numbers for those that have none.

        Args:
            text: A key of ACCELERATORS, or "flops=2e14,bandwidth=2e12,start=4e-6", where flops are of every dtype.

        Returns:
            The accelerator.

        Raises:
            InvalidArgumentError: It is neither.
        """
        if text in ACCELERATORS:
            return ACCELERATORS[text]
        try:
            given = {name: float(number) for name, number in (part.split("=") for part in text.split(","))}
        except ValueError:
            given = {}
        known = {"flops", "bandwidth"} <= given.keys() <= {"flops", "bandwidth", "start"}
        if not known or not all(n > 0 or (n == 0 and name == "start") for name, n in given.items()):
            raise InvalidArgumentError(
                f"accelerator {text!r}: expected one of {', '.join(ACCELERATORS)}, or its numbers, such as "
                "flops=2e14,bandwidth=2e12"
            )
        return Accelerator({"float32": given["flops"]}, given["bandwidth"], given.get("start", Accelerator.start))


def _nvidia(single: float, half: float, reached: float, bandwidth: float, units: int) -> Accelerator:
    rates = {"float32": single, "float16": half * reached, "bfloat16": half * reached}
    return Accelerator(rates, 0.9 * bandwidth, units=units)


ACCELERATORS: Mapping[str, Accelerator] = {
    "V100": _nvidia(15.7e12, 125e12, 0.8, 0.9e12, 80),
    "A100": _nvidia(19.5e12, 312e12, 0.859, 2.039e12, 108),
    "H100": _nvidia(67e12, 989e12, 0.801, 3.35e12, 132),
}
"""NVIDIA's data sheets (the SXM form, A100 with 80 GB); of the peak in half precision what large products were measured
to reach (S. Bekman, Machine Learning Engineering, "Maximum Achievable Matmul FLOPS"; V100: assumed), and 90 % of the
bandwidth, which is about what copies reach."""


@dataclass
class Work:
    """Ops of one type and dtype.

    Attributes:
        op: Their type.
        dtype: Of what they read first.
        count: How many there were.
        flops: Operations of their products.
        moved: Bytes that they read and wrote.
        seconds: What they take; 0.0 without an accelerator.
    """

    op: str
    dtype: str
    count: int = 0
    flops: int = 0
    moved: int = 0
    seconds: float = 0.0


class Costs(Ledger):
    """What the ops of a rank cost so far, by type and dtype, and what its tensors hold.

    Args:
        accelerator: By which seconds are counted; None counts none.
    """

    def __init__(self, accelerator: Accelerator | None = None) -> None:
        super().__init__()
        self._accelerator = accelerator
        self._work: dict[tuple[str, str], Work] = {}

    def add(self, op: str, dtype: str, products: Sequence[tuple[int, int]], moved: int) -> None:
        """Add an op.

        Args:
            op: Its type.
            dtype: Of what it reads first.
            products: (operations, elements of the output) of each of its products.
            moved: Bytes that it reads and writes. Views move none, and take no time.
        """
        work = self._work.setdefault((op, dtype), Work(op, dtype))
        work.count += 1
        work.flops += sum(n for n, _ in products)
        work.moved += moved
        if self._accelerator is not None and moved:
            work.seconds += self._accelerator.seconds(products, moved, dtype)

    def restart(self) -> None:
        """Forget the ops, and the most that was held."""
        self._work.clear()
        self.peak = self.held

    def work(self) -> list[Work]:
        """The ops of each type and dtype, the longest first."""
        return sorted(self._work.values(), key=lambda w: (-w.seconds, -w.moved))

"""The nets: tables in `nets/*.toml`, and the inputs that follow from them.

NumPy only, since Paddle's process imports it. A file has `[defaults]` and a table for each net, whose entries go before
the defaults:

    group    what the net does, for the report
    source   where its definition comes from
    layer    "module:callable" that makes the layer, with `args` as keyword arguments, to which those of the defaults
             are added; an argument that is a table with `call` is made in the same way
    inputs   name -> shape (of numbers, "batch" and "size"), dtype, and `low` and `high` for integers, `value` for
             what is the same everywhere ("size" is the size), or `std` for floats
    batches, sizes   the program is run with each batch at each size
    open     which of "batch" and "size" the program leaves open; both, if it does not say
    by_name  inputs are keyword arguments; else they are positional, in their order
    calls    the method that is saved, if it is not `forward`
    keep     positions of the outputs that are compared, if not all are
    train    batch of a step of training (write_training.py), with which no input of a ReLU happens to be 0 but for
             rounding: that decides over the gradients of a channel
    steady   variances of batch norms are at least this part of the square of their means: a net with random weights
             whose channels hardly vary amplifies what rounding leaves, and orders boxes by that
    quantize arguments of Paddle's PostTrainingQuantization, which is calibrated by the inputs of all runs
    note     what the table says about the net, such as that it is smaller than the published one
    tolerance   relative error that is agreement, if the default does not hold, with the reason in `note`
"""

from __future__ import annotations

import tomllib
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

NETS = Path(__file__).with_name("nets")
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Net:
    """One net of the zoo; the fields are those of the tables."""

    name: str
    group: str
    source: str
    layer: str
    inputs: dict[str, dict[str, Any]]
    args: dict[str, Any] = field(default_factory=dict)
    batches: tuple[int, ...] = (1, 2)
    sizes: tuple[int, ...] = (64, 96)
    open: tuple[str, ...] = ("batch", "size")
    by_name: bool = False
    calls: str = "forward"
    keep: tuple[int, ...] = ()
    train: int = 0
    steady: float = 0.0
    quantize: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    tolerance: float = TOLERANCE

    def cases(self) -> list[tuple[int, int]]:
        """Batch and size of each run."""
        return [(batch, size) for size in self.sizes for batch in self.batches]

    def spec(self, name: str) -> list[int | None]:
        """The shape that the program declares for an input."""
        sizes = {"batch": self.batches[-1], "size": self.sizes[-1]}
        return [None if n in self.open else sizes.get(n, n) for n in self.inputs[name]["shape"]]

    def dtype(self, name: str) -> str:
        """The dtype of an input."""
        return self.inputs[name].get("dtype", "float32")

    def training_feeds(self) -> dict[str, np.ndarray]:
        """The inputs of a step of training."""
        return self.feeds(self.train, self.sizes[-1])

    def feeds(self, batch: int, size: int) -> dict[str, np.ndarray]:
        """The inputs of a run, the same in each process."""
        sizes = {"batch": batch, "size": size}
        found = {}
        for name, given in self.inputs.items():
            shape = [sizes.get(n, n) for n in given["shape"]]
            random = np.random.RandomState(zlib.crc32(f"{self.name}/{name}/{batch}/{size}".encode()))
            if "value" in given:
                values = np.vectorize(lambda v: sizes.get(v, v), otypes=["float64"])(np.asarray(given["value"], object))
                numbers = np.broadcast_to(values, shape)
            elif "high" in given:
                numbers = random.randint(given.get("low", 0), given["high"], shape)
            else:
                numbers = random.standard_normal(shape) * given.get("std", 1.0)
            found[name] = np.ascontiguousarray(numbers).astype(self.dtype(name))
        return found


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The entries of both; those of the second go before, and tables within are merged, too."""
    both = one | other
    return {
        k: _merged(one[k], v) if isinstance(v, dict) and isinstance(one.get(k), dict) else v for k, v in both.items()
    }


def _tables() -> dict[str, Net]:
    nets: dict[str, Net] = {}
    for file in sorted(NETS.glob("*.toml")):
        tables = tomllib.loads(file.read_text("utf-8"))
        defaults = tables.pop("defaults")
        for name, table in tables.items():
            if name in nets:
                raise ValueError(f"{file.name} names the net {name} a second time")
            entries = defaults | table | {"args": _merged(defaults.get("args", {}), table.get("args", {}))}
            for key in ("batches", "sizes", "open", "keep"):
                if key in entries:
                    entries[key] = tuple(entries[key])
            nets[name] = Net(name=name, **entries)
    return nets


ALL = _tables()

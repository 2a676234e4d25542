"""Links: how long messages take between ranks, by latency and bandwidth, for each axis of a grid."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from oprack.errors import InvalidArgumentError

LINKS = "OPRACK_LINKS"
"""Environment variable: the file of `oprack parallel bench`, by which layouts are chosen."""


@dataclass(frozen=True)
class Link:
    """What a message takes: latency + bytes / bandwidth.

    Attributes:
        latency: Seconds.
        bandwidth: Bytes per second.
    """

    latency: float = 20e-6
    bandwidth: float = 5e9

    def seconds(self, collective: str, size: float, ranks: int) -> float:
        """Seconds that a collective takes.

        Args:
            collective: Its name, such as "all_reduce".
            size: Bytes of the whole: of the array that is reduced, of all parts together, or of a message.
            ranks: How many take part.

        Returns:
            The seconds; 0.0 for one rank.
        """
        moved, messages = traffic(collective, size, ranks)
        return messages * self.latency + moved / self.bandwidth


@dataclass(frozen=True)
class Links:
    """Links by axis of a grid; an axis that is not named has `other`.

    Attributes:
        axes: Name of an axis -> its link.
        other: Of all other axes.
    """

    axes: Mapping[str, Link] = field(default_factory=dict)
    other: Link = Link()

    def of(self, axis: str) -> Link:
        """The link of an axis."""
        return self.axes.get(axis, self.other)

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Links:
        """The links in a file: {"links": {axis or "*": {"latency": seconds, "bandwidth": bytes per second}}}.

        Raises:
            InvalidArgumentError: The file is not such a one.
        """
        return Links.of_facts(_facts(path), str(path))

    @staticmethod
    def of_facts(facts: object, where: str) -> Links:
        """As `read`, of what the file holds."""
        given = facts.get("links") if isinstance(facts, dict) else None
        found = {}
        for axis, link in given.items() if isinstance(given, dict) else ():
            numbers = [link.get(key) for key in ("latency", "bandwidth")] if isinstance(link, dict) else []
            right = [n for n in numbers if isinstance(n, int | float) and math.isfinite(n) and n >= 0]
            if len(right) != 2 or not right[1] > 0:
                raise InvalidArgumentError(
                    f"{where}: link {axis!r} is {link!r}; expected "
                    '{"latency": seconds, "bandwidth": bytes per second}'
                )
            found[str(axis)] = Link(float(right[0]), float(right[1]))
        if not found:
            raise InvalidArgumentError(f'{where}: expected {{"links": {{"*": {{"latency": ..., "bandwidth": ...}}}}}}')
        return Links({a: link for a, link in found.items() if a != "*"}, found.get("*", Link()))

    def facts(self) -> dict[str, object]:
        """What `of_facts` reads."""
        return {"links": {axis: asdict(link) for axis, link in (*self.axes.items(), ("*", self.other))}}


def traffic(collective: str, size: float, ranks: int) -> tuple[float, int]:
    """Bytes that each rank sends in a collective, and after how many others' messages it waits, one after the other.

    The ranks exchange halves, quarters and so on, which takes the fewest bytes and messages at once.
    """
    if ranks == 1:
        return 0.0, 0
    share, rounds = (ranks - 1) / ranks, math.ceil(math.log2(ranks))
    if collective == "all_reduce":
        return 2 * size * share, 2 * rounds
    if collective in ("all_gather", "reduce_scatter"):
        return size * share, rounds
    if collective == "all_to_all":  # each rank has a part, and keeps a part of that; every other one gets a message
        return size * share / ranks, ranks - 1
    if collective == "broadcast":
        return size, rounds
    return size, 1


def fitted(collective: str, ranks: int, measured: Sequence[tuple[float, float]]) -> Link:
    """The link by which a collective of so many bytes takes so many seconds, as nearly as can be.

    Args:
        collective: Its name.
        ranks: How many took part.
        measured: (bytes, seconds), of small and of large messages.

    Returns:
        The link. Relative differences count, since times span orders of magnitude.
    """
    rows = [(*traffic(collective, size, ranks), seconds) for size, seconds in measured]
    # Least squares of (messages * latency + moved / bandwidth) / seconds = 1
    a = sum((n / t) ** 2 for _, n, t in rows)
    b = sum(m * n / t**2 for m, n, t in rows)
    c = sum((m / t) ** 2 for m, _, t in rows)
    p, q = sum(n / t for _, n, t in rows), sum(m / t for m, _, t in rows)
    determinant = a * c - b * b
    latency, inverse = ((p * c - q * b) / determinant, (a * q - b * p) / determinant) if determinant > 0 else (0.0, 0.0)
    latency = max(latency, 0.0)
    return Link(latency, 1 / inverse if inverse > 0 else Link.bandwidth)


def _facts(path: str | os.PathLike[str]) -> object:
    file = Path(path)
    try:
        if file.stat().st_size > 1 << 20:
            raise InvalidArgumentError(f"{path}: {file.stat().st_size} bytes; expected a small file of links")
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise InvalidArgumentError(
            f"{path}: {e}; expected a file of links, as `oprack parallel bench --out links.json` writes it"
        ) from e


def own_facts() -> object:
    """What the file that OPRACK_LINKS names holds; None where it names none."""
    path = os.environ.get(LINKS, "")
    return _facts(path) if path else None

"""`serve.toml` beside a model: how it is batched, with how many workers it runs, and in which precision.

`DIR/<name>/serve.toml` is for all versions of a model, and `DIR/<name>/<version>/serve.toml` has the last word for one.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from oprack.errors import InvalidArgumentError

FILE = "serve.toml"
MAX_BYTES = 1 << 20
PRECISIONS = ("float32", "bfloat16", "int8")


@dataclass(frozen=True)
class ModelOptions:
    """What the files say; None where they say nothing, and the server's own settings hold.

    Attributes:
        max_batch: Most entries of a batch.
        max_delay: Seconds that a request waits for others.
        max_queue: Requests that wait.
        workers: Processes of the model.
        threads: Of each.
        device: Where it runs: "cpu".
        precision: Dtypes that ops may compute in other than their own: bfloat16, int8.
        passes: Whether the program is rewritten.
        without_passes: Names of passes that are left out.
        versions: Which versions are served: that many of the newest, those of a list, or all (None).
        labels: Of classes, by their indices, for outputs that are classified.
        examples: Shapes and LoD of inputs, by name, to warm the model up with.
    """

    max_batch: int | None = None
    max_delay: float | None = None
    max_queue: int | None = None
    workers: int | None = None
    threads: int | None = None
    device: str = "cpu"
    precision: tuple[str, ...] | None = None
    passes: bool = True
    without_passes: tuple[str, ...] = ()
    versions: int | tuple[str, ...] | None = None
    labels: tuple[str, ...] = ()
    examples: list[dict[str, dict[str, Any]]] = field(default_factory=list)

    def serves(self, version: str, existing: Iterable[str]) -> bool:
        """Whether a version of those that exist is served."""
        if isinstance(self.versions, int):
            return version in sorted(existing, key=int)[-self.versions :]
        return self.versions is None or version in self.versions

    def or_else(self, precision: tuple[str, ...]) -> ModelOptions:
        """These with the server's precision where the files say nothing of it."""
        return replace(self, precision=precision) if self.precision is None else self

    def to_json(self) -> dict[str, Any]:
        """For another front, which warms nothing up."""
        return asdict(replace(self, examples=[]))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ModelOptions:
        """What `to_json` wrote."""
        found: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in data.items()}
        return cls(**found)

    def of_predictor(self) -> dict[str, Any]:
        """What its process needs to know, as JSON has it."""
        return {
            "precision": list(self.precision or ()),
            "passes": self.passes,
            "without_passes": list(self.without_passes),
        }


def read_options(files: Iterable[Path]) -> ModelOptions:
    """What the files say, the later ones with the last word. Raises InvalidArgumentError that names file and key."""
    found: dict[str, Any] = {}
    for file in files:
        found |= _read(file)
    return ModelOptions(**found)


def _read(file: Path) -> dict[str, Any]:
    try:
        data = file.read_bytes() if file.stat().st_size <= MAX_BYTES else b"\xff"
        given = tomllib.loads(data.decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{os.fspath(file)!r}: {error}") from error
    strange = sorted(set(given) - set(_KEYS))
    if strange:
        raise InvalidArgumentError(f"{os.fspath(file)!r}: {', '.join(strange)}; expected {', '.join(_KEYS)}")
    found = {}
    for key, value in given.items():
        name, take, expected = _KEYS[key]
        try:
            found[name] = take(value)
        except _WrongError as error:
            text = str(error) or f"{key} = {value!r}; expected {expected}"
            raise InvalidArgumentError(f"{os.fspath(file)!r}: {text}") from None
    return found


class _WrongError(Exception):
    """The value can't be one of its key; the text says more where that helps."""


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def take(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise _WrongError
        return value

    return take


def _seconds(value: Any) -> float:
    """From the file's milliseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 10_000:
        raise _WrongError
    return value / 1e3


def _device(value: Any) -> str:
    if value != "cpu":
        raise _WrongError
    return "cpu"


def _precision(value: Any) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not given or not all(each in PRECISIONS for each in given):
        raise _WrongError
    return tuple(each for each in PRECISIONS[1:] if each in given)


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise _WrongError
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _WrongError
    return tuple(value)


def _versions(value: Any) -> int | tuple[str, ...] | None:
    if value == "all":
        return None
    if value == "latest":
        return 1
    if isinstance(value, dict) and set(value) == {"latest"}:
        return _whole(1, 1000)(value["latest"])
    if isinstance(value, list) and value and all(type(each) is int and each > 0 for each in value):
        return tuple(map(str, value))
    raise _WrongError


def _examples(value: Any) -> list[dict[str, dict[str, Any]]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise _WrongError
    return [{name: _example(name, row) for name, row in table.items()} for table in value]


def _example(name: str, value: Any) -> dict[str, Any]:
    row = value if isinstance(value, dict) else {"shape": value}
    shape, lod = row.get("shape"), row.get("lod", [])
    sizes = isinstance(shape, list) and shape and all(type(d) is int and 0 <= d < 1 << 31 for d in shape)
    if not sizes or not isinstance(lod, list) or set(row) - {"shape", "lod"}:
        raise _WrongError(
            f"example of {name!r}; expected a shape, [1, 3, 48, 320], or {{ shape = [5, 1], lod = [[0, 2, 5]] }}"
        )
    return {"shape": shape, "lod": lod}


_KEYS: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "max_batch": ("max_batch", _whole(1, 1 << 20), "a number from 1"),
    "max_delay_ms": ("max_delay", _seconds, "milliseconds, 0 to 10000"),
    "max_queue": ("max_queue", _whole(1, 1 << 20), "a number from 1"),
    "workers": ("workers", _whole(1, 256), "a number from 1 to 256"),
    "threads": ("threads", _whole(1, 1024), "a number from 1 to 1024"),
    "device": ("device", _device, "'cpu': workers are forked, so they run on nothing else"),
    "precision": ("precision", _precision, "'float32', 'bfloat16', 'int8' or ['int8', 'bfloat16']"),
    "passes": ("passes", _truth, "true or false"),
    "without_passes": ("without_passes", _names, "a list of names, which `oprack passes MODEL` prints"),
    "labels": ("labels", _names, "a list of names, in the order of the classes"),
    "versions": ("versions", _versions, "'all', 'latest', { latest = 2 } or a list of versions, [1, 3]"),
    "examples": ("examples", _examples, "tables [[examples]]"),
}
"""Key -> attribute, what makes the attribute of its value, and what is expected, for people."""

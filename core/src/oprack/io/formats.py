"""Program files: Fluid's own, and those of formats that plugins bring by the hook oprack_formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import cast

from oprack.errors import CorruptModelError, MissingPackError
from oprack.packs.advice import home, names
from oprack.packs.manager import default_manager
from oprack.packs.resolve import import_object
from oprack.program import Program
from oprack.records import dataclass

_LOOKED_AT = 64
"""Bytes in which a file has to begin with something else than white space."""


@dataclass(frozen=True)
class Format:
    """A sort of program files that a plugin reads.

    Attributes:
        suffix, starts: See `Register.format`.
    """

    owner: str
    suffix: str
    starts: str
    target: str

    def read(self, data: bytes | memoryview) -> Program:
        """The program. Raises what the plugin's function raises, which is a ModelError for bad files."""
        asked_by = f"format {self.suffix} of {self.owner}"
        function = cast(Callable[[bytes | memoryview], Program], import_object(self.target, asked_by))
        return function(data)


def formats() -> list[Format]:
    """The formats of the packs in use."""
    targets = default_manager().targets("format")
    return [Format(owner, **json.loads(key), target=target) for owner, key, target in targets]


def suffixes() -> Iterator[str]:
    """Suffixes of program files besides `.pdmodel`: of the formats in use, and of those of plugins not installed."""
    in_use = [found.suffix for found in formats()]
    yield from in_use
    yield from (suffix for suffix in names("formats") if suffix not in in_use)


def parse_program(data: bytes | memoryview, suffix: str = "") -> Program:
    """The program of a file, by what it begins with.

    Args:
        data: Its bytes.
        suffix: Of the file, where it has one.

    Returns:
        The program.

    Raises:
        MissingPackError: The file has the suffix of a format that no installed plugin reads.
        ModelError: The bytes are no program.
    """
    if data[:1] != b"\n":  # as every program of Fluid begins; no plugin is asked for those
        begin = bytes(data[:_LOOKED_AT]).lstrip()
        found = next((f for f in formats() if begin.startswith(f.starts.encode())), None)
        if found is not None:
            return found.read(data)
        if suffix and suffix in names("formats") and not any(f.suffix == suffix for f in formats()):
            raise MissingPackError(
                f"program files {suffix} are read by {home('formats', suffix)}, which is not installed or not in use: "
                f"pip install {home('formats', suffix)}"
            )
    try:
        return Program.parse(data)
    except CorruptModelError as error:
        others = [f"{s} by {home('formats', s)}" for s in names("formats") if all(f.suffix != s for f in formats())]
        if not others:
            raise
        raise CorruptModelError(
            f"{error} (plugins that are not installed read other formats: {', '.join(others)})"
        ) from None

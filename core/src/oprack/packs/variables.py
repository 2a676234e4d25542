"""The environment variables that oprack and its packs read: one table, for the documents and for `oprack doctor`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oprack.errors import did_you_mean
from oprack.python.records import dataclass

PREFIX = "OPRACK_"


@dataclass(frozen=True)
class EnvironmentVariable:
    """An environment variable.

    Attributes:
        name: Its name.
        default: What holds when it is not set, in words.
        meaning: What its values mean.
        owner: The distribution that reads it.
    """

    name: str
    default: str
    meaning: str
    owner: str = "oprack"


CORE = (
    EnvironmentVariable(
        "OPRACK_PACKS",
        "all packs",
        "The packs to use, as `math,nn`, by their names or those of their distributions; empty means none.",
    ),
    EnvironmentVariable("OPRACK_BLOCK", "none", "Packs to leave out, as `onednn,my_pack`; wins over OPRACK_PACKS."),
    EnvironmentVariable(
        "OPRACK_PREFER", "none", "Packs whose ops and kernels serve where others bring the same, as `my_pack,nn`."
    ),
    EnvironmentVariable(
        "OPRACK_PRIORITY", "none", "What is added to the priorities of packs' kernels, as `my_pack=10,nn=-1`."
    ),
    EnvironmentVariable(
        "OPRACK_ALLOW",
        "every installed pack",
        "The file that `oprack packs --lock FILE` wrote: only the distributions in it are loaded, and only while the "
        "hashes of their files are those in it.",
    ),
    EnvironmentVariable(
        "OPRACK_CACHE",
        "1",
        "0, off, no or false: which packs are installed, and what they bring, is not kept between processes. none: "
        "nothing is kept at all, on disk or in memory, so that every call makes everything anew; for debugging.",
    ),
    EnvironmentVariable(
        "OPRACK_CACHE_DIR", "oprack in XDG_CACHE_HOME, or in ~/.cache", "The folder in which that is kept."
    ),
    EnvironmentVariable(
        "OPRACK_MEMORY_LIMIT",
        "no limit",
        "Bytes that the outputs of one op may take; beyond them is a MemoryLimitError. `Executor(memory_limit=...)` "
        "and `Config.set_memory_limit` win over it.",
    ),
    EnvironmentVariable(
        "OPRACK_LOOP_LIMIT",
        "no limit",
        "How often the blocks of loops and branches may run in one run; beyond it is a LoopLimitError. "
        "`Executor(loop_limit=...)` and `Config.set_loop_limit` win over it.",
    ),
    EnvironmentVariable(
        "OPRACK_DETERMINISTIC",
        "0",
        "1: kernels that can't promise the same bits on every run are left out. `Executor(deterministic=...)`, "
        "`Config.switch_deterministic` and `oprack.deterministic` win over it.",
    ),
    EnvironmentVariable(
        "OPRACK_REFERENCE",
        "0",
        "1: every op runs by itself and by the plain kernel of its pack, without plans, passes and kernel libraries, "
        "so that a breakpoint in a kernel is met each time; as inside `oprack.reference()`.",
    ),
    EnvironmentVariable(
        "OPRACK_CACHE_LIMIT",
        "512 MiB, or a quarter of the memory where that is less",
        "Bytes that plans, compiled primitives and packed parameters of a process may take together; what was used "
        "longest ago is dropped beyond it. `oprack.set_cache_limit(...)` wins over it.",
    ),
)
"""Those that the core reads."""


def variables(targets: Iterable[tuple[str, str, Any]]) -> list[EnvironmentVariable]:
    """All environment variables that the core and the packs in use read.

    Args:
        targets: What packs in use registered: `PackManager.targets("variable")`.

    Returns:
        The core's, then those of packs by name.
    """
    brought = (EnvironmentVariable(owner=owner, **json.loads(key)) for owner, key, _ in targets)
    return [*CORE, *sorted(brought, key=lambda v: v.name)]


def unread(environ: Mapping[str, str], known: Iterable[EnvironmentVariable]) -> Iterator[str]:
    """What to say of set variables that look like oprack's, but which nothing reads.

    Args:
        environ: The environment.
        known: The variables that are read.

    Yields:
        A sentence for each.
    """
    names = {v.name for v in known}
    for name in sorted(set(environ) - names):
        if name.startswith(PREFIX):
            yield f"environment variable {name} is set, but nothing reads it{did_you_mean(name, names)}"

"""The world: the communicator of all ranks that a launcher started, or of this process alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from oprack.errors import InvalidArgumentError, NotFoundError
from oprack.packs.installed.resolve import import_object
from oprack.packs.manager import default_manager
from oprack.parallel.alone import Alone
from oprack.parallel.communicator import Communicator
from oprack.parallel.layouts.layout import Placement
from oprack.parallel.links import LINKS, Links, own_facts

_MPI = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_NTASKS")
"""Variables by which launchers of MPI are known."""
_TORCHRUN = "TORCHELASTIC_RUN_ID"
_MEET = ((_TORCHRUN, "WORLD_SIZE"), ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"), ("RANK", "WORLD_SIZE"))
"""Variables of launchers whose ranks meet at an address: (what tells them, number of ranks)."""
_USED: ContextVar[Communicator | None] = ContextVar("oprack_world", default=None)
_process: Communicator | None = None


def world() -> Communicator:
    """The communicator of all ranks; one rank without a launcher. The first call opens the engine.

    Raises:
        NotFoundError: A launcher started several ranks, but no engine for them is installed.
        InvalidArgumentError: OPRACK_ENGINE names an engine that no pack brings.
    """
    global _process
    used = _USED.get()
    if used is not None:
        return used
    if _process is None:
        _process = open_engine()
    return _process


def opened() -> Communicator | None:
    """The world of this process if it is open; None before anybody asked for it."""
    return _process


def init(engine: str | None = None) -> Communicator:
    """As `world`, but may say which engine is opened.

    Args:
        engine: Its name, such as "mpi"; "local" for this process alone; default: what OPRACK_ENGINE says, else the
            engine that is installed, if a launcher started the program.

    Returns:
        The communicator of all ranks.

    Raises:
        NotFoundError: No such engine is installed.
        InvalidArgumentError: The world was opened with another engine before.
    """
    global _process
    if engine is None or _USED.get() is not None:
        return world()
    if _process is None:
        _process = open_engine(engine)
    elif _process.engine != engine:
        raise InvalidArgumentError(
            f"parallel.init(engine={engine!r}): the world is open with engine {_process.engine!r}; call init before "
            "anything that uses several ranks"
        )
    return _process


@contextmanager
def use_world(communicator: Communicator) -> Iterator[None]:
    """Let `world()` return this communicator inside a with block, in this thread or task."""
    token = _USED.set(communicator)
    try:
        yield
    finally:
        _USED.reset(token)


def engines() -> dict[str, tuple[str, str]]:
    """Engine -> (distribution that brings it, "module:name" of the function that opens it)."""
    return {name: (owner, target) for owner, name, target in default_manager().targets("communicator")}


def launched_engine() -> str:
    """The engine by which ranks meet that a launcher started, as its variables say.

    Returns:
        "mpi" after mpiexec or srun; "tcp" after torchrun, paddle.distributed.launch and others that say an address; ""
        for one rank. A launcher that was itself started by srun or mpiexec, once a machine, is told from one of MPI by
        the number of ranks.
    """
    ranks = next((os.environ[name] for name in _MPI if os.environ.get(name, "") not in ("", "1")), "")
    for mark, size in _MEET:
        count = os.environ.get(size, "")
        if os.environ.get(mark, "") and count.isdecimal():
            if mark == _TORCHRUN:
                return "tcp" if int(count) > 1 else ""
            if int(count) > 1 and count != ranks:
                return "tcp"
    return "mpi" if ranks else ""


def open_engine(engine: str | None = None) -> Communicator:
    """Open an engine, which need not be that of the world: another engine may use it for what is in host memory.

    Args:
        engine: See `init`.

    Returns:
        Its communicator of all ranks.

    Raises:
        NotFoundError: No such engine is installed.
    """
    name = engine or os.environ.get("OPRACK_ENGINE", "") or launched_engine() or "local"
    if name == "local":
        return Alone()
    found = engines()
    if name not in found:
        have = f"installed are {', '.join(found)}" if found else "none is installed"
        raise NotFoundError(
            f"engine {name!r} for several ranks: {have}; pip install oprack-mpi brings 'mpi'. OPRACK_ENGINE=tcp lets "
            "ranks meet by TCP (oprack launch --engine tcp, srun, torchrun), OPRACK_ENGINE=local lets each process run "
            "for itself"
        )
    owner, target = found[name]
    opened: Communicator = import_object(target, f"communicator {name} of {owner}")()
    # Choices that depend on links have to be the same on all ranks, so those of rank 0 count.
    facts = opened.gather_facts(own_facts())[0]
    if facts is not None:
        opened.links = Links.of_facts(facts, f"the file that {LINKS} names")
    return opened


def placement(kind: str = "cpu", shape: Sequence[int] | None = None, axes: Sequence[str] | None = None) -> Placement:
    """A grid of all ranks, for layouts of global tensors. Every rank must make it.

    Args:
        kind: Kind of the ranks' places, "cpu" or "cuda".
        shape: Sizes of its axes, whose product is the number of ranks; default: one axis of all ranks, or the grid that
            `oprack parallel simulate --grid` gives.
        axes: A name for each axis; default: "axis0", "axis1" and so on.

    Returns:
        The placement. The same arguments give the same object.

    Raises:
        InvalidArgumentError: The grid does not hold as many ranks as run.
    """
    here = world()
    if shape is None and here.grid is not None:
        shape, axes = here.grid[0], axes or here.grid[1]
    kind = here.place_kind or kind
    sides = tuple(shape) if shape is not None else (here.size,)
    names = tuple(axes) if axes is not None else tuple([f"axis{k}" for k in range(len(sides))])
    made: dict[object, Placement] = here.__dict__.setdefault("placements", {})
    key = (kind, sides, names)
    if key not in made:
        made[key] = Placement(here, kind, sides, names)
    return made[key]

"""What starts the ranks: MPICH, Open MPI, Intel MPI, the MPI of the site, or for the engine tcp this package itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from oprack.errors import InvalidArgumentError, NotFoundError, did_you_mean
from oprack.parallel.world import engines

ENGINE = "OPRACK_MPI"
"""Environment variable: what `oprack launch` starts ranks by, as its option --engine."""
TCP = "tcp"
"""The engine that needs no MPI; its ranks run on this machine."""


@dataclass(frozen=True)
class Sort:
    """A sort of MPI.

    Attributes:
        title: Its name for people.
        marks: What the first lines of `mpiexec --version` have.
        package: The distribution on PyPI that brings it.
        libraries: File names of its library beside mpiexec's folder.
        starters: Names of its mpiexec; other sorts installed beside it may have overwritten the first one.
    """

    title: str
    marks: tuple[str, ...]
    package: str
    libraries: tuple[str, ...]
    starters: tuple[str, ...]


SORTS: Mapping[str, Sort] = {
    "mpich": Sort(
        "MPICH", ("HYDRA", "MPICH"), "mpich", ("libmpi.so.12", "libmpi.12.dylib"), ("mpiexec", "mpiexec.hydra")
    ),
    "openmpi": Sort(
        "Open MPI",
        ("Open MPI", "OpenRTE", "PRTE", "prte"),
        "openmpi",
        ("libmpi.so.40", "libmpi.40.dylib"),
        ("mpiexec", "mpirun", "prterun"),
    ),
    "impi": Sort("Intel MPI", ("Intel(R) MPI",), "impi-rt", ("libmpi.so.12",), ("mpiexec", "mpiexec.hydra")),
}


@dataclass(frozen=True)
class Engine:
    """An MPI that is installed, or TCP.

    Attributes:
        sort: Key in SORTS, or TCP; "" for an MPI that says nothing known of itself.
        mpiexec: What starts ranks; "" for TCP.
    """

    sort: str
    mpiexec: str

    def command(self, ranks: int, hosts: str) -> list[str]:
        """What is followed by the command of a rank, and starts so many of it."""
        if self.sort != TCP:
            return [self.mpiexec, *self.options(ranks, hosts)]
        if hosts:
            raise InvalidArgumentError(
                f"oprack launch: --hosts {hosts} with the engine tcp, which starts ranks on this machine alone; "
                "expected an MPI (pip install oprack-mpi); ranks of srun, torchrun and Kubernetes meet by tcp as well"
            )
        return [sys.executable, "-m", "oprack_parallel.launch.starter", str(ranks)]

    def options(self, ranks: int, hosts: str) -> list[str]:
        """Options of its mpiexec, which sorts spell differently."""
        found = ["-n", str(ranks)]
        if self.sort == "openmpi":
            return [*found, "--map-by", ":OVERSUBSCRIBE", *(["--host", hosts] if hosts else [])]
        return [*found, *(["-hosts", hosts] if hosts else [])]

    def variables(self, ranks: int, cores: int, hosts: str) -> dict[str, str]:
        """Variables of the ranks, where the user has not set them."""
        found = {}
        library = self._library()
        if library:
            # mpi4py would take the first one that it finds, which need not be mpiexec's.
            found["MPI4PY_LIBMPI"] = library
        if ranks > cores:  # those that wait give their core away instead of spinning on it
            found |= {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
            found |= {"I_MPI_THREAD_YIELD": "3"}
        if self.sort == "impi" and not hosts:
            found["I_MPI_FABRICS"] = "shm"
        if self.sort == "openmpi" and hasattr(os, "geteuid") and os.geteuid() == 0:
            # As in containers; Open MPI refuses that unless it is told twice, in both of its layers.
            found |= {
                f"{layer}_ALLOW_RUN_AS_ROOT{twice}": "1" for layer in ("OMPI", "PRTE") for twice in ("", "_CONFIRM")
            }
        return found

    def _library(self) -> str:
        """The library of the same installation as mpiexec; "" where it lies elsewhere and mpi4py has to find it."""
        folder = Path(self.mpiexec).absolute().parent.parent / "lib"
        names = SORTS[self.sort].libraries if self.sort in SORTS else ()
        return next((str(folder / name) for name in names if (folder / name).is_file()), "")


def find_engine(asked: str = "") -> Engine:
    """The MPI that was asked for, else the first that is found: in this environment, then on PATH.

    Args:
        asked: A key of SORTS, TCP, or the path of an mpiexec; default: what OPRACK_MPI says. Where oprack-mpi is not
            installed, the default is TCP.

    Returns:
        The engine.

    Raises:
        InvalidArgumentError: There is no such sort, or the path is no program.
        NotFoundError: It is not installed.
    """
    asked = asked or os.environ.get(ENGINE, "")
    if asked == TCP or not (asked or "mpi" in engines()):
        return Engine(TCP, "")
    if os.sep in asked:
        if not os.access(asked, os.X_OK) or os.path.isdir(asked):
            raise InvalidArgumentError(
                f"oprack launch: {asked!r} is no program; expected an mpiexec, or {_names()} (option --engine, or "
                f"variable {ENGINE})"
            )
        return Engine(_sort_of(asked), asked)
    if asked and asked not in SORTS:
        raise InvalidArgumentError(
            f"oprack launch: engine {asked!r}{did_you_mean(asked, [*SORTS, TCP])}; expected {_names()}, or the path of "
            f"an mpiexec (option --engine, or variable {ENGINE})"
        )
    for path in _starters(asked):
        sort = _sort_of(path)
        if not asked or sort == asked:
            return Engine(sort, path)
    what, package = (SORTS[asked].title, SORTS[asked].package) if asked else ("mpiexec", "mpich")
    raise NotFoundError(
        f"oprack launch: no {what} in {Path(sys.executable).parent} or on PATH; pip install {package}, give the path "
        "of the site's mpiexec by --engine, or --engine tcp, which needs no MPI"
    )


def _names() -> str:
    return ", ".join((*SORTS, TCP))


def _starters(sort: str) -> Iterator[str]:
    """Programs that may start ranks, the nearest first."""
    names = SORTS[sort].starters if sort else ("mpiexec",)
    for name in names:
        own = Path(sys.executable).with_name(name)
        if own.is_file():
            yield str(own)
    for name in names:
        found = shutil.which(name)
        if found is not None:
            yield found


def _sort_of(mpiexec: str) -> str:
    """Which sort an mpiexec is of, by what it says of itself; "" when that is nothing known."""
    done = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    return next((name for name, sort in SORTS.items() if any(m in said for m in sort.marks)), "")

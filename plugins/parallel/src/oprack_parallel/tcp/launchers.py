"""Which rank this process is, and where the ranks meet, as the launcher's variables say."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from oprack.errors import InvalidArgumentError

TOKEN = "OPRACK_JOB_TOKEN"
"""Environment variable: a secret of the job, without which no process can join its ranks."""
MEETING = "OPRACK_MEETING"
"""Environment variable: host:port where the ranks meet, in place of the launcher's."""
PORTS = 16
"""So many ports from the first one on are tried, since another program may have taken it."""


@dataclass(frozen=True)
class Start:
    """What a process knows of its job before it has met the other ranks.

    Attributes:
        launcher: Who started it, for messages.
        rank: Its rank.
        size: How many ranks there are.
        host: Where rank 0 listens; name or address.
        ports: Ports on which rank 0 may listen, the likeliest first.
        token: What only processes of this job know, as far as its launcher gave them something.
    """

    launcher: str
    rank: int
    size: int
    host: str
    ports: range
    token: bytes


def started(variables: Mapping[str, str] = os.environ) -> Start:
    """What the launcher said.

    Args:
        variables: Those of the process.

    Returns:
        Rank, size, and where to meet.

    Raises:
        InvalidArgumentError: Variables are missing, or say what can't be.
    """
    if variables.get("RANK", "") and variables.get("WORLD_SIZE", ""):
        found = _torchrun(variables)
    elif variables.get("PADDLE_TRAINER_ID", "") and variables.get("PADDLE_TRAINERS_NUM", ""):
        found = _paddle(variables)
    elif variables.get("SLURM_PROCID", ""):
        found = _slurm(variables)
    else:
        raise InvalidArgumentError(
            "engine tcp: no launcher said which rank this process is; expected RANK, WORLD_SIZE, MASTER_ADDR and "
            "MASTER_PORT (torchrun), PADDLE_TRAINER_ID and PADDLE_TRAINER_ENDPOINTS (paddle.distributed.launch), or "
            "SLURM_PROCID (srun); or start it by oprack launch --engine tcp"
        )
    if not 0 <= found.rank < found.size:
        raise InvalidArgumentError(f"engine tcp: {found.launcher} says rank {found.rank} of {found.size}")
    return found


def _torchrun(variables: Mapping[str, str]) -> Start:
    name = "torchrun" if "TORCHELASTIC_RUN_ID" in variables else "the launcher"
    # torchrun's own store listens at the port that it gives to its processes.
    taken = variables.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() == "true"
    job = [variables.get(f"TORCHELASTIC_{n}", "") for n in ("RUN_ID", "RESTART_COUNT")]
    host, ports = _meeting(variables, name, variables.get("MASTER_ADDR", ""), variables.get("MASTER_PORT", ""), taken)
    rank, size = _number(variables, name, "RANK"), _number(variables, name, "WORLD_SIZE")
    return Start(name, rank, size, host, ports, _token(variables, name, *job))


def _paddle(variables: Mapping[str, str]) -> Start:
    name = "paddle.distributed.launch"
    endpoints = variables.get("PADDLE_TRAINER_ENDPOINTS", "") or variables.get("PADDLE_MASTER", "")
    address, _, port = endpoints.partition(",")[0].rpartition(":")
    host, ports = _meeting(variables, name, address, port, False)
    rank, size = _number(variables, name, "PADDLE_TRAINER_ID"), _number(variables, name, "PADDLE_TRAINERS_NUM")
    return Start(name, rank, size, host, ports, _token(variables, name, endpoints))


def _slurm(variables: Mapping[str, str]) -> Start:
    name = "srun"
    job = variables.get("SLURM_JOB_ID", "0")
    step = variables.get("SLURM_STEP_ID", "0")
    nodes = variables.get("SLURM_STEP_NODELIST", "") or variables.get("SLURM_JOB_NODELIST", "")
    # Of the ephemeral ports the last ones, by the numbers of job and step, which differ on a machine.
    port = 61_440 + (int(job or 0) * 17 + int(step or 0)) % 4_080 if (job + step).isdecimal() else 61_440
    host, ports = _meeting(variables, name, first_node(nodes), str(port), False)
    sizes = [n for n in ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS") if variables.get(n, "")]
    size = _number(variables, name, sizes[0] if sizes else "SLURM_STEP_NUM_TASKS")
    return Start(name, _number(variables, name, "SLURM_PROCID"), size, host, ports, _token(variables, name, job, step))


def first_node(nodes: str) -> str:
    """The first name of a list of nodes as Slurm writes it: `a1` of `a[1-4,7],b2`."""
    found = re.match(r"([^\[,]*)(?:\[(\w+)[^\]]*\])?([^\[,]*)", nodes)
    return "".join(part or "" for part in found.groups()) if found else ""


def _meeting(variables: Mapping[str, str], name: str, host: str, port: str, taken: bool) -> tuple[str, range]:
    own = variables.get(MEETING, "")
    if own:
        host, _, port = own.rpartition(":")
        taken = False
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise InvalidArgumentError(
            f"engine tcp: {name} says that ranks meet at host {host!r}, port {port!r}; expected a name or an address, "
            f"and a port from 1 to 65535 (MASTER_ADDR and MASTER_PORT of torchrun, or {MEETING}=host:port)"
        )
    first = int(port) + taken
    return host, range(first, min(first + PORTS, 65_536))


def _number(variables: Mapping[str, str], name: str, variable: str) -> int:
    text = variables.get(variable, "")
    if not text.isdecimal():
        raise InvalidArgumentError(f"engine tcp: {name} says {variable}={text!r}; expected a number")
    return int(text)


def _token(variables: Mapping[str, str], *job: str) -> bytes:
    """The job's secret, or what tells its processes from those of another job by mistake."""
    return (variables.get(TOKEN, "") or "\n".join(job)).encode()

"""Ranks as actors of Ray: a group of them meets by TCP, and when one dies, a new group goes on from the checkpoint."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.errors import CollectiveError, InvalidArgumentError, NotFoundError
from oprack_parallel.launch.reports import RANKS
from oprack_parallel.tcp.communicator import RankLostError
from oprack_parallel.tcp.launchers import MEETING, TOKEN

if TYPE_CHECKING:
    from types import ModuleType

_ASK_AGAIN = 1.0
"""Seconds after which it is asked again how many ranks fit into the cluster."""
_SETTLE = 2.0
"""Seconds in which other ranks say why they failed, once one has."""


class Rank:
    """One rank, in a process of its own, which Ray makes an actor of."""

    def address(self) -> tuple[str, int]:
        """Where rank 0 may listen: this node as others reach it, and a port that is free now."""
        node = _ray().util.get_node_ip_address()
        with socket.socket(socket.AF_INET6 if ":" in node else socket.AF_INET) as probe:
            probe.bind((node, 0))
            return node, int(probe.getsockname()[1])  # should another program take it, ranks try those behind it

    def run(self, function: Callable[..., Any], arguments: Sequence[Any], variables: Mapping[str, str]) -> Any:
        """Call the function as this rank."""
        for name in (*RANKS, MEETING):
            os.environ.pop(name, None)
        os.environ.update(variables)
        return function(*arguments)


def run_on_ray(
    function: Callable[..., Any],
    ranks: int,
    *,
    arguments: Sequence[Any] = (),
    least: int | None = None,
    restarts: int = 3,
    cpus: float = 1.0,
    gpus: float = 0.0,
    wait: float = 600.0,
    variables: Mapping[str, str] | None = None,
) -> list[Any]:
    """Call a function on several ranks, each an actor of Ray, and start all anew when one fails.

    In the function `oprack.parallel.init()` is the world of these ranks. What it computed is lost when a rank fails, so
    it saves a checkpoint now and then, where all nodes see it, and begins by loading the last one.

    Args:
        function: What Ray can send; called with `arguments` on each rank.
        ranks: How many, at most.
        arguments: Of the function.
        least: How many are enough; a group has as many as fit into the cluster when it starts. Default: `ranks`.
        restarts: How often a new group is started.
        cpus: Of a rank, as Ray counts them.
        gpus: Of a rank; with some, the engine is nccl.
        wait: Seconds to wait for room in the cluster for the least number of ranks.
        variables: Environment variables of the ranks.

    Returns:
        What the function returned, rank by rank.

    Raises:
        NotFoundError: Ray is not installed.
        InvalidArgumentError: Numbers can't be, or the ranks don't fit into the cluster.
        CollectiveError: A rank failed in the last group, too; its cause is what the rank raised.
    """
    ray = _ray()
    least = ranks if least is None else least
    if not 1 <= least <= ranks or restarts < 0 or cpus <= 0 or gpus < 0:
        raise InvalidArgumentError(
            f"run_on_ray: ranks {ranks}, least {least}, restarts {restarts}, cpus {cpus}, gpus {gpus}; expected at "
            "least one rank, no more as the least than as the most, CPUs, and no negative number"
        )
    if not ray.is_initialized():
        ray.init()
    given = {"OPRACK_ENGINE": "nccl" if gpus else "tcp", **(variables or {})}
    for attempt in range(restarts + 1):
        size = _room(ray, ranks, least, cpus, gpus, wait)
        try:
            found: list[Any] = _group(
                ray, size, cpus, gpus, wait, lambda actors: _called(ray, actors, function, arguments, given)
            )
            return found
        except _FailedRank as failed:
            said = f"rank {failed.rank} of {size} failed: {failed.__cause__}"
            if attempt == restarts:
                raise CollectiveError(
                    f"run_on_ray: {said}; there was no restart left of {restarts}"
                ) from failed.__cause__
            _log(f"{said}\nrun_on_ray starts again ({attempt + 1} of {restarts})")
    raise AssertionError("unreachable")


class _FailedRank(Exception):
    def __init__(self, rank: int) -> None:
        super().__init__(rank)
        self.rank = rank


def _ray() -> ModuleType:
    try:
        import ray
    except ImportError as e:
        raise NotFoundError(f"run_on_ray: Ray can't be imported ({e}); pip install 'oprack-clusters[ray]'") from e
    found: ModuleType = ray
    return found


def _log(text: str) -> None:
    import logging

    logging.getLogger(__name__).warning(text)


def _room(ray: Any, ranks: int, least: int, cpus: float, gpus: float, wait: float) -> int:
    """How many ranks fit into the cluster now; waits until they are enough."""
    end = time.monotonic() + wait
    while True:
        free = ray.available_resources()
        fit = int(min(free.get("CPU", 0) / cpus, free.get("GPU", 0) / gpus if gpus else float("inf")))
        # A node that died, or a group that was ended, is counted for a moment, so look twice before all fit
        if fit >= ranks or (fit >= least and time.monotonic() + wait - end > _SETTLE):
            return min(fit, ranks)
        if time.monotonic() > end:
            raise InvalidArgumentError(
                f"run_on_ray: {fit} ranks of {cpus:g} CPUs{f' and {gpus:g} GPUs' if gpus else ''} fit into the "
                f"cluster, where {least} are the least; waited for {wait:g} s. Give it more nodes, or ask for less"
            )
        time.sleep(_ASK_AGAIN)


def _group(ray: Any, size: int, cpus: float, gpus: float, wait: float, call: Callable[[list[Any]], Any]) -> Any:
    """What `call` gives for so many actors, which end with it."""
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    # All at once or none, so that two jobs don't hold half of the cluster each
    place = placement_group([{"CPU": cpus} | ({"GPU": gpus} if gpus else {})] * size, strategy="PACK")
    actors: list[Any] = []
    try:
        if not place.wait(wait):
            raise InvalidArgumentError(f"run_on_ray: {size} ranks found no room in the cluster within {wait:g} s")
        for k in range(size):
            options = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0, "max_task_retries": 0}
            options["scheduling_strategy"] = PlacementGroupSchedulingStrategy(place, placement_group_bundle_index=k)
            actors.append(ray.remote(**options)(Rank).remote())
        return call(actors)
    finally:
        for actor in actors:
            ray.kill(actor)
        remove_placement_group(place)


def _called(
    ray: Any, actors: list[Any], function: Callable[..., Any], arguments: Sequence[Any], given: Mapping[str, str]
) -> list[Any]:
    """What the function returns on each actor. Raises _FailedRank of the one that failed first."""
    token, size = secrets.token_hex(16), len(actors)
    try:
        host, port = ray.get(actors[0].address.remote())
    except Exception as e:
        raise _FailedRank(0) from e
    meeting = {"WORLD_SIZE": str(size), "MASTER_ADDR": host, "MASTER_PORT": str(port), TOKEN: token, **given}
    code = ray.put(function)
    calls = [a.run.remote(code, list(arguments), meeting | {"RANK": str(r)}) for r, a in enumerate(actors)]
    found: dict[int, Any] = {}
    failed: dict[int, Exception] = {}
    waiting, until = list(calls), float("inf")
    while waiting and time.monotonic() < until:
        timeout = None if until == float("inf") else max(0.0, until - time.monotonic())
        done, waiting = ray.wait(waiting, num_returns=1, timeout=timeout)
        for call in done:
            rank = calls.index(call)
            try:
                found[rank] = ray.get(call)
            except Exception as e:
                failed[rank] = e
                until = min(until, time.monotonic() + _SETTLE)
    if failed:
        # Ranks that only lost another one say less than that
        first = min(failed, key=lambda r: isinstance(getattr(failed[r], "cause", failed[r]), RankLostError))
        raise _FailedRank(first) from failed[first]
    return [found[r] for r in range(size)]

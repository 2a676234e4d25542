"""paddle.distributed: ranks and what they tell each other, over oprack.parallel."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import oprack
from oprack import parallel
from oprack.python.threads import cpus

_SCRIPT = "OPRACK_PADDLE_RANKS"


class ReduceOp:
    """How values of ranks become one."""

    SUM, MAX, MIN, PROD, AVG = range(5)


class ParallelMode:
    """What is split over ranks."""

    DATA_PARALLEL, TENSOR_PARALLEL, PIPELINE_PARALLEL, SHARDING_PARALLEL = range(4)


_OPS = {ReduceOp.SUM: "sum", ReduceOp.MAX: "max", ReduceOp.MIN: "min", ReduceOp.PROD: "prod"}


class Group:
    """Some of the ranks, numbered anew."""

    def __init__(self, communicator: Any, ranks: Sequence[int], number: int) -> None:
        self.communicator, self.ranks, self.id = communicator, list(ranks), number

    @property
    def rank(self) -> int:
        """The number of this process among them; -1: it is none of them."""
        return -1 if self.communicator is None else int(self.communicator.rank)

    @property
    def nranks(self) -> int:
        """How many they are."""
        return len(self.ranks)

    world_size = nranks

    @property
    def name(self) -> str:
        """The name of the group."""
        return f"_default_pg{self.id}"

    @property
    def process_group(self) -> Any:
        """The communicator."""
        return self.communicator

    def is_member(self) -> bool:
        """Whether this process is one of them."""
        return self.communicator is not None

    def get_group_rank(self, rank: int) -> int:
        """The number of a rank among them; -1: it is none of them."""
        return self.ranks.index(rank) if rank in self.ranks else -1


_groups: dict[int, Group] = {}


def _world() -> Any:
    return parallel.world()


def _group(group: Any) -> Group:
    if isinstance(group, Group):
        return group
    if 0 not in _groups:
        world = _world()
        _groups[0] = Group(world, range(world.size), 0)
    return _groups[0]


def init_parallel_env() -> Group:
    """Meet the other ranks."""
    return _group(None)


def is_initialized() -> bool:
    """Whether the ranks have met."""
    return 0 in _groups


def is_available() -> bool:
    """Whether there are ranks: always, this process at least."""
    return True


def destroy_process_group(group: Any = None) -> None:
    """Forget a group, or all of them."""
    _groups.clear() if group is None else _groups.pop(group.id, None)


def get_rank(group: Any = None) -> int:
    """The number of this process."""
    return _group(group).rank


def get_world_size(group: Any = None) -> int:
    """The number of processes."""
    return _group(group).nranks


def get_group(id: int = 0) -> Group:
    """The group of a number."""
    return _groups[id] if id in _groups else _group(None)


def get_backend(group: Any = None) -> str:
    """What carries the data."""
    return "MPI" if get_world_size() > 1 else "GLOO"


def new_group(ranks: Any = None, backend: Any = None, timeout: Any = None) -> Group:
    """A group of some ranks; every rank has to call it."""
    world = _world()
    ranks = list(range(world.size)) if ranks is None else sorted(ranks)
    number = len(_groups) + 1
    mine = world.rank in ranks
    part = world.split(0 if mine else 1, world.rank, f"group_{number}") if world.size > 1 else world
    _groups[number] = Group(part if mine else None, ranks, number)
    return _groups[number]


class ParallelEnv:
    """This process among the ranks."""

    @property
    def rank(self) -> int:
        """The number of this process."""
        return get_rank()

    @property
    def world_size(self) -> int:
        """The number of processes."""
        return get_world_size()

    local_rank, nranks = rank, world_size

    @property
    def device_id(self) -> int:
        """The number of the device."""
        return 0

    dev_id = device_id

    @property
    def device_type(self) -> str:
        """The kind of device."""
        return "cpu"

    @property
    def current_endpoint(self) -> str:
        """The address of this process; ranks of MPI need none."""
        return ""

    @property
    def trainer_endpoints(self) -> list[str]:
        """The addresses of all processes; ranks of MPI need none."""
        return [""] * get_world_size()


class Task:
    """A call that is done already."""

    def wait(self) -> bool:
        """True."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True

    synchronize = wait


def _host(tensor: Any) -> Any:
    return np.ascontiguousarray(np.asarray(tensor))


def _write(tensor: Any, array: Any) -> None:
    tensor.set_value(np.asarray(array).reshape(tensor.shape).astype(tensor.dtype))


def _reduced(tensor: Any, op: int, group: Group) -> Any:
    if op == ReduceOp.AVG:
        return np.asarray(group.communicator.all_reduce(_host(tensor), "sum")) / group.nranks
    return group.communicator.all_reduce(_host(tensor), _OPS[op])


def _gathered(array: Any, group: Group) -> list[Any]:
    """What all ranks pass, in arrays of one shape."""
    flat = np.asarray(array)
    whole = np.asarray(group.communicator.all_gather(flat.reshape(1, *flat.shape)))
    return list(whole)


def all_reduce(tensor: Any, op: int = ReduceOp.SUM, group: Any = None, sync_op: bool = True) -> Task:
    """The sum of what all ranks pass, in the place of each."""
    _write(tensor, _reduced(tensor, op, _group(group)))
    return Task()


def reduce(tensor: Any, dst: int, op: int = ReduceOp.SUM, group: Any = None, sync_op: bool = True) -> Task:
    """The sum of what all ranks pass, on one of them."""
    group = _group(group)
    found = _reduced(tensor, op, group)
    if group.rank == group.get_group_rank(dst):
        _write(tensor, found)
    return Task()


def all_gather(tensor_list: Any, tensor: Any, group: Any = None, sync_op: bool = True) -> Task:
    """What all ranks pass, appended to a list."""
    tensor_list.extend(oprack.to_tensor(a.copy()) for a in _gathered(_host(tensor), _group(group)))
    return Task()


def gather(tensor: Any, gather_list: Any = None, dst: int = 0, group: Any = None, sync_op: bool = True) -> Task:
    """What all ranks pass, appended to a list of one of them."""
    group = _group(group)
    found = _gathered(_host(tensor), group)
    if group.rank == group.get_group_rank(dst) and gather_list is not None:
        gather_list[:] = [oprack.to_tensor(a.copy()) for a in found]
    return Task()


def broadcast(tensor: Any, src: int, group: Any = None, sync_op: bool = True) -> Task:
    """The tensor of one rank, in the place of each."""
    group = _group(group)
    _write(tensor, group.communicator.broadcast(_host(tensor), group.get_group_rank(src)))
    return Task()


def reduce_scatter(
    tensor: Any, tensor_list: Any, op: int = ReduceOp.SUM, group: Any = None, sync_op: bool = True
) -> Task:
    """The sums of lists, one element to each rank."""
    group = _group(group)
    _write(tensor, _reduced(np.stack([_host(t) for t in tensor_list]), op, group)[group.rank])
    return Task()


def scatter(tensor: Any, tensor_list: Any = None, src: int = 0, group: Any = None, sync_op: bool = True) -> Task:
    """A list of one rank, one element to each."""
    group = _group(group)
    root = group.get_group_rank(src)
    shape = (group.nranks, *tensor.shape)
    rows = np.stack([_host(t) for t in tensor_list]) if group.rank == root else np.zeros(shape, tensor.dtype)
    _write(tensor, np.asarray(group.communicator.broadcast(rows, root))[group.rank])
    return Task()


def alltoall(in_tensor_list: Any, out_tensor_list: Any, group: Any = None, sync_op: bool = True) -> Task:
    """To each rank one element of each list."""
    group = _group(group)
    rows = _gathered(np.stack([_host(t) for t in in_tensor_list]), group)
    out_tensor_list[:] = [oprack.to_tensor(r[group.rank].copy()) for r in rows]
    return Task()


def alltoall_single(
    in_tensor: Any,
    out_tensor: Any,
    in_split_sizes: Any = None,
    out_split_sizes: Any = None,
    group: Any = None,
    sync_op: bool = True,
) -> Task:
    """To each rank a part of each tensor."""
    group = _group(group)
    host = _host(in_tensor)
    sizes = [len(host) // group.nranks] * group.nranks if in_split_sizes is None else list(in_split_sizes)
    parts = np.split(host, np.cumsum(sizes)[:-1])
    blobs = [pickled for pickled in group.communicator.gather_facts([p.tolist() for p in parts])]
    mine = [np.asarray(b[group.rank], host.dtype).reshape(-1, *host.shape[1:]) for b in blobs]
    _write(out_tensor, np.concatenate(mine))
    return Task()


def send(tensor: Any, dst: int = 0, group: Any = None, sync_op: bool = True) -> Task:
    """Give a tensor to another rank."""
    group = _group(group)
    group.communicator.send(_host(tensor), group.get_group_rank(dst))
    return Task()


def recv(tensor: Any, src: int = 0, group: Any = None, sync_op: bool = True) -> Task:
    """Take a tensor of another rank."""
    group = _group(group)
    _write(tensor, group.communicator.receive(tuple(tensor.shape), np.dtype(tensor.dtype), group.get_group_rank(src)))
    return Task()


def isend(tensor: Any, dst: int, group: Any = None) -> Task:
    """Give a tensor to another rank; it is done on return."""
    return send(tensor, dst, group)


def irecv(tensor: Any, src: Any = None, group: Any = None) -> Task:
    """Take a tensor of another rank; it is done on return."""
    return recv(tensor, src or 0, group)


def barrier(group: Any = None) -> None:
    """Wait for the other ranks."""
    _group(group).communicator.barrier()


def wait(tensor: Any, group: Any = None, use_calc_stream: bool = True) -> None:
    """Nothing to wait for: every call is done on return."""


def all_gather_object(object_list: Any, obj: Any, group: Any = None) -> None:
    """Objects of all ranks, made of numbers, texts, lists and dicts, appended to a list."""
    object_list.extend(_group(group).communicator.gather_facts(obj))


def broadcast_object_list(object_list: Any, src: int, group: Any = None) -> None:
    """The objects of one rank."""
    group = _group(group)
    object_list[:] = group.communicator.gather_facts(list(object_list))[group.get_group_rank(src)]


def scatter_object_list(out_object_list: Any, in_object_list: Any = None, src: int = 0, group: Any = None) -> None:
    """The objects of one rank, one to each."""
    group = _group(group)
    found = group.communicator.gather_facts(list(in_object_list or []))[group.get_group_rank(src)]
    out_object_list[:] = [found[group.rank]]


def gloo_init_parallel_env(rank_id: int, rank_num: int, server_endpoint: str) -> None:
    """Meet the other ranks."""
    init_parallel_env()


def gloo_barrier() -> None:
    """Wait for the other ranks."""
    barrier()


def gloo_release() -> None:
    """Nothing to release."""


def spawn(func: Any, args: Any = (), nprocs: int = -1, join: bool = True, daemon: bool = False, **options: Any) -> Any:
    """Run a function on several ranks: the script is started once for each, and gets here again."""
    if _world().size > 1 or nprocs == 1 or os.environ.get(_SCRIPT):
        return func(*args)
    status = _started(nprocs if nprocs > 0 else cpus(), sys.argv)
    if status:
        raise RuntimeError(f"spawn: a rank ended with {status}; what it printed says why")
    return None


def _started(ranks: int, argv: Sequence[str]) -> int:
    """Start a script on ranks of MPI, and wait for them; its exit status."""
    import subprocess

    command = [sys.executable, "-m", "oprack", "launch", "-n", str(ranks), *argv]
    return subprocess.run(command, env={**os.environ, _SCRIPT: "1"}, check=False).returncode


def launch() -> None:
    """The command `python -m paddle.distributed.launch`."""
    raise SystemExit(_started(get_world_size(), sys.argv[1:]))

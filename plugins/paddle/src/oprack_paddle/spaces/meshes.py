"""paddle.distributed: tensors over meshes of ranks, by oprack.parallel's layouts."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import oprack
from oprack import parallel

from oprack_paddle.spaces.ranks import get_rank


class ReduceType:
    """How partial values become one."""

    kRedSum, kRedMax, kRedMin, kRedProd, kRedAvg, kRedAny, kRedAll = range(7)


class ProcessMesh:
    """A grid of ranks."""

    def __init__(self, mesh: Any = None, dim_names: Any = None, shape: Any = None, process_ids: Any = None) -> None:
        grid = np.asarray(mesh) if mesh is not None else np.asarray(process_ids).reshape(shape)
        self.mesh, self.shape, self.process_ids = grid, list(grid.shape), grid.ravel().tolist()
        self.dim_names = list(dim_names or (f"d{i}" for i in range(grid.ndim)))

    @property
    def ndim(self) -> int:
        """The number of dims of the grid."""
        return len(self.shape)

    def get_dim_size(self, dim_name: str) -> int:
        """The size of a dim."""
        return int(self.shape[self.dim_names.index(dim_name)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProcessMesh) and self.shape == other.shape and self.process_ids == other.process_ids

    def __hash__(self) -> int:
        return hash((tuple(self.shape), tuple(self.process_ids)))


class Placement:
    """How a tensor lies along one dim of a mesh."""

    sbp = "broadcast"

    def is_shard(self, dim: Any = None) -> bool:
        """Whether it is split."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicated(self) -> bool:
        """Whether every rank has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Whether the ranks have terms of a sum."""
        return isinstance(self, Partial)


class Shard(Placement):
    """Split along a dim."""

    def __init__(self, dim: int) -> None:
        self.dim, self.sbp = dim, f"split({dim})"

    def get_dim(self) -> int:
        """The dim."""
        return self.dim


class Replicate(Placement):
    """The same on every rank."""


class Partial(Placement):
    """Terms of a sum."""

    sbp = "partial_sum"

    def __init__(self, reduce_type: Any = ReduceType.kRedSum) -> None:
        self.reduce_type = reduce_type


class DistAttr:
    """A mesh, and the dim of the mesh along which each dim of a tensor is split."""

    def __init__(self, mesh: ProcessMesh, sharding_specs: Any) -> None:
        self.process_mesh, self.sharding_specs = mesh, list(sharding_specs)


def _laid(mesh: ProcessMesh, placements: Any) -> tuple[Any, list[str]]:
    return parallel.placement(shape=mesh.shape), [p.sbp for p in placements]


def shard_tensor(
    data: Any, mesh: ProcessMesh, placements: Any, dtype: Any = None, place: Any = None, stop_gradient: Any = None
) -> Any:
    """A whole tensor, which every rank passes, laid over the ranks of a mesh."""
    x = data if isinstance(data, oprack.Tensor) else oprack.to_tensor(data, dtype=dtype)
    placement, sbp = _laid(mesh, placements)
    found = x.to_global(placement, sbp, from_whole=True)
    if stop_gradient is not None and found.is_leaf:
        found.stop_gradient = stop_gradient
    return found


def dtensor_from_fn(fn: Any, mesh: ProcessMesh, placements: Any, *args: Any, **kwargs: Any) -> Any:
    """What a function makes, laid over the ranks of a mesh."""
    return shard_tensor(fn(*args, **kwargs), mesh, placements)


def reshard(dist_tensor: Any, mesh: ProcessMesh, placements: Any) -> Any:
    """A tensor of a mesh, laid otherwise."""
    return dist_tensor.to_global(*_laid(mesh, placements))


def shard_layer(
    layer: Any, process_mesh: ProcessMesh, shard_fn: Any = None, input_fn: Any = None, output_fn: Any = None
) -> Any:
    """A layer, whose parts a function lays over the ranks of a mesh."""
    if shard_fn is not None:
        for name, part in layer.named_modules():
            shard_fn(name, part, process_mesh)
    if input_fn is not None:
        layer.register_forward_pre_hook(lambda _, inputs: input_fn(inputs, process_mesh))
    if output_fn is not None:
        layer.register_forward_hook(lambda _, inputs, outputs: output_fn(outputs, process_mesh))
    return layer


def shard_optimizer(optimizer: Any, shard_fn: Any = None) -> Any:
    """An optimizer; what it keeps lies as the parameters do."""
    return optimizer


def save_state_dict(state_dict: Any, path: str, process_group: Any = None, coordinator_rank: int = 0) -> None:
    """Write a state; every rank has to call it."""
    os.makedirs(path, exist_ok=True)
    whole = {n: v.to_local() if getattr(v, "is_global", False) else v for n, v in state_dict.items()}
    oprack.save(whole, os.path.join(path, f"{get_rank()}_0.distcp"))


def load_state_dict(state_dict: Any, path: str, process_group: Any = None, coordinator_rank: int = 0) -> None:
    """Read a state of as many ranks into the tensors of a dict."""
    found = oprack.load(os.path.join(path, f"{get_rank()}_0.distcp"))
    for name, value in state_dict.items():
        value.set_value(np.asarray(found[name]))

"""Out of one process: ranks, layouts of global tensors, and what moves between them.

`oprack launch -n 4 train.py` starts ranks; without a launcher the world has one rank, and everything works. Importing
this package imports no engine.

Modules of this folder are ranks and what they send one another, which packs and plugins import as well. Above them lie
`layouts` (how a tensor is split, and boxing), `eager` (global tensors, and calls with them), `programs` (static
programs) and `training` (modules and optimizers on several ranks).
"""

from __future__ import annotations

import oprack.parallel.eager.global_call  # noqa: F401  registers what serves calls with global tensors
from oprack.op.sbp import Sbp, broadcast, partial_sum, split
from oprack.parallel.communicator import Communicator
from oprack.parallel.eager.gathering import strict
from oprack.parallel.layouts.boxing import box
from oprack.parallel.layouts.layout import Layout, Placement
from oprack.parallel.programs.average_gradients import average_gradients
from oprack.parallel.programs.distribute import Distributed, distribute
from oprack.parallel.rings import open_ring
from oprack.parallel.training.batches import RankSampler, RankTokenBatchSampler, even_batches, rank_weight, seed
from oprack.parallel.training.checkpointer import Checkpointer
from oprack.parallel.training.data_parallel import DataParallel
from oprack.parallel.training.modules import clip_grad_norm, no_sync, to_global
from oprack.parallel.training.pipeline import Pipeline
from oprack.parallel.training.zero import Zero
from oprack.parallel.world import init, placement, world

__all__ = [
    "Checkpointer",
    "Communicator",
    "DataParallel",
    "Distributed",
    "Layout",
    "Pipeline",
    "Placement",
    "RankSampler",
    "RankTokenBatchSampler",
    "Sbp",
    "Zero",
    "average_gradients",
    "box",
    "broadcast",
    "clip_grad_norm",
    "distribute",
    "even_batches",
    "init",
    "no_sync",
    "open_ring",
    "partial_sum",
    "placement",
    "rank_weight",
    "seed",
    "split",
    "strict",
    "to_global",
    "world",
]

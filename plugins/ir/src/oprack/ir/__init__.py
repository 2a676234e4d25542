"""Graphs of blocks, and passes that rewrite them: `optimize(program, scope)` runs those that packs bring."""

from oprack.ir.driver import Fusion, Fusions, fusion
from oprack.ir.graph import Graph
from oprack.ir.match import Match, NewParam, NewVar
from oprack.ir.nodes import OpNode, VarNode, one_dtype
from oprack.ir.passes import (
    ModelWarning,
    Optimized,
    Pass,
    PassReport,
    find_pass,
    optimize,
    registered_passes,
    select_passes,
)
from oprack.ir.pattern import PatternBuilder
from oprack.ir.verify import verify

__all__ = [
    "Fusion",
    "Fusions",
    "Graph",
    "Match",
    "ModelWarning",
    "NewParam",
    "NewVar",
    "OpNode",
    "Optimized",
    "Pass",
    "PassReport",
    "PatternBuilder",
    "VarNode",
    "find_pass",
    "fusion",
    "one_dtype",
    "optimize",
    "registered_passes",
    "select_passes",
    "verify",
]

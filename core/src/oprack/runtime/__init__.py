"""Running programs: operators, the executor, checks, the profiler."""

from oprack.runtime.checks import UnusedInputWarning
from oprack.runtime.executor import Executor, NaiveExecutor, global_scope
from oprack.runtime.kernel_operator import OperatorWithKernel
from oprack.runtime.operator import OperatorBase
from oprack.runtime.profiler import Profiler, current_profiler
from oprack.runtime.random import RandomState
from oprack.runtime.run_context import Checks, RunContext
from oprack.runtime.single_op import SingleOp, create_op

__all__ = [
    "Checks",
    "Executor",
    "NaiveExecutor",
    "OperatorBase",
    "OperatorWithKernel",
    "Profiler",
    "RandomState",
    "RunContext",
    "SingleOp",
    "UnusedInputWarning",
    "create_op",
    "current_profiler",
    "global_scope",
]

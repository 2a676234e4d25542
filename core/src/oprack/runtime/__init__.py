"""Running programs: operators, the executor, checks, the profiler."""

from oprack.runtime.checks import Checks, UnusedInputWarning
from oprack.runtime.executor import Executor, NaiveExecutor, global_scope
from oprack.runtime.kernel_operator import OperatorWithKernel
from oprack.runtime.operator import OperatorBase
from oprack.runtime.prepared import SingleOp, create_op
from oprack.runtime.profiler import Profiler, current_profiler
from oprack.runtime.run_context import RandomState, RunContext

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

"""From a loaded model to one that is ready to run: rewritten by passes, its parameters read-only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from oprack.io.inference_model import InferenceModel
from oprack.program import Program
from oprack.tensor import LoDTensor, Scope

if TYPE_CHECKING:
    from oprack.ir import Optimized
    from oprack.ir.passes import Pass
    from oprack.runtime import NaiveExecutor


def optimize_model(
    model: InferenceModel,
    scope: Scope,
    executor: NaiveExecutor,
    passes: Sequence[Pass] | None = None,
    debug: bool | None = None,
) -> tuple[InferenceModel, Optimized]:
    """Run passes over a model, and free the parameters that it needs no more.

    Args:
        model: As loaded; it stays as it is.
        scope: Holds the parameters; folded ones are added.
        executor: Runs the model later; its place and packs decide which passes there are.
        passes: In order; None = all that serve inference at the place.
        debug: Verify the graph after every pass; None = as the environment variable OPRACK_IR_DEBUG says.

    Returns:
        The rewritten model, and what each pass did.

    Raises:
        MissingPackError: When no pack brings an op.
        BlockCycleError, BlockDepthError: When blocks can't be run.
        GraphError: When verification fails.
    """
    from oprack.ir import optimize

    executor.check(model.program.desc)
    done = optimize(
        model.program.desc,
        scope,
        keep=model.fetch_names,
        passes=passes,
        place=executor.place,
        manager=executor.manager,
        debug=debug,
    )
    scope.erase(done.unused)
    return InferenceModel(Program(done.program), model.feed_names, model.fetch_names), done


def freeze_parameters(scope: Scope) -> None:
    """Make parameters read-only: kernel libraries may then keep what they derive from them, such as packed weights."""
    for name in scope.local_var_names():
        value = scope.var(name).value
        if isinstance(value, LoDTensor) and isinstance(value.array, np.ndarray) and value.array.flags.owndata:
            value.shared = True  # an op in place makes memory of its own first
            value.array.flags.writeable = False

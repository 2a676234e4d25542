"""Passes over inference models: rewriting one with its parameters, and what each pass did, as plain data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.io.inference_model import InferenceModel
from oprack.ir.passes import Optimized, Pass, optimize, registered_passes, select_passes
from oprack.program import Program

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager
    from oprack.runtime import NaiveExecutor
    from oprack.tensor import Scope


def optimize_model(
    model: InferenceModel,
    scope: Scope,
    executor: NaiveExecutor,
    passes: Sequence[Pass] | None = None,
    debug: bool | None = None,
    precisions: Mapping[str, Collection[str] | None] | None = None,
) -> tuple[InferenceModel, Optimized]:
    """Run passes over a model, and free the parameters that it needs no more.

    Args:
        model: As loaded; it stays as it is.
        scope: Holds the parameters; folded ones are added.
        executor: Runs the model later; its place and packs decide which passes there are.
        passes: In order; None = all that serve inference at the place.
        precisions: Dtypes that ops may compute in other than their own, where `passes` is None; see `select_passes`.
        debug: Verify the graph after every pass; None = as the environment variable OPRACK_IR_DEBUG says.

    Returns:
        The rewritten model, and what each pass did.

    Raises:
        MissingPackError: When no pack brings an op.
        BlockCycleError, BlockDepthError: When blocks can't be run.
        GraphError: When verification fails.
    """
    executor.check(model.program.desc)
    if passes is None and precisions:
        passes = select_passes(executor.place, manager=executor.manager, precisions=precisions)
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


def pass_records(optimized: Optimized, manager: PackManager) -> list[dict[str, Any]]:
    """What passes did to a model, as plain data.

    Args:
        optimized: What they left.
        manager: The packs that brought them.

    Returns:
        One record per pass, in the order in which they ran.
    """
    passes = {p.name: p for p in registered_passes(manager)}
    return [
        {
            "pass": r.name,
            "pack": r.owner,
            "matches": r.matches,
            "ops_before": r.ops_before,
            "ops_after": r.ops_after,
            "stage": passes[r.name].stage,
            "strict": not passes[r.name].reorders_sums,
            "milliseconds": round(r.milliseconds, 3),
            "error": r.error,
        }
        for r in optimized.reports
    ]

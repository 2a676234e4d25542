"""What `oprack show --passes` and `--plan` print: what each pass did to a model, and the code that runs it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from oprack.cli.models import model_arguments
from oprack.cli.output import manager_of, print_table

if TYPE_CHECKING:
    from oprack.ir import Optimized
    from oprack.packs.manager import PackManager
    from oprack.tensor import Scope


class Rewritten:
    """A loaded model, and what the passes for inference at the CPU made of it."""

    def __init__(self, args: argparse.Namespace) -> None:
        from oprack.io.inference_model import load_inference_model, optimize_model
        from oprack.runtime import Executor
        from oprack.tensor import Scope

        path, model_filename, params = model_arguments(args)
        self.scope: Scope = Scope()
        model = load_inference_model(path, self.scope, model_filename=model_filename, params_filename=params)
        self.executor = Executor(manager=manager_of(args))
        self.feeds, self.fetches = model.feed_names, model.fetch_names
        self._args = args
        self.optimized: Optimized = optimize_model(model, self.scope, self.executor)[1]

    def report(self) -> list[dict[str, Any]]:
        """One record per pass, in the order in which they ran."""
        return pass_records(self.optimized, self.executor.manager)

    def plan(self) -> str:
        """The code that the rewritten program runs as, after one run with the --feed files.

        Raises FeedError of several kinds when they do not fit.
        """
        from oprack.cli.feeds import read_feeds

        feed = read_feeds(self._args.feed, self._args.lod, self.feeds)
        program = self.optimized.program
        self.executor.run(program, feed, self.fetches, self.scope, return_numpy=False)
        return self.executor.prepare(program).block(0).plan(self.fetches).source()


def pass_records(optimized: Optimized, manager: PackManager) -> list[dict[str, Any]]:
    """What passes did to a model, as plain data.

    Args:
        optimized: What they left.
        manager: The packs that brought them.

    Returns:
        One record per pass, in the order in which they ran.
    """
    from oprack.ir import registered_passes

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


def print_passes(rows: list[dict[str, Any]]) -> None:
    """A table of what `Rewritten.report` says, and the sum of it."""
    print()
    table = [
        (
            r["pass"],
            r["pack"],
            r["stage"],
            r["matches"],
            r["ops_before"],
            r["ops_after"],
            "yes" if r["strict"] else "no",
            f"{r['milliseconds']:.1f}",
            r["error"],
        )
        for r in rows
    ]
    print_table(("PASS", "PACK", "STAGE", "MATCHES", "OPS BEFORE", "AFTER", "STRICT", "MS", ""), table)
    if rows:
        before, after = rows[0]["ops_before"], rows[-1]["ops_after"]
        print(f"\n{before} ops became {after}. Passes that are not strict may change the order of sums and rounding")

"""Writes every recorded case of the ops of saved nets as a model, and runs it by ONNX Runtime.

    python plugins/onnx/tools/export_score.py [OP ...]
"""

from __future__ import annotations

import collections
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from exported_cases import Outcome, cases_of, op_types, outcome  # noqa: E402


def main() -> None:
    """Score."""
    asked = [a for a in sys.argv[1:] if not a.startswith("-")]
    every = {op: [outcome(op, case) for case in cases_of(op)] for op in asked or sorted(op_types())}
    kinds = collections.Counter(o.kind for found in every.values() for o in found)
    for op, found in every.items():
        bad = [o for o in found if o.kind != "agrees"]
        print(f"{op}: {len(found) - len(bad)} of {len(found)}", flush=True)
        seen = set()
        for o in bad:
            key = (o.kind, o.reason[:60])
            if key not in seen or "-v" in sys.argv:
                seen.add(key)
                print(f"    {o.case}: {o.kind}: {o.reason[:260]}")
    print(kinds)
    with_cases = {op: found for op, found in every.items() if found}
    some = sum(any(o.kind == "agrees" for o in found) for found in with_cases.values())
    whole = sum(all(o.kind == "agrees" for o in found) for found in with_cases.values())
    print(f"of {len(with_cases)} ops with cases, {some} export, {whole} in all cases")


if __name__ == "__main__":
    main()

"""Writes src/oprack_pir/optable.json from recorded facts about Paddle's ops.

    python tools/make_optable.py pir_optable.json

The facts (from Paddle's ops.yaml and op_compat.yaml) say for each op of PIR the op type of Fluid, slots in the order of
operands and results, and names of attributes. Left out are gradient ops and those of devices that Fluid has no op for.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TABLE = Path(__file__).parents[1] / "src" / "oprack_pir" / "optable.json"
LEFT_OUT = ("_grad", "_xpu", "_double_grad", "_triple_grad")
FORMS = {"data", "feed", "fetch", "full", "full_int_array", "assign_value", "assign_value_"}
"""What oprack_pir.forms writes."""


def row(facts: dict) -> dict:
    """One op of the table: only what is not empty, and of the attributes those whose names differ."""
    renamed = {pir: fluid for pir, fluid in facts["attrs"].items() if pir != fluid}
    found = {
        "op": facts["legacy"],
        "in": [slot for _, _, slot in facts["in"]],
        "mut": [[pir, attr, slot or "", slots or ""] for pir, attr, slot, slots in facts["mut"]],
        "out": [slot for _, _, slot in facts["out"]],
        "attrs": [pir for pir, fluid in facts["attrs"].items() if pir == fluid],
        "renamed": renamed,
    }
    return {key: value for key, value in found.items() if value}


def main(source: str) -> None:
    """Write the table, one op a line."""
    facts = json.loads(Path(source).read_text(encoding="utf-8"))
    rows = {name: row(facts[name]) for name in sorted(facts) if not name.endswith(LEFT_OUT) and name not in FORMS}
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in rows.items()]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

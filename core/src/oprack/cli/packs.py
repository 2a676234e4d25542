"""oprack packs [--json] [--block NAME]"""

from __future__ import annotations

import argparse
import warnings

from oprack.cli.main import OK
from oprack.cli.output import add_block, add_json, manager_of, print_json, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    add_block(parser)


def run(args: argparse.Namespace) -> int:
    from oprack.packs.info import BrokenPackWarning

    warnings.simplefilter("ignore", BrokenPackWarning)  # the table says it
    packs = manager_of(args).packs()
    if args.json:
        print_json([pack.to_dict() for pack in packs])
        return OK
    rows = []
    for pack in packs:
        notes = pack.error.partition("\n")[0]
        if conflicts := [*pack.conflicts, *pack.layer_conflicts]:
            notes = "conflicts with another pack: " + ", ".join(conflicts)
        brings = " ".join(hook.removeprefix("oprack_") for hook in pack.hooks)
        rows.append((pack.name, pack.distribution, pack.version, pack.status, len(pack.op_types), brings, notes))
    print_table(("PACK", "DISTRIBUTION", "VERSION", "STATUS", "OPS", "BRINGS", ""), rows)
    if any(pack.status == "broken" or pack.conflicts or pack.layer_conflicts for pack in packs):
        print("\nRun `oprack doctor` for the whole reasons.")
    return OK

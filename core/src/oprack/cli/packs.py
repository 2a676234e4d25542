"""oprack packs [--search WORD] [--json] [--block NAME] [--lock FILE]"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from oprack.cli.main import FINDING, OK
from oprack.cli.output import add_block, add_json, check_file, manager_of, print_json, print_table

if TYPE_CHECKING:
    from oprack.packs.choice import Settlement
    from oprack.packs.manager import PackManager
    from oprack.packs.pack import PackInfo


def configure(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    add_block(parser)
    parser.add_argument(
        "--lock",
        metavar="FILE",
        help="write the allow-list of the packs in use, with the hashes of their files, for OPRACK_ALLOW=FILE",
    )

    parser.add_argument(
        "--search",
        metavar="WORD",
        help="list the packs whose names, ops, layers or summaries have this word, installed or known to exist",
    )


def run(args: argparse.Namespace) -> int:
    from oprack.packs.pack import BrokenPackWarning

    warnings.simplefilter("ignore", BrokenPackWarning)  # the table says it
    check_file("--lock", args.lock, "packs.allow.toml")
    manager = manager_of(args)
    packs = manager.packs()
    if args.search is not None:
        return _search(args.search, packs, args.json)
    if args.lock:
        return _lock(args.lock, manager)
    if args.json:
        print_json([pack.to_dict() for pack in packs])
        return OK
    settled = manager.index.settlements()
    rows = []
    for pack in packs:
        notes = pack.error.partition("\n")[0] or "; ".join(_shared(pack, settled))
        brings = " ".join(_brings(pack))
        rows.append((pack.name, pack.distribution, pack.version, pack.status, len(pack.op_types), brings, notes))
    print_table(("PACK", "DISTRIBUTION", "VERSION", "STATUS", "OPS", "BRINGS", ""), rows)
    if any(pack.status == "broken" for pack in packs) or any(not s.by_user for s in settled):
        print("\nRun `oprack doctor` for the whole reasons.")
    return OK


def _search(word: str, packs: Sequence[PackInfo], as_json: bool) -> int:
    """List packs by a word; FINDING where there is none."""
    from oprack.names.known import known_to_exist

    found = [row for row in known_to_exist(packs) if row.matches(word)]
    if as_json:
        print_json([row.to_dict() for row in found])
    elif found:
        print_table(("DISTRIBUTION", "INSTALLED", "BRINGS"), [row.shown(word) for row in found])
        if lacking := [row.distribution for row in found if not row.version]:
            print(f"\n`pip install {' '.join(lacking)}` adds what is not installed.")
    else:
        print(f"no pack that is installed or known to exist has {word!r}; `oprack packs` lists what is installed")
    return OK if found else FINDING


def _brings(pack: PackInfo) -> list[str]:
    """What it brings, in the words of the hooks; kernels and layers in its manifest count as those of the hooks do."""
    words = [hook.removeprefix("oprack_") for hook in pack.hooks]
    if pack.kernels and "kernels" not in words:
        words.insert(1, "kernels")
    if pack.layers and "layers" not in words:
        words.append("layers")
    return [word for word in words if word != "ops" or pack.op_types]


def _shared(pack: PackInfo, settled: Sequence[Settlement]) -> Iterator[str]:
    """What other packs bring as well, and whose is used."""
    for one in settled:
        names = [p.found.name for p in (one.winner, *one.others)]
        if pack.name in names and one.what == "op" and not one.decided:
            yield f"op {one.name}: refused until one of {' and '.join(sorted(names))} is preferred"
        elif pack.name in names:
            used = "its own, not that" if names[0] == pack.name else f"that of {names[0]}, not that"
            yield f"{one.what} {one.name}: {used} of {' or '.join(names[1:])} is used"


def _lock(path: str, manager: PackManager) -> int:
    from oprack.io.atomic import write_atomic
    from oprack.packs.installed.allow_list import render

    found = [pack.found for pack in manager.discovered() if pack.status == "ok"]
    write_atomic(path, render(found).encode())
    print(f"{path}: {len({f.distribution for f in found}) - 1} distributions; OPRACK_ALLOW={path} loads only these")
    return OK

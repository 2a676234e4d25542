"""oprack cache DIR [--clear] [--json]"""

from __future__ import annotations

import argparse
import time

from oprack.cli.main import OK
from oprack.cli.output import add_json, print_json, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", help="what Config.set_optim_cache_dir was given")
    parser.add_argument("--clear", action="store_true", help="remove all of them; the next predictors make them anew")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from oprack.inference.optim_cache import OptimCache

    cache = OptimCache(args.directory)
    if args.clear:
        count = cache.clear()
        print_json({"removed": count}) if args.json else print(f"{count} files removed from {args.directory}")
        return OK
    entries = cache.entries()
    if args.json:
        print_json([{"file": str(path), "bytes": size, "used": used} for path, size, used in entries])
        return OK
    now = time.time()
    print_table(
        ("FILE", "MB", "LAST USED"),
        [(path.name, f"{size / 1e6:.1f}", f"{max(0.0, now - used) / 3600:.1f} h ago") for path, size, used in entries],
    )
    return OK

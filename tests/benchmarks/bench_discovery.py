"""Times discovery with 10, 100 and 1,000 packs, cold and warm, and `oprack packs` with 5.

Run it alone: `python tests/benchmarks/bench_discovery.py [--json]`. Each figure is the median of whole interpreters,
less a bare one, so that imports count. Cold: without the cache of discovery. Warm: with it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import pack_site

DISCOVER = "import oprack; assert len(oprack.default_manager().op_types()) == {count} * 2 + 2"
LIST = "import sys; from oprack.cli.main import main; sys.exit(main(['packs']))"


def seconds(code: str, env: dict[str, str], repeat: int) -> float:
    """Median wall time of an interpreter that runs `code`."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        done = pack_site.run_python("-c", code, env=env)
        times.append(time.perf_counter() - start)
        if done.returncode:
            raise RuntimeError(done.stderr)
    return statistics.median(times)


def measure(count: int, repeat: int) -> dict[str, float]:
    """Seconds that discovery of `count` packs adds to an interpreter's start."""
    with tempfile.TemporaryDirectory() as name:
        site, cache = Path(name, "site"), Path(name, "cache")
        pack_site.synthetic(site, count)
        paths = [site, pack_site.libraries(Path(name, "libraries"))]
        off = pack_site.environment(paths)
        on = pack_site.environment(paths, OPRACK_CACHE="1", OPRACK_CACHE_DIR=str(cache))
        code = DISCOVER.format(count=count)
        bare = seconds("pass", off, repeat)
        seconds(code, on, 1)  # writes bytecode, as pip does, and the cache
        found = {"cold": seconds(code, off, repeat) - bare, "warm": seconds(code, on, repeat) - bare}
        found["oprack packs"] = seconds(LIST, on, repeat) - bare
        return found


def main() -> int:
    """Print the figures; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeat", type=int, default=9)
    args = parser.parse_args()
    found = {count: measure(count, args.repeat) for count in (5, 10, 100, 1000)}
    ratios = {kind: found[1000][kind] / found[10][kind] for kind in ("cold", "warm")}
    if args.json:
        print(json.dumps({"seconds": found, "1000 packs / 10 packs": ratios}, indent=2))
    else:
        for count, row in found.items():
            print(f"{count:5} packs: " + ", ".join(f"{kind} {value * 1e3:.0f} ms" for kind, value in row.items()))
        print("1000 packs cost " + ", ".join(f"{r:.1f} times 10 packs {kind}" for kind, r in ratios.items()))
    return int(max(ratios.values()) > 10 or found[5]["oprack packs"] > 0.15)


if __name__ == "__main__":
    sys.exit(main())

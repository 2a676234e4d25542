"""python -m oprack.testing.fuzz: fuzz installed packs; `make fuzz`. Its first word `ranks`: global tensors on ranks."""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from oprack.errors import OprackError
from oprack.packs.manager import default_manager
from oprack.testing.fuzz.campaign import Campaign, all_targets
from oprack.testing.fuzz.examples.strategies import hypothesis
from oprack.testing.fuzz.searching import read_known

_TARGETS = "op types, `net`, `net:block,block`, `life`, `life:jit,plan`, or `injection`; default: all but the last"


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 when something differed."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["ranks"]:
        return _ranks(given[1:])
    parser = argparse.ArgumentParser(prog="python -m oprack.testing.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help=_TARGETS)
    parser.add_argument("--pack", action="append", default=[], help="the ops of this pack; may be given several times")
    parser.add_argument("--seed", type=int, help="default: a new one")
    parser.add_argument("--seconds", type=float, default=0.0, help="default: until stopped")
    parser.add_argument("--examples", type=int, default=40, help="examples of one search")
    parser.add_argument("--rounds", type=int, default=4, help="searches of a target, after each that found something")
    parser.add_argument("--shrink", type=float, default=10.0, help="seconds for making a failure small")
    parser.add_argument("--hang", type=float, default=60.0, help="seconds after which an example hangs")
    parser.add_argument("--path", action="append", default=[], help="patterns of the paths to run; default: all")
    parser.add_argument("--cases", action="append", type=Path, default=[], help="folders of recorded cases (.npz)")
    parser.add_argument("--records", action="append", type=Path, default=[], help="folders of case files (OpCase)")
    parser.add_argument("--known", type=Path, help="TOML file of known differences")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="where failures are kept")
    options = parser.parse_args(given)
    if "injection" in options.targets:
        return _inject(options)
    try:
        hypothesis()
        for op_type in (t for t in options.targets if not _is_many(t)):
            default_manager().op_info(op_type)
    except OprackError as error:
        parser.error(f"{error}; a target is an op type, net, net:block,block, life, or life:engine,engine")
    targets = [t.replace(":", " ").replace(",", " ") if _is_many(t) else f"op {t}" for t in options.targets]
    if options.pack or not targets:
        targets += all_targets(options.pack)
    seed = random.SystemRandom().randrange(1 << 30) if options.seed is None else options.seed
    print(f"seed {seed}, {len(targets)} targets", flush=True)
    campaign = Campaign(
        targets,
        seed,
        options.seconds,
        options.out,
        folders=options.cases,
        records=options.records,
        known=read_known(options.known) if options.known else [],
        only=options.path,
        examples=options.examples,
        rounds=options.rounds,
        shrink=options.shrink,
        hang=options.hang,
        say=lambda text: print(text, flush=True),
    )
    campaign.run()
    print(campaign.summary(), f"(seed {seed})")
    return 1 if campaign.failures else 0


def _inject(options: argparse.Namespace) -> int:
    """Interruptions instead of other paths; they are raised in this process."""
    from oprack.testing.fuzz.injection import Injections

    seed = random.SystemRandom().randrange(1 << 30) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    report = Injections(default_manager(), seed, hang=4 * options.hang).run(options.seconds or 60.0)
    print(f"{report.injected} interruptions; {len(report.failures)} failures (seed {seed})")
    return 1 if report.failures else 0


def _is_many(target: str) -> bool:
    return target.partition(":")[0] in ("net", "life")


def _ranks(arguments: list[str]) -> int:
    """`ranks`: generated programs with global tensors, on several ranks and on one."""
    from oprack.parallel.world import world
    from oprack.testing.fuzz.ranks.programs import Maker, search

    parser = argparse.ArgumentParser(
        prog="python -m oprack.testing.fuzz ranks",
        description="Run generated programs with global tensors on ranks and on one. Under `oprack launch` ranks are "
        "its processes and need --seed and --programs, else threads of this process.",
    )
    parser.add_argument("ops", nargs="*", help="op types; default: all that have a rule of splitting")
    parser.add_argument("--seed", type=int, help="of the first program; default: a new one")
    parser.add_argument("--seconds", type=float, default=0.0, help="default: until --programs are done")
    parser.add_argument("--programs", type=int, default=0, help="so many; default: until the time is over")
    parser.add_argument("--cases", action="append", type=Path, default=[], help="folders of recorded cases (.npz)")
    parser.add_argument("--records", action="append", type=Path, default=[], help="folders of case files (OpCase)")
    options = parser.parse_args(arguments)
    here = world()
    if here.size > 1 and (options.seconds or options.seed is None or not options.programs):
        parser.error("several ranks run, which have to end alike; expected --seed and --programs, and no --seconds")
    try:
        for op_type in options.ops:
            default_manager().op_info(op_type)
    except OprackError as error:
        parser.error(f"{error}; expected op types")
    seed = random.SystemRandom().randrange(1 << 30) if options.seed is None else options.seed
    maker = Maker(options.cases, options.records, options.ops, here.size if here.size > 1 else 0)
    found = search(maker, seed, options.seconds, options.programs)
    print(
        f"{found.programs} programs of {found.steps} steps, {len(found.failures)} failures (seed {seed}, "
        f"rank {here.rank} of {here.size})",
        flush=True,
    )
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())

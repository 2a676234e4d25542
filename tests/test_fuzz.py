"""Generated ops and nets give on every path what the reference path gives; a fixed seed, in processes that may die."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from oprack.testing import FUZZED
from oprack.testing.fuzz import Checker, Example, load_all, read_known
from oprack.testing.fuzz.campaign import Campaign, all_targets

DATA = Path(__file__).parent / "data"
KNOWN = DATA / "fuzz_known.toml"
SHARDS, NETS = 8, 4
OP_EXAMPLES, NET_EXAMPLES = 1, 14
SEED = 20260101


def _fuzz(targets: list[str], seed: int, examples: int, folder: Path) -> Campaign:
    campaign = Campaign(
        targets,
        seed,
        0,
        folder,
        folders=[DATA / "cases"],
        known=read_known(KNOWN),
        examples=examples,
        rounds=1,
        once=True,
        turn=len(targets),  # one child, which imports all that it needs once
    )
    campaign.run()
    return campaign


def _no_failures(campaign: Campaign) -> str:
    shown = []
    for failure in campaign.failures:
        script = Path(failure["file"]).with_suffix(".py")
        shown.append(failure["failure"] + ("\n" + script.read_text("utf-8") if script.is_file() else ""))
    return "\n\n".join(shown)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_ops(shard: int, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Changed calls of every op that has a kernel for the CPU, and lives of every engine."""
    targets = [t for t in all_targets() if t != "net"][shard::SHARDS]
    campaign = _fuzz(targets, SEED + shard, OP_EXAMPLES, tmp_path)
    record_property(FUZZED, campaign.tally.examples)
    assert campaign.tally.accepted > len(targets) // 2
    assert not campaign.failures, _no_failures(campaign)


@pytest.mark.parametrize("shard", range(NETS))
def test_nets(shard: int, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Nets of the blocks that packs bring."""
    campaign = _fuzz(["net"], SEED + shard, NET_EXAMPLES, tmp_path)
    record_property(FUZZED, campaign.tally.examples)
    assert campaign.tally.accepted
    assert not campaign.failures, _no_failures(campaign)


KEPT = dict(load_all(DATA / "fuzz"))


@pytest.mark.parametrize("name", KEPT)
def test_kept_cases(name: str) -> None:
    """Examples that differed once."""
    example: Example = KEPT[name]
    checker = Checker()
    parts = {p.name: p.parts for p in checker.paths}
    found = checker.check(example)
    known = read_known(KNOWN)
    assert not [str(d) for d in found if not any(k.covers(d, parts[d.path], example.op_types) for k in known)]

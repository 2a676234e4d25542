"""Which distribution brings which name: the tables beside this file.

`homes.toml` lists what oprack's own distributions bring (`oprack manifest --homes` writes it), so that an unknown op
can be answered with the command that installs it. `paddle_ops.txt` lists the op types of Paddle 2.6.2, and
`paddle_missing.toml` says why no distribution brings some of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

HOMES = Path(__file__).with_name("homes.toml")
Homes = dict[str, dict[str, tuple[str, ...]]]


def text(filename: str) -> str:
    """The text of a table."""
    return HOMES.with_name(filename).read_text(encoding="utf-8")


@cache
def homes() -> Homes:
    """distribution -> kind ("ops", "roles", "layers", "optimizer" ...) -> names."""
    import tomllib

    return {
        distribution: {kind: tuple(names.split()) for kind, names in kinds.items()}
        for distribution, kinds in tomllib.loads(text(HOMES.name)).items()
    }


@cache
def known_packs() -> Mapping[str, Mapping[str, str]]:
    """Packs of others that their authors made known: distribution -> "summary", "url", and the names it "brings"."""
    import tomllib

    return tomllib.loads(text("known_packs.toml"))


def home(kind: str, name: str) -> str:
    """The distribution that brings a name; `kind` is "ops", "roles", "layers" and so on; "" when none does."""
    return _index(kind).get(name, "")


def names(kind: str) -> Iterable[str]:
    """All names; `kind` is "ops", "roles", "layers" and so on."""
    return _index(kind).keys()


@cache
def _index(kind: str) -> dict[str, str]:
    return {name: distribution for distribution, kinds in homes().items() for name in kinds.get(kind, ())}


@cache
def paddle_ops() -> tuple[str, ...]:
    """The op types of Paddle 2.6.2, sorted."""
    lines = text("paddle_ops.txt").splitlines()
    return tuple(name for line in lines if not line.startswith("#") for name in line.split())


def why_missing(op_type: str) -> str:
    """Why none of oprack's distributions brings an op of Paddle's.

    Args:
        op_type: The op.

    Returns:
        The reason; "" for an op that a distribution brings, or that is not Paddle's.
    """
    return "" if home("ops", op_type) else missing_reasons().get(op_type, "")


@cache
def missing_reasons() -> Mapping[str, str]:
    """Op types of Paddle that no distribution brings, with the reason of each."""
    import tomllib

    data = tomllib.loads(text("paddle_missing.toml"))
    return {op_type: entry["why"] for entry in data.get("reason", ()) for op_type in entry["ops"].split()}

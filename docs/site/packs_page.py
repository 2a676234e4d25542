"""The page of packs that are known to exist, from the entry points of what is installed and from known_packs.toml."""

from __future__ import annotations

import oprack
from oprack.names.known import KnownPack, known_to_exist

HEAD = """# Packs

A pack is a distribution that pip installs and oprack finds by itself; `oprack packs --search WORD` looks through this
list by the ops and layers that each brings. The first table is oprack's own. To add a pack of yours to the second, send
a pull request that names it in `plugins/names/src/oprack/names/known_packs.toml`: its distribution, a line about it,
its address and what it brings. Nobody reviewed the packs of others; they run with all rights of your process, as any
package does.
"""


def page() -> str:
    """The page.

    Returns:
        Markdown.
    """
    known = known_to_exist(oprack.default_manager().packs())
    own = [pack for pack in known if pack.distribution in _own()]
    others = [pack for pack in known if pack.distribution not in _own()]
    table = _table(others) if others else "None yet: [write one](tutorials/write_a_pack.md).\n"
    return f"{HEAD}\n## Of oprack\n\n{_table(own)}\n## Of others\n\n{table}"


def _own() -> set[str]:
    from oprack.names.tables import homes

    return {"oprack", *homes()}


def _table(packs: list[KnownPack]) -> str:
    rows = [f"| {_named(pack)} | {pack.summary} | {_brings(pack)} |" for pack in packs]
    return "\n".join(["| install | for | brings |", "| --- | --- | --- |", *rows, ""])


def _named(pack: KnownPack) -> str:
    name = f"`pip install {pack.distribution}`"
    return f"{name} ([source]({pack.url}))" if pack.url else name


def _brings(pack: KnownPack) -> str:
    ops = [n for n in pack.names if "." not in n and not n.endswith("_grad")]
    others = len(pack.names) - len([n for n in pack.names if "." not in n])
    first = ", ".join(f"`{n}`" for n in ops[:5]) + (" ..." if len(ops) > 5 else "")
    parts = [f"{len(ops)} ops: {first}"] if ops else []
    return "; ".join([*parts, *([f"{others} other names"] if others else [])])

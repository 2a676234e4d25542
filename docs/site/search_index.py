"""What the search of the site knows: the index that MkDocs writes, without what stands on every page of an op.

Each of some 700 pages has headings such as Kernels and tables of slots, so that "kernel LoD" would find all of them and
the page about it nowhere. An op stays with its name, its text and its attributes, and its gradient ops with theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any

SEARCHED = {"Attributes"}  # sections of the page of an op that are found besides the names of ops
# An op whose name begins those of others is what is meant, but the engine takes rarer words for better ones.
BOOST = 8.0
# A guide that has the words in its title is wanted before an op that has.
GUIDES, GUIDE_BOOST = ("tutorials/", "how_to/", "concepts/"), 4.0


def tidy(index: Mapping[str, Any], ops: Collection[str]) -> dict[str, Any]:
    """The index as it is searched.

    Args:
        index: What MkDocs wrote, with `docs`: location, title and text of each section of each page.
        ops: Names of all ops.
    """
    pages = sorted(e["title"] for e in index["docs"] if e["location"].startswith("ops/") and "#" not in e["location"])
    begun = {name for name, after in pairwise(pages) if after.startswith(name)}
    kept = []
    for entry in index["docs"]:
        page, _, section = entry["location"].partition("#")
        if page.startswith("ops/"):
            if section and entry["title"] not in ops and entry["title"] not in SEARCHED:
                continue
            boost = BOOST if not section and entry["title"] in begun else 1.0
        else:
            boost = GUIDE_BOOST if page.startswith(GUIDES) and not section else 1.0
        kept.append(entry | ({"boost": boost} if boost != 1.0 else {}))
    return {**index, "docs": kept}

"""Whether ops.toml is what `oprack manifest` would write."""

from __future__ import annotations

from collections.abc import Iterator

from oprack.packs.manifest import Manifest, render
from oprack.testing.review.pack_source import registered_text
from oprack.testing.review.subject import Finding, Subject


def review(subject: Subject) -> Iterator[Finding]:
    """Compare the file with the source tree, and name ops that only one of them has."""
    if text := registered_text(subject.source, subject.manifest):
        yield Finding("manifest", text, f"then run `oprack manifest {subject.path}`", note=True)
    target = subject.source.manifest_path
    if not target.is_file() and subject.manifest == Manifest({}, {}, {}, {}):
        return  # a pack whose hooks register everything
    current = target.read_text(encoding="utf-8") if target.is_file() else ""
    if current == render(subject.manifest):
        return
    lacking = [t for t in subject.manifest.ops if f"[ops.{t}]" not in current]
    lacking += [f"facets of {t}" for t in subject.manifest.facets if "[facets]" not in current]
    what = f"it lacks {', '.join(lacking)}, so nobody finds these ops" if lacking else "it does not fit the source tree"
    yield Finding("manifest", f"{target.name} is stale: {what}", f"run `oprack manifest {subject.path}`")

"""What MkDocs calls while it builds the site: pages made from code, formulas, pictures, and links out of docs/."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import pictures
from formulas import FormulaExtension
from joined import ROOT, join
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from op_pages import op_pages
from packs_page import page as packs_page
from reference_pages import reference_pages

# mkdocstrings looks for its folders before any event
join(ROOT / "out" / "joined")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Formulas and pictures are parts of Markdown everywhere, docstrings included."""
    config.markdown_extensions.append(FormulaExtension())
    config.mdx_configs["pymdownx.superfences"] = {
        "custom_fences": [{"name": "mermaid", "class": "mermaid", "format": pictures.fence}]
    }
    if config.nav is not None:
        config.nav = [*config.nav, *_unnamed(config.nav, Path(config.docs_dir))]
    return config


def _unnamed(nav: Any, docs: Path) -> list[dict[str, Any]]:
    """Pages in docs/ that the navigation does not name, as a last section."""
    named = set(re.findall(r"[\w/]+\.md", repr(nav)))
    more = sorted(f.name for f in docs.glob("*.md") if f.name not in named)
    return [{"More": more}] if more else []


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from what is installed; `extra.only` and `extra.rooms` limit them for tests."""
    made = op_pages(config.extra.get("only", ())) | reference_pages(config.extra.get("rooms", ()))
    made["packs.md"] = packs_page()
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to files of the repository that are no pages become their names."""

    def outside(match: re.Match[str]) -> str:
        text, target = match.groups()
        path = os.path.normpath(os.path.join("docs", os.path.dirname(page.file.src_uri), target))
        if path.startswith("docs/"):
            return match[0]
        return text if path in text or not path.strip("./") else f"{text} (`{path}`)"

    return re.sub(r"\[([^\]]*)\]\((\.\.[^)#]*)[^)]*\)", outside, markdown)

"""What MkDocs calls while it builds the site: pages made from code, formulas, pictures, and links out of docs/."""

from __future__ import annotations

import json
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
from oprack import default_manager
from packs_page import page as packs_page
from reference_pages import reference_pages
from search_index import tidy

PICTURES = [ROOT / "examples" / "ocr_demo.png"]
# Files outside of docs/ that the site has as well, and where
PAGES = {"CONTRIBUTING.md": "contributing.md", "plugins/onednn/DESIGN.md": "onednn.md"}
OF_THE_SITE = PAGES | {str(p.relative_to(ROOT)): p.name for p in PICTURES}

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
    made |= {page: _seen_from_docs(path) for path, page in PAGES.items()}
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    for picture in PICTURES:
        files.append(File.generated(config, picture.name, abs_src_path=str(picture)))
    return files


def _seen_from_docs(path: str) -> str:
    """A document that lies elsewhere as a page of docs/: its links are seen from there."""

    def moved(match: re.Match[str]) -> str:
        target = os.path.normpath(os.path.join(os.path.dirname(path), match[1]))
        return f"]({os.path.relpath(target, 'docs')}"

    return re.sub(r"\]\((?!https?:|#)([^)#]+)", moved, (ROOT / path).read_text("utf-8"))


def on_post_build(config: MkDocsConfig) -> None:
    """Let the search find what is meant; its plugin has written the index by now."""
    path = Path(config.site_dir, "search", "search_index.json")
    index = tidy(json.loads(path.read_text("utf-8")), set(default_manager().op_types()))
    path.write_text(json.dumps(index, separators=(",", ":")), "utf-8")


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to files of the repository become their names, or lead to what the site has of them."""
    folder = os.path.dirname(page.file.src_uri)

    def outside(match: re.Match[str]) -> str:
        text, target = match.groups()
        path = os.path.normpath(os.path.join("docs", folder, target))
        if path in OF_THE_SITE:
            return f"[{text}]({os.path.relpath(OF_THE_SITE[path], folder or '.')})"
        if path.startswith("docs/"):
            return match[0]
        return text if path in text or not path.strip("./") else f"{text} (`{path}`)"

    return re.sub(r"\[([^\]]*)\]\((\.\.[^)#]*)[^)]*\)", outside, markdown)

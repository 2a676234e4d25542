"""Formulas between dollars as MathML, which browsers draw without a script or a font from elsewhere."""

from __future__ import annotations

import re
from functools import cache
from html import escape

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor

# Before emphasis and escapes, which would take `_` and `\` of a formula for Markdown; after code between backticks.
PRIORITY = 185
WORDS = re.compile(r"\\text\{([^{}]*)\}")
ELEMENTS = set("math mrow mi mo mn mtext mspace mstyle mfrac msqrt mroot msub msup msubsup munder mover".split())
ELEMENTS |= set("munderover mtable mtr mtd mfenced mpadded mphantom menclose".split())
PATTERN = r"\$\$(?P<block>.+?)\$\$|(?<![\\$\w])\$(?P<line>[^$\s](?:[^$]*?[^$\s\\])?)\$(?![\w$])"


@cache
def mathml(formula: str, display: bool) -> str:
    """A formula of LaTeX as an element `math`.

    Args:
        formula: What stands between the dollars.
        display: Whether it has a line of its own.
    """
    # Words come out of the conversion as they are, so that a formula could bring elements into its page.
    text = WORDS.sub(lambda m: rf"\text{{{escape(m[1], quote=False)}}}", formula)
    # Names of slots stand in formulas as they are; LaTeX would take the letters for a product and `_` for an index.
    found = convert(text.replace("@GRAD", r"\text{@GRAD}"), display="block" if display else "inline")
    elements = re.finditer(r"</?\s*([^\s>/]+)[^>]*>?", found)
    foreign = [m[0] for m in elements if m[1] not in ELEMENTS or "href" in m[0]]
    if foreign:
        raise ValueError(f"formula {formula!r} becomes {foreign[0]!r}; expected elements of MathML alone and no links")
    return re.sub(r"\s*\n\s*", " ", found)


class _Formula(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # type: ignore[override]
        block = m["block"]
        drawn = mathml(block or m["line"], bool(block))
        # what is wider than a phone is moved with a finger, and not cut
        shown = f'<span class="formula" tabindex="0">{drawn}</span>' if block else drawn
        return self.md.htmlStash.store(shown), m.start(), m.end()


class FormulaExtension(Extension):
    """Markdown in which `$x$` and `$$x$$` are formulas."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Add the pattern."""
        md.inlinePatterns.register(_Formula(PATTERN, md), "formula", PRIORITY)


def in_cell(text: str) -> str:
    """A text with formulas as a cell of a table: a bar would end the cell, and a line's end the row."""
    parts = re.split(r"(\$\$.+?\$\$|\$[^$]+\$|`[^`]*`)", " ".join(text.split()))
    return "".join(
        part.replace("|", r"\vert ") if part.startswith("$") else plain(part).replace("|", r"\|") for part in parts
    )


def plain(text: str) -> str:
    """A docstring's text as Markdown: what only looks like HTML or emphasis is escaped; code and formulas stay."""
    parts = re.split(r"(\$\$.+?\$\$|\$[^$]+\$|`[^`]*`)", text, flags=re.DOTALL)
    return "".join(p if p[:1] in ("$", "`") else re.sub(r"([<*_\[\]])", r"\\\1", p) for p in parts)

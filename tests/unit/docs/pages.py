"""The pages in docs/, with their code blocks, links and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ (?P<text>.*)$", re.M)


def blocks(page: Path, language: str) -> Iterator[str]:
    """Yield the fenced code blocks of a page in a language."""
    for found in FENCE.finditer(page.read_text()):
        if found["language"] == language:
            yield found["text"]


def links(page: Path) -> Iterator[str]:
    """Yield the targets of a page's links, except those to other sites."""
    for found in LINK.finditer(FENCE.sub("", page.read_text())):
        if "://" not in found["target"]:
            yield found["target"]


def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page, as GitHub makes them from headings."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    return frozenset(re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-") for text in headings)

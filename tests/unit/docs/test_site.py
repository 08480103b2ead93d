"""The site builds from docs/ without warnings, and what it loads is in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.unit.docs.pages import DOCS, ROOT

SHOWN = {"a"}
"""Elements whose addresses a browser opens only if a reader asks for it."""


class Page(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: set[tuple[str, str]] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"href", "src", "srcset"} and value:
                self.addresses.add((tag, value))
            elif name == "id" and value:
                self.anchors.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copytree(DOCS, folder / "docs")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def built(site: Path) -> dict[Path, Page]:
    # What a server shows in place of a missing page has addresses from the server's root.
    return {file: Page(file.read_text()) for file in site.rglob("*.html") if file.name != "404.html"}


def test_each_page_is_built_and_in_the_navigation(built: dict[Path, Page], site: Path) -> None:
    sources = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    pages = {page.with_name("index.html") if page.stem == "README" else page for page in sources}
    assert {file.relative_to(site) for file in built} == pages
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    assert [page for page in DOCS.rglob("*.md") if str(page.relative_to(DOCS)) not in nav] == []


def test_addresses_lead_to_what_is_in_the_site(built: dict[Path, Page]) -> None:
    dead = []
    for file, page in built.items():
        for tag, address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme in {"http", "https"} and tag in SHOWN:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            known = built[target].anchors if target in built else {parts.fragment}
            if parts.netloc or not target.is_file() or (parts.fragment and parts.fragment not in known):
                dead.append(f"{file.name}: {address}")
    assert dead == []

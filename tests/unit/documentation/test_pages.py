"""The pages show the document, and escape every text of the project."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.unit.documentation.documents import CANARY, CLEAN, HOSTILE, PRICES, RAW, READ, WRITE, make_document

from lakewright.documentation.document import Ref, Source
from lakewright.documentation.pages.rendering import anchor, html_files, markdown_files
from lakewright.documentation.target import json_files


class Page(HTMLParser):
    """A page as a browser parses it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "link", "input", "wbr", "br"):
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name == "href":
                self.links.append(value or "")
            elif name in ("src", "action"):
                self.sources.append(value or "")
            elif name.startswith("on"):
                self.handlers.append(name)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def page_of(text: str = "plain") -> Page:
    return Page(html_files(make_document(text))["index.html"])


def test_a_page_is_well_formed_and_its_links_lead_to_its_anchors() -> None:
    page = page_of()
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= {*page.ids, "top"}


def test_a_page_loads_nothing_from_elsewhere() -> None:
    for is_inline in (True, False):
        files = html_files(make_document(), is_inline=is_inline)
        text = "".join(files.values())
        assert re.findall(r"https?://|//[a-z]+\.|@import|url\(", text) == []
        assert set(files) == ({"index.html"} if is_inline else {"index.html", "page.css"})


def test_texts_of_the_project_are_escaped_in_html() -> None:
    plain, page = page_of(), page_of(HOSTILE)
    assert page.open == []
    assert page.tags.count("script") == 1
    assert (page.tags.count("a"), page.sources, page.handlers) == (plain.tags.count("a"), [], [])
    assert all(link.startswith("#") for link in page.links)
    assert any(CANARY in word for word in page.words)
    assert CANARY not in html_files(make_document(HOSTILE))["index.html"]


def test_only_the_pages_own_script_may_run() -> None:
    text = html_files(make_document())["index.html"]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert re.search(r"default-src 'none'.*script-src 'sha256-[A-Za-z0-9+/=]{44}';", policy[1])


def test_a_page_shows_failed_checks_with_failing_rows() -> None:
    text = html_files(make_document())["index.html"]
    assert "price is between 0 and 100" in text
    assert "1,200 passed, 2 failed" in text
    assert "1/3" in text
    assert '<td class="null">null</td>' in text
    assert text.index("Needs attention") < text.index("Lineage") < text.index('data-chapter="target"')


def test_the_graph_has_a_line_for_each_edge() -> None:
    text = html_files(make_document())["index.html"]
    lines = re.findall(r'data-from="([^"]*)" data-to="([^"]*)"', text)
    joined = [(RAW, READ), (READ, CLEAN), (CLEAN, WRITE), (WRITE, PRICES)]
    assert sorted(lines) == sorted((anchor(a), anchor(b)) for a, b in joined)


def test_texts_of_the_project_are_escaped_in_markdown() -> None:
    text = markdown_files(make_document(HOSTILE))["documentation.md"]
    assert CANARY not in text.replace(f"-- {HOSTILE}", "")
    assert "](javascript:" not in text.replace(f"-- {HOSTILE}", "")
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table
    assert "````sql" in text


def test_links_in_markdown_lead_to_its_anchors() -> None:
    text = markdown_files(make_document())["documentation.md"]
    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= set(re.findall(r'<a id="([^"]*)">', text))


def test_items_of_imported_projects_are_named_without_a_link() -> None:
    document = make_document()
    foreign = Ref("mapping", "lib/codes")
    first, read, *others = document.items
    column = replace(read.columns[0], sources=(Source(foreign, "code"),), origins=(Source(foreign, "code"),))
    read = replace(read, reads=(foreign,), columns=(column,))
    document = replace(document, items=(first, read, *others))
    page = Page(html_files(document)["index.html"])
    assert page.open == []
    assert {link.removeprefix("#") for link in page.links} <= {*page.ids, "top"}
    assert page.words.count("lib/codes") == 1
    text = markdown_files(document)["documentation.md"]
    assert "- upstream: mapping lib/codes" in text
    assert "| mapping lib/codes.code |" in text


def test_columns_of_failing_rows_that_are_left_out_are_named() -> None:
    document = make_document()
    for text in (html_files(document)["index.html"], markdown_files(document)["documentation.md"]):
        assert "not shown: ninth, tenth" in text


def test_json_holds_the_whole_document() -> None:
    document = json.loads(json_files(make_document(HOSTILE))["documentation.json"])
    prices = next(
        item for item in document["items"] if item["ref"] == {"category": "relation", "name": "prices"}
    )
    assert prices["reads"] == [{"category": "target", "name": "prices"}]
    assert prices["columns"][1]["checks"][0]["failed"] == 2
    assert document["description"] == HOSTILE


def test_neighbours_of_a_hidden_item_become_neighbours() -> None:
    shown = make_document().only(lambda ref: ref.category != "mapping")
    assert shown.edges() == ((RAW, WRITE), (WRITE, PRICES))
    assert [item.ref for item in shown.items if WRITE in item.reads] == [PRICES]


def test_secrets_are_removed_from_every_text() -> None:
    document = make_document("hunter2").redacted(lambda text: text.replace("hunter2", "***"))
    for files in (html_files(document), markdown_files(document), json_files(document)):
        assert all("hunter2" not in text for text in files.values())


def test_a_page_escapes_every_value_but_its_own_style_and_script() -> None:
    from lakewright.documentation.pages.rendering import _environment

    environment = _environment()
    loader = environment.loader
    assert loader is not None
    assert environment.autoescape is True
    sources = {name: loader.get_source(environment, name)[0] for name in loader.list_templates()}
    assert set(sources) == {"page.html.j2", "page.md.j2", "item.html.j2", "parts.html.j2", "graph.svg.j2"}
    unescaped = [found for text in sources.values() for found in re.findall(r"\{\{ ([^}]*)\| *safe", text)]
    assert sorted(name.strip() for name in unescaped) == ["script", "style"]
    assert not any("{% autoescape" in text for text in sources.values())


@pytest.mark.parametrize("name", ["page.css", "page.js", "templates/page.html.j2", "templates/item.html.j2"])
def test_templates_style_and_script_are_part_of_the_package(name: str) -> None:
    import lakewright.documentation.pages

    assert (Path(lakewright.documentation.pages.__file__).parent / name).stat().st_size > 1000

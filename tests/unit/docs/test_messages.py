"""The messages that a page quotes are those that the product prints."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from tests.unit.docs.pages import DOCS, ROOT

PAGE = DOCS / "when-something-fails.md"
QUOTED = re.compile(r"^- `(?P<messages>.+?)`(?:, of a relation)?: ", re.MULTILINE)
WRITTEN = PAGE.read_text().partition("\n## Codes of a plan\n")[0]
MESSAGES = [each for found in QUOTED.findall(WRITTEN) for each in found.split("`, `")]


@cache
def texts() -> tuple[str, ...]:
    """Every text of the source, with … for each value that it is made from."""
    found: list[str] = []
    beginnings = {_words(message)[0][:10] for message in MESSAGES}
    sources = (path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    for source in (source for source in sources if any(each in source for each in beginnings)):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(_text(part) for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                found.append(node.value)
    return tuple(found)


def _words(message: str) -> list[str]:
    return [part.strip() for part in message.split("…") if part.strip(" :")]


def _text(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "…"


def test_the_page_quotes_messages() -> None:
    assert len(MESSAGES) > 20


@pytest.mark.parametrize("message", MESSAGES)
def test_a_quoted_message_is_one_of_the_product(message: str) -> None:
    """A value in the source may be a part of the words that the page quotes, such as a noun in the plural."""
    words = _words(message)
    pattern = re.compile(".*".join(map(re.escape, words)), re.DOTALL)
    assert any(pattern.search(text) for text in texts() if words[0] in text), message

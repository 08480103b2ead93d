"""The JSON documents of commands, compared with the page that describes them (C4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "json.md"


@cache
def described() -> Mapping[str, frozenset[str]]:
    """Return the keys that the page gives for the document of each command; none for a list."""
    found = {"errors": frozenset({"errors"})}
    for section in PAGE.read_text("utf-8").split("\n### ")[1:]:
        title = re.match(r"`lakewright ([a-z ]+)`", section)
        assert title is not None, section[:60]
        rows = re.findall(r"^- (`.*?`): ", section, re.MULTILINE)
        keys = frozenset(key for row in rows for key in re.findall(r"`(\w+)`", row))
        found[title[1].replace(" ", "-")] = keys
    for commands, keys in re.findall(r"^- (`lakewright .*?`): (.*)$", PAGE.read_text("utf-8"), re.MULTILINE):
        names = re.findall(r"`lakewright ([a-z ]+)`", commands)
        found |= {name.replace(" ", "-"): frozenset(re.findall(r"`(\w+)`", keys)) for name in names}
    return found


def checked(document: Any) -> Any:
    """Return a document without its schema, after a comparison of its keys with the page."""
    if not isinstance(document, dict) or "schema" not in document:
        return document
    schema, content = document["schema"], {key: document[key] for key in document if key != "schema"}
    name, version = re.fullmatch(r"lakewright/([a-z-]+)/(\d+)", schema).groups()  # type: ignore[union-attr]
    if (name, version) == ("plan", "2"):  # `status` prints the same with more
        assert not content.keys() - described()["plan"] - described()["status"], content.keys()
        return content
    assert version == "1"
    unknown = content.keys() - described()[name]
    assert not unknown or (name == "job" and not content.keys() - described()["plan"]), (schema, unknown)
    return content

"""The examples of kinds, as a page shows them: definitions that many of them need stand on the page once."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
DEFINITION = re.compile(r"^  \w+:\n(?:    .*\n)+", re.M)
EMPTY_SECTION = re.compile(r"^\w+:\n+(?=\w|\Z)", re.M)
MANY = 3
"""Examples of a category from which on a definition is shown once."""
PARTS = {
    "assertion": "assertions",
    "check": "documentation",
    "dataset": "input",
    "hook": "hooks",
    "measure": "measures",
    "schema": "schema",
}
"""Of categories whose kinds are a part of a definition: the key at which the part begins."""


def shared_definitions(category: str) -> str:
    """Return the mappings that many examples of a category read, as a block of YAML."""
    return f"```yaml\nmappings:\n{chr(10).join(_shared(category).values())}```"


def example_of(category: str, kind: str) -> str:
    """Return the example of a kind, or its part, as a block of YAML, or nothing if it is plain.

    What the page shows once is left out, and so are other sections.
    """
    whole = _text(EXAMPLES / category / f"{kind}.yml")
    if _is_plain(category, kind, whole):
        return ""
    if category in PARTS:
        return f"```yaml\n{_part(whole, PARTS[category])}\n```"
    shared = set(_shared(category).values())
    own = re.search(rf"^{category}s:\n(?:  .*\n|\n)+", whole, re.M)
    text = DEFINITION.sub(lambda found: "" if found[0] in shared else found[0], own[0] if own else whole)
    text = re.sub(r"\n{3,}", "\n\n", EMPTY_SECTION.sub("", text)).replace(":\n\n", ":\n").strip()
    return f"```yaml\n{text or whole.strip()}\n```"


def _is_plain(category: str, kind: str, text: str) -> bool:
    """Return whether an example shows no more than the list of keys: single values, each on one line."""
    key = PARTS.get(category, f"{category}s")
    parts = [part[key] for part in _maps_in(yaml.safe_load(text)) if key in part]
    shown = [each for each in _maps_in(parts) if each.get("kind") == kind]
    values = [value for each in shown for value in each.values()]
    return bool(shown) and not any(isinstance(value, list | dict) or "\n" in str(value) for value in values)


def _maps_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _maps_in(inner)


def _part(text: str, key: str) -> str:
    """Return the block of lines of a key."""
    (indent, part) = re.findall(rf"^( *)({key}:.*\n(?:\1 .*\n|\n)*)", text, re.M)[0]
    return textwrap.dedent(indent + part).strip()


@cache
def _shared(category: str) -> Mapping[str, str]:
    """Return the most frequent definition of each name, if many examples of a category have it."""
    files = (EXAMPLES / category).glob("*.yml")
    counts = Counter(found for file in files for found in DEFINITION.findall(_text(file)))
    found: dict[str, str] = {}
    for definition, count in counts.most_common():
        if count >= MANY and "kind: values" in definition:
            found.setdefault(definition.partition(":")[0], definition)
    return found


def _text(file: Path) -> str:
    return file.read_text("utf-8").strip() + "\n"

"""Names in code and YAML are those of `docs/glossary.md`, and none of the words that these replace."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import lakewright
from lakewright.manifest.record import State
from lakewright.manifest.verdict import Verdict
from lakewright.plan.dirtiness import BuildPolicy
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.run.kinds import registry
from lakewright.spec.json_schema import documentation_schema, entities_schema, module_schema, project_schema
from lakewright.spec.models.entity import Strategy

PACKAGE = Path(lakewright.__file__).parent
GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

VALUES: Mapping[str, type[StrEnum]] = {
    "build policy": BuildPolicy,
    "phase": Phase,
    "state": State,
    "status": Status,
    "strategy": Strategy,
    "verdict": Verdict,
}

FOREIGN_BASES = {"logging.Handler"}
"""A class of a library may have the library's word in the names of its subclasses."""


def rows() -> list[list[str]]:
    """Return the cells of the page's table, without its head."""
    table = re.findall(r"^\|.*$", GLOSSARY.read_text(), re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table[2:]]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


TERMS = rows()
INSTEAD: Mapping[str, Mapping[str, str]] = {
    "any name": {
        "agenda": "scheduler",
        "circle": "cycle",
        "common": "a name for the content",
        "handler": "a name for what it does",
        "helpers": "a name for the content",
        "leave": "permissions",
        "manager": "a name for what it does",
        "put_down": "save",
        "recall": "recover_from_log",
        "refuse": "check",
        "surroundings": "context, environment",
        "utils": "a name for the content",
        "verbs": "operator_actions",
        "wishes": "options",
    },
    "modules": {"first": "initial_load", "fit": "schema_fit", "missing": "delete_inference"},
    "whole names": {"data": "a name for the content", "info": "a name for the content"},
}
"""Words that are no names, and those to take, by where: all but the first may be a part of a longer name."""
REPLACED = [(word, where) for where, words in INSTEAD.items() for word in words]


def words_of(name: str) -> str:
    """Return a name as lower-case words between underscores: `_line_handler_` for `LineHandler`."""
    return f"_{'_'.join(word.lower() for word in SPLIT.findall(name))}_"


@cache
def names() -> tuple[tuple[str, str, str], ...]:
    """Return what each public module, class and function of the package is, with name and file."""
    found: list[tuple[str, str, str]] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        file = str(path.relative_to(PACKAGE))
        found.append(("module", path.parent.name if path.stem == "__init__" else path.stem, file))
        found += ((kind, name, file) for kind, name in declared(ast.parse(path.read_text())))
    return tuple(found)


def declared(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            if FOREIGN_BASES.isdisjoint(map(ast.unparse, node.bases)) and not node.name.startswith("_"):
                yield "class", node.name
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield "function", node.name


def keys_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            yield from properties
        for inner in schema.values():
            yield from keys_in(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from keys_in(inner)


@cache
def yaml_keys() -> frozenset[str]:
    kinds = registry()
    schemas = (project_schema(kinds), documentation_schema(), module_schema(kinds), entities_schema(kinds))
    return frozenset(key for schema in schemas for key in keys_in(schema))


def is_used(word: str, where: str, kind: str, name: str) -> bool:
    if where == "any name":
        return words_of(word) in words_of(name)
    return words_of(word) == words_of(name) and (where == "whole names" or kind == "module")


def test_terms_are_sorted_and_explained_once() -> None:
    found = [term for term, _, _ in TERMS]
    assert found == sorted(set(found))
    assert all(meaning for _, meaning, _ in TERMS)


@pytest.mark.parametrize("cells", TERMS, ids=lambda cells: cells[0])
def test_the_yaml_keys_and_classes_of_a_term_exist(cells: list[str]) -> None:
    classes = {name for kind, name, _ in names() if kind == "class"}
    for name in quoted(cells[2]):
        if name.endswith(":"):
            assert name.removesuffix(":") in yaml_keys()
        else:
            assert name in classes


@pytest.mark.parametrize("term", VALUES)
def test_the_values_of_a_term_are_those_of_the_code(term: str) -> None:
    [meaning] = [meaning for word, meaning, _ in TERMS if word == term]
    listed = [value.strip(" `") for value in meaning.rpartition(": ")[2].split(",")]
    assert listed == [member.value for member in VALUES[term]]


@pytest.mark.parametrize(("word", "where"), REPLACED, ids=lambda text: text.replace(" ", "-"))
def test_a_replaced_word_is_no_name_of_code_or_yaml(word: str, where: str) -> None:
    keys = [("key", key, "YAML") for key in sorted(yaml_keys())]
    found = [each for each in (*names(), *keys) if is_used(word, where, each[0], each[1])]
    assert found == [], INSTEAD[where][word]


@pytest.mark.parametrize(
    ("word", "where", "kind", "name"),
    [
        ("leave", "any name", "class", "Leave"),
        ("put_down", "any name", "function", "put_down_all"),
        ("handler", "any name", "class", "SliceHandler"),
        ("data", "whole names", "class", "Data"),
        ("fit", "modules", "module", "fit"),
    ],
)
def test_a_replaced_word_is_found(word: str, where: str, kind: str, name: str) -> None:
    assert is_used(word, where, kind, name)


@pytest.mark.parametrize(
    ("word", "where", "kind", "name"),
    [
        ("leave", "any name", "function", "cleave"),
        ("data", "whole names", "class", "DataLossError"),
        ("fit", "modules", "module", "schema_fit"),
        ("fit", "modules", "function", "fit"),
    ],
)
def test_another_name_is_not_taken_for_a_replaced_word(word: str, where: str, kind: str, name: str) -> None:
    assert not is_used(word, where, kind, name)

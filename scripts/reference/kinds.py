"""The sections of kinds: what many kinds of a category have in common stands on the page once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import chain

from scripts.reference.examples import example_of
from scripts.reference.keys import Key, keys_of, listed, summary

from lakewright.checks.check import Assertion, Check
from lakewright.connections.connection import Connection
from lakewright.mappings.mapping import Mapping as MappingModel
from lakewright.relations.relation import Relation
from lakewright.run.hooks.event import Hook
from lakewright.run.kinds import registry
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import Model, Named
from lakewright.targets.datasets import Dataset
from lakewright.targets.target import Target
from lakewright.targets.verification import Measure

BASES: Mapping[str, type[Named]] = {
    "connection": Connection,
    "relation": Relation,
    "mapping": MappingModel,
    "schema": Schema,
    "target": Target,
    "assertion": Assertion,
    "check": Check,
    "measure": Measure,
    "dataset": Dataset,
    "hook": Hook,
}
"""The base class of each category's kinds."""

LEVELS = {
    **dict.fromkeys(("assertion", "check", "connection", "dataset", "measure"), "###"),
    "hook": "####",
}
"""Heading prefixes of kinds that share a page with others."""

WITH_COMMON_KEYS = ("mapping", "relation", "target")
"""Categories whose page has a list of keys that many kinds have."""

MANY = 2
"""Kinds from which on a key is described once."""

ALIKE = 3
"""Keys from which on a kind refers to another."""


def kinds_of(category: str) -> Iterator[tuple[str, tuple[str, ...], type[Named]]]:
    """Yield each kind of a category, its aliases and its class, ordered by name.

    If a class has several names, the one that its own name begins with comes first.
    """
    kinds = registry()
    names: dict[type[Named], list[str]] = {}
    for kind in kinds.kinds(category):
        with suppress(ModuleNotFoundError):  # announced, but not implemented yet
            names.setdefault(kinds.find(category, kind), []).append(kind)
    found = [(_own_name(model, each), each, model) for model, each in names.items()]
    for own, each, model in sorted(found, key=lambda entry: entry[0].lower()):
        yield own, tuple(name for name in each if name != own), model


def common_keys(category: str) -> str:
    """Return the list of the keys that many kinds of a category have."""
    return listed(sorted(_common(category), key=lambda key: key.name))


def sections(category: str) -> str:
    """Return a section for each kind: what it does, its keys and its example."""
    return "\n\n".join(_section(category, *entry) for entry in kinds_of(category))


def _section(category: str, name: str, others: tuple[str, ...], model: type[Named]) -> str:
    also = f"Also written {' or '.join(f'`{other}`' for other in others)}." if others else ""
    heading = f"{LEVELS.get(category, '##')} {name}"
    parts = (heading, summary(model), also, _keys(category, name), example_of(category, name))
    return "\n\n".join(part for part in parts if part)


def _keys(category: str, name: str) -> str:
    like, own = _alike(category)[name], _remaining(category)[name]
    common = ", ".join(f"`{key.name}`" for key in own if key in _common(category))
    others = [f"the keys of [`{like}`](#{like.lower()})"] if like else []
    others += [f"[{common}](#keys-of-several-kinds)"] if common else []
    return listed([key for key in own if key not in _common(category)], *others) or "No keys of its own."


@cache
def _own_keys(category: str) -> Mapping[str, tuple[Key, ...]]:
    return {name: tuple(keys_of(model, without=BASES[category])) for name, _, model in kinds_of(category)}


@cache
def _alike(category: str) -> Mapping[str, str | None]:
    """Return for each kind the one with the most keys, all of which it has too, or none."""
    found: dict[str, str | None] = {}
    keys = _own_keys(category)
    for name, own in keys.items():
        inside = [
            other
            for other, its in keys.items()
            if len(its) >= ALIKE and set(its) <= set(own) and (len(its), other) < (len(own), name)
        ]
        found[name] = max(inside, key=lambda other: len(keys[other]), default=None)
    return found


@cache
def _remaining(category: str) -> Mapping[str, tuple[Key, ...]]:
    """Return the keys of each kind without those of the one that it refers to."""
    keys = _own_keys(category)
    return {
        name: tuple(key for key in own if like is None or key not in keys[like])
        for (name, own), like in zip(keys.items(), _alike(category).values(), strict=True)
    }


@cache
def _common(category: str) -> frozenset[Key]:
    """Return the keys that many kinds have: of each name, the most frequent one."""
    if category not in WITH_COMMON_KEYS:
        return frozenset()
    found: dict[str, Key] = {}
    for key, count in Counter(chain(*_remaining(category).values())).most_common():
        if count >= MANY and key.is_used:
            found.setdefault(key.name, key)
    return frozenset(found.values())


def _own_name(model: type[Model], names: list[str]) -> str:
    own = model.__name__.lower()
    return next((name for name in names if own.startswith(name.lower())), names[0])

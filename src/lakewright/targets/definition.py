"""The digest of all that is declared of the rows that a target builds.

It is the same for all instances of a job: parameters are left as the files name them. Entries of environments
count with their texts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from lakewright.errors import LakewrightError, SpecError
from lakewright.spec.expressions.expression import names_in, parse_template

if TYPE_CHECKING:
    from lakewright.spec.definitions.definition import Definition
    from lakewright.spec.models.base import Named
    from lakewright.targets.target import Target
    from lakewright.workspace.workspace import Workspace


_OF_NO_ROW = frozenset(
    (
        *("after", "before", "enabled", "buildpolicy", "verifypolicy", "refresh", "description"),
        *("documentation", "metadata", "retries", "timeout", "parallelism", "rebalance"),
    )
)
"""Keys that decide when and how a target is built, and not which rows."""

_OF_PLACE = (
    "location",
    "table",
    "database",
    "format",
    "options",
    "partitions",
    "pattern",
    "query",
    "connection",
    "columns",
    "records",
)
"""Keys of a relation that decide where its rows are, and how they are read, or the rows themselves."""


@dataclass(frozen=True, slots=True)
class BuildDefinition:
    """What is declared of the rows that a target builds.

    Attributes:
        digest: The digest of its texts.
        names: The names that expressions in it use, such as those of parameters.
    """

    digest: str
    names: frozenset[str] = frozenset()


def definition_of(target: Target, workspace: Workspace) -> BuildDefinition | None:
    """Return what decides the rows that a target builds; None if it builds none."""
    if not target.builds_rows(workspace):
        return None
    try:
        texts = sorted(set(_texts(target, workspace)))
        names = frozenset(name for text in texts for name in names_in(parse_template(text)))
    except LakewrightError:  # whoever builds it raises it
        return None
    return BuildDefinition(hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16], names)


def _texts(target: Target, workspace: Workspace) -> Iterator[str]:
    own = workspace.project.definitions("target").get(target.name)
    if own is None:
        yield target.model_dump_json()
    else:
        yield from _written(replace(own, name=""), _without(own.raw), workspace)  # it may be renamed
    for reference in target.references():
        if reference.category == "mapping":
            declared = workspace.declarations(reference.name.partition(":")[0])
            yield from (f"{key} {text}" for key, text in declared.items())
    yield from _behind(target, workspace, set())


def _behind(model: Named, workspace: Workspace, seen: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the texts of what a definition is built from."""
    for reference in model.references():
        name = reference.name.partition(":")[0]
        if (reference.category, name) in seen:
            continue
        seen.add((reference.category, name))
        definition = workspace.project.definitions(reference.category).get(name)
        if definition is None:  # of an imported project, or written in its place
            continue
        if reference.category == "relation":
            raw = {key: definition.raw[key] for key in _OF_PLACE if key in definition.raw}
            yield from _written(definition, raw, workspace)
        elif reference.category == "mapping":
            yield from _entries(json.dumps(definition.raw), workspace)
            yield from _behind(cast("Named", workspace.original_mapping(name)), workspace, seen)


def _without(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key.replace("_", "").lower() not in _OF_NO_ROW}


def _written(definition: Definition, raw: Mapping[str, Any], workspace: Workspace) -> Iterator[str]:
    bindings = [each.text for each in definition.bindings]
    text = json.dumps([definition.category, definition.name, definition.kind, raw, bindings], sort_keys=True)
    yield text
    yield from _entries(text, workspace)


def _entries(text: str, workspace: Workspace) -> Iterator[str]:
    """Yield the entries of environments that a text uses, with their texts."""
    try:
        found = workspace.scope.entries_behind(text)
    except SpecError:
        return
    yield from (f"{name}={entry}" for name, entry in found.items())

"""A project as it was loaded: everything declared, before any job runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from lakewright.errors import Fault, SpecError
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.expressions.scope import Scope, secrets_of
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.job import Job
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.suggestions import suggestion

__all__ = ["Entities", "Project", "resolve_entity"]

_WITH_SECRETS = frozenset(("connection", "options", "properties"))
"""Keys of relations and targets that may hold secrets."""


class Entities(Mapping[str, Entity]):
    """Entities by name, each resolved with the project's names when it is first asked for."""

    def __init__(self, definitions: Mapping[str, Definition], scope: Scope) -> None:
        self._definitions = definitions
        self._scope = scope
        self._resolved: dict[str, Entity] = {}

    def __getitem__(self, name: str) -> Entity:
        if name not in self._resolved:
            self._resolved[name] = resolve_entity(self._definitions[name], self._scope)
        return self._resolved[name]

    def __contains__(self, name: object) -> bool:
        return name in self._definitions

    def __iter__(self) -> Iterator[str]:
        return iter(self._definitions)

    def __len__(self) -> int:
        return len(self._definitions)


def resolve_entity(definition: Definition, scope: Scope) -> Entity:
    """Return an entity with its expressions evaluated; templates of its places wait for `Entity.places`."""
    return cast("Entity", definition.resolve(scope)).within(scope)


@dataclass(frozen=True)
class Project:
    """Everything that a project's files declare.

    Attributes:
        basedir: The folder of `project.yml`, absolute.
        jobs: With what they inherit.
        entities: Resolved with the project's own names.
        entity_definitions: The same as declared, for `Definition.resolve` with the names of a job.
        environment: Names with texts that may hold expressions; profiles' entries are merged in.
        config: Entries for Spark (`spark.…`) and Lakewright (`lakewright.…`, which `flowman.…` become);
            profiles' and the command line's are merged in and expressions evaluated.
        manifest: The `manifest:` section, expressions evaluated.
        documentation: `documentation.yml` as written, or None.
        scope: The names of the project itself, with profiles and `-D`.
        warnings: What is probably not meant, but can be done.
        overridden: By category, the definitions in place of which a test has put others.
    """

    name: str
    basedir: Path
    registry: Registry
    scope: Scope
    version: str | None = None
    description: str | None = None
    relations: Mapping[str, Definition] = field(default_factory=dict)
    mappings: Mapping[str, Definition] = field(default_factory=dict)
    targets: Mapping[str, Definition] = field(default_factory=dict)
    connections: Mapping[str, Definition] = field(default_factory=dict)
    tests: Mapping[str, Definition] = field(default_factory=dict)
    templates: Mapping[str, Definition] = field(default_factory=dict)
    entity_definitions: Mapping[str, Definition] = field(default_factory=dict)
    entities: Mapping[str, Entity] = field(default_factory=dict)
    jobs: Mapping[str, Job] = field(default_factory=dict)
    environment: tuple[tuple[str, str], ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)
    lake: LakeSettings = field(default_factory=LakeSettings)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    documentation: Mapping[str, Any] | None = None
    imports: Mapping[str, Project] = field(default_factory=dict)
    warnings: tuple[Fault, ...] = ()
    overridden: Mapping[str, Mapping[str, Definition]] = field(default_factory=dict)

    @property
    def secrets(self) -> frozenset[str]:
        """Values to keep out of logs, records and pages, those of connections and `manifest:` among them."""
        found = set(self.scope.secrets).union(*(imported.secrets for imported in self.imports.values()))
        for entries in (self.manifest, *(connection.raw for connection in self.connections.values())):
            found |= secrets_of(entries, self.scope)
        for definition in (*self.relations.values(), *self.targets.values()):
            for key in _WITH_SECRETS & definition.raw.keys():
                found |= secrets_of({key: definition.raw[key]}, self.scope)
        return frozenset(found)

    def within(self, scope: Scope) -> Project:
        """Return the project with other names in force."""
        return replace(self, scope=scope, entities=Entities(self.entity_definitions, scope))

    def definitions(self, category: str) -> Mapping[str, Any]:
        """Return everything of a category, such as `relation`, by name."""
        field_name = "entities" if category == "entity" else f"{category}s"
        found: Mapping[str, Any] = getattr(self, field_name, {})
        return found

    def job(self, name: str) -> Job:
        """Return a job.

        Raises:
            SpecError: There is none of that name.
        """
        if name not in self.jobs:
            raise _unknown(self.jobs, "job", name)
        return self.jobs[name]

    def entity(self, name: str | int) -> Entity:
        """Return an entity by name or id.

        Raises:
            SpecError: There is none, or several have the name.
        """
        if name in self.entities:
            return self.entities[str(name)]
        matching = [
            key
            for key, definition in self.entity_definitions.items()
            if str(name) in (str(definition.raw.get("id")), definition.raw.get("name"))
        ]
        if len(matching) > 1:
            raise SpecError.of(
                f"several entities are named {name!r}", remedy=f"Name one by its id: {', '.join(matching)}."
            )
        if not matching:
            raise _unknown(self.entities, "entity", str(name))
        return self.entities[matching[0]]


def _unknown(among: Mapping[str, Any], category: str, name: str) -> SpecError:
    return SpecError.of(f"there is no {category} {name!r}", remedy=suggestion(name, among))

"""A loaded project: everything that its files declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

from lakewright.errors import Fault, Location, SpecError
from lakewright.errors.phrase import Command, Phrase
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.expressions.functions import Namespace
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.secrets import credentials_in, is_secret_name
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.job import Job
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.models.project_file import ApplySettings, ClusterSettings
from lakewright.spec.models.storage import StorageSettings
from lakewright.spec.models.trigger import Trigger
from lakewright.spec.reading.parsed_file import nodes_in
from lakewright.spec.suggestions import suggestion
from lakewright.spec.words import counted

T = TypeVar("T")

_WITH_SECRETS = frozenset(("connection", "options", "properties"))
"""Keys of relations and targets that may contain secrets."""


class Entities(Mapping[str, Entity]):
    """Entities by name. Each is resolved with the project's names at its first use."""

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
    """Return an entity with its expressions evaluated, except the templates of its places."""

    def declare() -> Entity | None:
        return cast("Entity | None", definition.check()[0])

    return cast("Entity", definition.resolve(scope)).within(scope, declare, definition.name)


@dataclass(frozen=True)
class Project:
    """Everything that a project's files declare.

    Attributes:
        basedir: The absolute path of the folder with `project.yml`.
        jobs: The jobs, with what they inherit.
        entities: The entities, resolved with the project's names.
        entity_definitions: The same as declared, to be resolved with the names of a job.
        environment: Names and their texts, which may contain expressions. Includes the profiles' entries.
        config: Entries for Spark (`spark.…`) and Lakewright (`lakewright.…`, which replaces `flowman.…`),
            with expressions evaluated. Includes the profiles' entries and those of the command line.
        storage: The `storage:` section, with expressions evaluated.
        cluster: The `cluster:` section, with expressions evaluated.
        apply: The `apply:` section, with expressions evaluated.
        manifest: The `manifest:` section, with expressions evaluated.
        documentation: The content of `documentation.yml` as written, or None.
        scope: The names of the project, including profiles and `-D`.
        warnings: Declarations that are valid but probably a mistake.
        overridden: The definitions that a test has replaced, by category.
        faults: What is wrong in the project's files, if it was loaded despite faults.
        faulty: The definitions that were left out because of faults, by category and name.
        faulty_targets: The targets among them, as far as their declarations can be read.
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
    triggers: Mapping[str, Definition] = field(default_factory=dict)
    entity_definitions: Mapping[str, Definition] = field(default_factory=dict)
    entities: Mapping[str, Entity] = field(default_factory=dict)
    jobs: Mapping[str, Job] = field(default_factory=dict)
    environment: tuple[tuple[str, str], ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)
    lake: LakeSettings = field(default_factory=LakeSettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    apply: ApplySettings = field(default_factory=ApplySettings)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    documentation: Mapping[str, Any] | None = None
    imports: Mapping[str, Project] = field(default_factory=dict)
    warnings: tuple[Fault, ...] = ()
    overridden: Mapping[str, Mapping[str, Definition]] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    faulty: Mapping[tuple[str, str], Fault] = field(default_factory=dict)
    faulty_targets: Mapping[str, Definition] = field(default_factory=dict)

    @property
    def secrets(self) -> frozenset[str]:
        """Values that must not appear in logs, records and pages, whichever definition contains them.

        A name of the project is none of them, unless an environment variable or a file holds it as a secret:
        the files of the project show it anyway.
        """
        found = set(self.scope.secrets | self.storage.secrets)
        found = found.union(*(imported.secrets for imported in self.imports.values()))
        for entries in (self.manifest, *(connection.raw for connection in self.connections.values())):
            found |= self._secrets_of(entries)
        for definition in (*self.relations.values(), *self.targets.values()):
            for key in _WITH_SECRETS & definition.raw.keys():
                found |= self._secrets_of({key: definition.raw[key]})
        return frozenset(found) - (self._names() - self.scope.seen_secrets)

    def _secrets_of(self, entries: Mapping[str, Any]) -> frozenset[str]:
        """Return the values whose names denote secrets, and the passwords in URLs, of a nested map."""
        found: set[str] = set()
        for path, value in nodes_in(entries):
            if isinstance(value, str):
                with suppress(SpecError):
                    text = self.scope.render(value)
                    found |= credentials_in(text) | ({text} if is_secret_name(str(path[-1])) else set())
        return frozenset(found - {""}) - self.scope.defaults

    def _names(self) -> frozenset[str]:
        sections = (self.relations, self.mappings, self.targets, self.connections, self.jobs, self.entities)
        return frozenset({self.name}).union(*sections)

    def within(self, scope: Scope) -> Project:
        """Return the project with another scope."""
        return replace(self, scope=scope, entities=Entities(self.entity_definitions, scope))

    def job_scope(
        self, job: Job, arguments: Mapping[str, object] | None = None, *, is_forced: bool = False
    ) -> Scope:
        """Return the names of one instance of a job.

        Args:
            job: The job, whose environment and parameters override what each run provides.
            arguments: Values of the job's parameters.
            is_forced: Whether the run also runs clean targets; the value of `$force`.
        """
        about = {"name": job.name, "description": job.description or "", "project": self.name}
        provided = {
            "force": is_forced,
            # A dry run shows what a run would do, so that expressions have the values of the run.
            "dryRun": False,
            "job": Namespace("job", properties=about),
        }
        return self.scope.backed_by(provided).instance(job.environment, arguments)

    def definitions(self, category: str) -> Mapping[str, Any]:
        """Return the definitions of a category, such as `relation`, by name."""
        field_name = "entities" if category == "entity" else f"{category}s"
        found: Mapping[str, Any] = getattr(self, field_name, {})
        return found

    def located(self, category: str, name: str, *path: str | int) -> Location | None:
        """Return where a definition, or the value at a path inside it, is declared; None if it isn't here."""
        definition = self.definitions(category).get(name)
        return None if definition is None else definition.at(*path)

    def job(self, name: str) -> Job:
        """Return a job.

        Raises:
            SpecError: There is no such job.
        """
        return self.named("job", name, self.jobs)

    def trigger(self, name: str) -> Trigger:
        """Return a trigger, whose parameters keep their expressions; faulty entities are left out of it.

        Raises:
            SpecError: There is no such trigger, or an expression in it is invalid.
        """
        trigger = cast("Trigger", self.named("trigger", name, self.triggers).resolve(self.scope))
        usable = tuple(entity for entity in trigger.entities if ("entity", entity) not in self.faulty)
        return trigger if usable == trigger.entities else trigger.model_copy(update={"entities": usable})

    def entity(self, name: str | int) -> Entity:
        """Return an entity by name or id.

        Raises:
            SpecError: There is no such entity, or several have the name.
        """
        if name in self.entities:
            return self.entities[str(name)]
        matching = self.entity_keys(name)
        if len(matching) > 1:
            raise SpecError.of(
                f"several entities are named {name!r}", remedy=f"Use an id: {', '.join(matching)}."
            )
        return self.named("entity", matching[0] if matching else str(name), self.entities)

    @cached_property
    def processed_entities(self) -> Mapping[str, str]:
        """What commands call the entity of each target that processes one; only instances know some."""
        found = {}
        for name, definition in self.targets.items():
            if definition.kind == "entity":
                with suppress(SpecError):
                    found[name] = self.entity(str(definition.raw.get("entity"))).called
        return found

    @cached_property
    def new_names(self) -> Mapping[str, str]:
        """What commands call the entities that had another name before, by that name."""
        return {each.moved_from: each.called for each in self.entities.values() if each.moved_from}

    @cached_property
    def whole_names(self) -> tuple[str, ...]:
        """The names of mappings that have a dot, such as `orders.history`."""
        return tuple(name for name in self.mappings if "." in name)

    def entity_keys(self, name: str | int) -> list[str]:
        """Return what commands call the entities of a name or an id; several have their ids."""
        return [
            key
            for key, definition in self.entity_definitions.items()
            if str(name) in (key, str(definition.raw.get("id")), definition.raw.get("name"))
        ]

    def named(self, category: str, name: str, among: Mapping[str, T]) -> T:
        """Return the definition of a name among those of a category.

        Raises:
            SpecError: There is none, or it can't be used because of a fault.
        """
        if name in among:
            return among[name]
        if (fault := self.faulty.get((category, name))) is not None:
            why = f"{category} {name!r} can't be used: {fault.message}"
            raise SpecError([replace(fault, message=why)])
        remedy = suggestion(name, among)
        if self.faults:
            remedy = Phrase(
                f"The project's files have {counted(len(self.faults), 'fault')}: ", Command("validate"), "."
            )
        raise SpecError.of(f"there is no {category} {name!r}", remedy=remedy)
